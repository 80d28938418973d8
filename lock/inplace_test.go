package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lazaret.lock")
	if changed, err := WriteInPlace(path, []byte("a long first text\n")); !changed || err != nil {
		t.Fatal(changed, err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"short\n", "a longer text than before\n"} {
		if changed, err := WriteInPlace(path, []byte(text)); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("got %q", got)
		}
		if changed, err := WriteInPlace(path, []byte(text)); changed || err != nil {
			t.Errorf("wrote what was there: %v, %v", changed, err)
		}
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("it is another file")
	}
	// Write, in contrast, replaces it.
	if _, err := Write(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); os.SameFile(before, after) {
		t.Error("Write writes in place, so the test above shows nothing")
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteInPlace(path, []byte("x")); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("through a link: %v", err)
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Errorf("the victim is %q", got)
	}
}
