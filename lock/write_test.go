package lock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/lock/config"
)

func TestWrite(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	path := filepath.Join(dir, "lazaret.lock")

	changed, err := Write(path, []byte("one"))
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if fi, _ := os.Stat(path); fi.Mode() != 0o644 {
		t.Errorf("mode %v whatever the umask, want 0644", fi.Mode())
	}
	past := time.Unix(1e9, 0)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	if changed, err = Write(path, []byte("one")); err != nil || changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	if after, _ := os.Stat(path); !after.ModTime().Equal(past) || !os.SameFile(before, after) {
		t.Error("an equal lock was touched")
	}
	if changed, err = Write(path, []byte("two")); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "two" {
		t.Errorf("holds %q", data)
	}
	alone(t, dir)
}

// alone fails when dir holds more than the lock.
func alone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lazaret.lock" {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

// TestWriteRefusesLinks: a repository may carry a lazaret.lock that points at
// a file of the person who locks it.
func TestWriteRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "bashrc")
	if err := os.WriteFile(target, []byte("alias ls=ls"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"link":          func(path string) error { return os.Symlink(target, path) },
		"dangling link": func(path string) error { return os.Symlink(target+"-not", path) },
		"fifo":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, "lazaret.lock")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		changed, err := Write(path, []byte("version = 1"))
		if err == nil || changed || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
		alone(t, dir)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(target); string(data) != "alias ls=ls" {
		t.Errorf("the target now holds %q", data)
	}
	if _, err := os.Lstat(target + "-not"); err == nil {
		t.Error("the dangling link's target was made")
	}
}

// TestWriteWhatIsRead: no lock is written that no command reads, and one that is
// there all the same is replaced.
func TestWriteWhatIsRead(t *testing.T) {
	for name, write := range map[string]func(string, []byte) (bool, error){"anew": Write, "in place": WriteInPlace} {
		dir := t.TempDir()
		path := filepath.Join(dir, "lazaret.lock")
		large := make([]byte, config.MaxFile+1)
		_, err := write(path, large)
		if tle := (*TooLargeError)(nil); !errors.As(err, &tle) || tle.Hint() == "" || !strings.Contains(err.Error(), "it would have 4194305 bytes") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s: something was written", name)
		}
		if changed, err := write(path, large[1:]); err != nil || !changed {
			t.Errorf("%s: the largest that is read: %v, %v", name, changed, err)
		}
		if err := os.WriteFile(path, large, 0o644); err != nil {
			t.Fatal(err)
		}
		if changed, err := write(path, []byte("small")); err != nil || !changed {
			t.Errorf("%s: over a larger one: %v, %v", name, changed, err)
		}
		if data, err := config.ReadFile(path); err != nil || string(data) != "small" {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		alone(t, dir)
	}
}

// TestWriteOnFullDisk: the file system ends in the middle of the lock.
func TestWriteOnFullDisk(t *testing.T) {
	const name = "LAZARET_TEST_WRITE_FULL"
	if path := os.Getenv(name); path != "" {
		// A limit on the size of files stands for a full disk: a write stops
		// half-way with an error.
		limit := syscall.Rlimit{Cur: 4096, Max: 4096}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		_, err := Write(path, []byte(strings.Repeat("x", 10000)))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("got %v", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "lazaret.lock")
	if err := os.WriteFile(path, []byte("the old one"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriteOnFullDisk$")
	cmd.Env = append(os.Environ(), name+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if data, _ := os.ReadFile(path); string(data) != "the old one" {
		t.Errorf("the lock now holds %d bytes", len(data))
	}
	alone(t, dir)
}
