package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What is exported lies nowhere before it is whole, however lazaret ends, and
// replaces nothing.
func TestUnnamed(t *testing.T) {
	dir := t.TempDir()
	for _, named := range []bool{false, true} {
		f, err := newUnnamed(dir)
		if err != nil {
			t.Fatal(err)
		}
		if named { // as on a file system that knows no files without a name
			f.Close()
			tmp, err := os.CreateTemp(dir, "x")
			if err != nil {
				t.Fatal(err)
			}
			f = &unnamed{tmp, tmp.Name()}
		}
		if _, err := f.WriteString("login"); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(dir); !named && len(left) != 0 {
			t.Errorf("%v lies there", left)
		}
		path := filepath.Join(dir, "out")
		if err := f.name(path); err != nil {
			t.Fatal(err)
		}
		if err := f.name(path); !named && !errors.Is(err, fs.ErrExist) {
			t.Errorf("named over what is there: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if data, _ := os.ReadFile(path); err != nil || string(data) != "login" || fi.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v", data, fi, err)
		}
		os.Remove(path)
	}
	f, err := newUnnamed(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
