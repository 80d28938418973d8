package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestClaimIsHeldByItsLockOnly(t *testing.T) {
	dir := t.TempDir()
	r := testRecord("/ws")
	c, err := newClaim(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(dir, "lazaret")
	if _, err := openClaim(runs, r.ID); !errors.Is(err, errHeld) {
		t.Errorf("a live run: got %v, want errHeld", err)
	}
	if _, err := newClaim(dir, r); err == nil {
		t.Error("one id is claimed twice")
	}
	c.close() // as when lazaret dies
	again, err := openClaim(runs, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again.Record != r {
		t.Errorf("got record %+v, want %+v", again.Record, r)
	}
	if err := again.remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(runs); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A record is input from whoever could write it.
func TestRecordIsUntrusted(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"another run": func(d string) error {
			return write(d, recordFile, `{"id":"ffffffffffff","profile":"agent","workspace":"/ws"}`)
		},
		"profile": func(d string) error {
			return write(d, recordFile, `{"id":"0123456789ab","profile":"../x","workspace":"/ws"}`)
		},
		"workspace": func(d string) error {
			return write(d, recordFile, `{"id":"0123456789ab","profile":"agent","workspace":"ws"}`)
		},
		"dotted": func(d string) error {
			return write(d, recordFile, `{"id":"0123456789ab","profile":"agent","workspace":"/a/../b"}`)
		},
		"no JSON": func(d string) error { return write(d, recordFile, "x") },
		"huge":    func(d string) error { return os.Truncate(filepath.Join(d, recordFile), 1<<30) },
		"a link":  func(d string) error { return link(d, recordFile, "/proc/self/environ") },
		"a pipe": func(d string) error {
			os.Remove(filepath.Join(d, recordFile))
			return unix.Mkfifo(filepath.Join(d, recordFile), 0o600)
		},
		"journal link":    func(d string) error { return link(d, journalFile, "/etc/passwd") },
		"journal nonsens": func(d string) error { return write(d, journalFile, "nonsense\n") },
		"lock link":       func(d string) error { return link(d, supervisorLock, "/dev/null") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := newClaim(dir, testRecord("/ws"))
			if err != nil {
				t.Fatal(err)
			}
			c.close()
			if err := spoil(c.dir); err != nil {
				t.Fatal(err)
			}
			if got, err := openClaim(filepath.Join(dir, "lazaret"), c.ID); err == nil {
				t.Errorf("read as %+v", got.Record)
			} else if strings.Contains(err.Error(), "root:x:") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
}

func link(dir, name, to string) error {
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		return err
	}
	return os.Symlink(to, filepath.Join(dir, name))
}
