package gitshadow

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBeneathReadsFilesOnly: in a directory that a sandbox writes, anything can
// have a file's name. Opening a pipe waits for a writer, a device acts.
func TestBeneathReadsFilesOnly(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sh(t, dir, `mkdir directory; echo secret >file; ln -s file link; ln -s /dev/zero zero; ln -s /dev/tty tty; mkdir in; ln -s .. in/up`)
	d, err := openBeneath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if b, err := d.read("file", 100); string(b) != "secret\n" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := d.read("file", 3); err == nil {
		t.Error("a file beyond the limit is read")
	}
	for _, name := range []string{"pipe", "socket", "directory", "link", "zero", "tty", "in/up/file", "../" + strings.TrimPrefix(dir, "/"), "/etc/passwd", "none"} {
		done := make(chan error, 1)
		go func() {
			f, _, err := d.regular(name)
			if err == nil {
				f.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s is opened as a regular file", name)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is waited for", name)
		}
	}
}

// TestPointsAreNoLinks: a mount goes where the link at its place leads.
func TestPointsAreNoLinks(t *testing.T) {
	for name, attack := range map[string]string{
		"":                      "",
		"a link to a directory": "ln -s ../outside .vscode",
		"a link to nothing":     "ln -s ../outside/new .vscode",
		"a file":                "touch .vscode",
		"a pipe":                "mkfifo .vscode",
		".git a link":           "rm -rf .git; ln -s ../outside .git",
		".git a file":           "rm -rf .git; touch .git",
	} {
		dir := t.TempDir()
		sh(t, dir, "mkdir -p tree/.git outside; cd tree; "+attack)
		s := Shadow{Tree: dir + "/tree", Points: []string{".vscode"}, Places: []Place{{Repo: Repo{Kind: Dir}}}}
		if err := s.points(); (err == nil) != (name == "") {
			t.Errorf("%s: a mount would go there, or nowhere: %v", name, err)
		}
		if left, err := os.ReadDir(dir + "/outside"); err != nil || len(left) > 0 {
			t.Errorf("%s: %v outside, %v", name, left, err)
		}
	}
}
