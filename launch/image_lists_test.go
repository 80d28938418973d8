package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestImageLists: podman opens an image's lists of users, and the runtime what it
// mounts on, so that an image with a pipe there, which nobody writes to, is
// refused.
func TestImageLists(t *testing.T) {
	s := storage{t, t.TempDir()}
	img := s.inspected("only")
	root := s.path("overlay/only/diff")
	at := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(os.Mkdir(at("etc"), 0o755), os.Mkdir(at("x"), 0o755), unix.Mkfifo(at("x/pipe"), 0o644)); err != nil {
		t.Fatal(err)
	}
	o := Image{Profile: "box"}
	for _, tt := range []struct {
		name string
		make func() error
		want string
	}{
		{"nothing", func() error { return nil }, ""},
		{"a file", func() error { return os.WriteFile(at("etc/group"), nil, 0o644) }, ""},
		{"a link to nothing", func() error { return os.Symlink("/nowhere", at("etc/passwd")) }, ""},
		{"a link in a loop", func() error { return os.Symlink("passwd", at("etc/passwd")) }, ""},
		{"a link to a pipe", func() error { return os.Symlink("/../x/pipe", at("etc/passwd")) }, "/etc/passwd"},
		{"a pipe", func() error { return unix.Mkfifo(at("etc/passwd"), 0o644) }, "/etc/passwd"},
		{"a directory's link", func() error { return os.Symlink("x", at("tmp")) }, ""},
		{"a directory's link to nothing", func() error { return os.Symlink("/gone", at("tmp")) }, "/tmp"},
		{"a directory's pipe", func() error { return unix.Mkfifo(at("tmp"), 0o644) }, "/tmp"},
		{"a directory", func() error { return errors.Join(os.Remove(at("etc/group")), os.Mkdir(at("etc/group"), 0o755)) }, "/etc/group"},
	} {
		os.Remove(at("etc/passwd"))
		os.Remove(at("tmp"))
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		switch err := o.look(t.Context(), img.known().Layers, false); {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want one about %s", tt.name, err, tt.want)
		}
	}
}
