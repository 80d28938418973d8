package launch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lazaret/launch/podman"
	"lazaret/lock"
)

// TestImageCovers: podman mounts where a link in the image leads, so that an
// image with one at what lazaret covers, or above it, is refused, in whichever of
// its layers it is; and its covers are all that the plan mounts but the profile's
// own volumes.
func TestImageCovers(t *testing.T) {
	s := storage{t, t.TempDir()}
	k := s.inspected("top", "base").known()
	at := func(layer, name string) string { return filepath.Join(s.path("overlay/"+layer+"/diff"), name) }
	o := Image{Profile: "box", Covers: []string{"/workspace", "/workspace/.git", "/etc/hostname"}}
	for _, tt := range []struct {
		name string
		make func() error
		want string
	}{
		{"nothing", func() error { return nil }, ""},
		{"directories and files", func() error {
			return errors.Join(os.MkdirAll(at("top", "workspace/.git"), 0o755), os.Mkdir(at("base", "etc"), 0o755), os.WriteFile(at("base", "etc/hostname"), nil, 0o644))
		}, ""},
		{"a link", func() error {
			return errors.Join(os.Mkdir(at("base", "workspace"), 0o755), os.Symlink("/elsewhere", at("base", "workspace/.git")))
		}, "/workspace/.git"},
		{"a link above", func() error { return os.Symlink("/proc/1/root", at("top", "workspace")) }, "/workspace"},
		{"a pipe", func() error { return unix.Mkfifo(at("top", "workspace"), 0o644) }, "/workspace"},
		{"a loop", func() error { return os.Symlink("etc", at("top", "etc")) }, "/etc/hostname"},
	} {
		for _, layer := range []string{"top", "base"} {
			os.RemoveAll(at(layer, ""))
			os.Mkdir(at(layer, ""), 0o755)
		}
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		switch err := o.uncovered(k.Layers); {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), "at "+tt.want+" or")):
			t.Errorf("%s: %v, want one about %s", tt.name, err, tt.want)
		}
	}

	h := fixedHost()
	h.Git.Repo.HooksPath = "deep/hooks"
	plan, err := Resolve(locked(t, base), "my_agent", h, options())
	if err != nil {
		t.Fatal(err)
	}
	var covers []string
	for _, st := range plan.Steps {
		if o, ok := st.Op.(Image); ok {
			covers = o.Covers
		}
	}
	for _, m := range plan.Steps[len(plan.Steps)-1].Op.(Sandbox).Run.Mounts {
		if own := m.Target == "/cache"; slices.Contains(covers, m.Target) == own {
			t.Errorf("%s: looked for: %v", m.Target, !own)
		}
	}
	for _, want := range []string{"/workspace", "/workspace/.git", "/workspace/lazaret.lock", "/workspace/deep/hooks"} {
		if !slices.Contains(covers, want) {
			t.Errorf("%s is not among %q", want, covers)
		}
	}
}

// TestImageCoversMounted: where podman keeps images in a way of its own, it is
// asked to show one, and told afterwards that this is over.
func TestImageCoversMounted(t *testing.T) {
	dir := t.TempDir()
	log, root, script := filepath.Join(dir, "log"), filepath.Join(dir, "root"), filepath.Join(dir, "podman")
	text := "#!/bin/sh\necho \"$*\" >>" + log + "\ncase $* in *'image mount'*) echo " + root + " ;; esac\n"
	if err := errors.Join(os.WriteFile(script, []byte(text), 0o755), os.MkdirAll(filepath.Join(root, "workspace"), 0o755), os.Symlink("/x", filepath.Join(root, "workspace/.git"))); err != nil {
		t.Fatal(err)
	}
	o := Image{Engine: podman.Engine{Podman: script}, Environ: os.Environ(), Profile: "box", Pinned: lock.PlatformImage{Config: "sha256:aa"}, Covers: []string{"/workspace/.git"}}
	for _, verified := range []bool{true, false} {
		if err := o.look(t.Context(), nil, verified); err == nil || !strings.Contains(err.Error(), "/workspace/.git") {
			t.Errorf("verified before: %v: %v", verified, err)
		}
	}
	said, _ := os.ReadFile(log)
	if strings.Count(string(said), "image mount sha256:aa\n") != 2 || strings.Count(string(said), "image unmount sha256:aa\n") != 2 {
		t.Errorf("podman was asked\n%s", said)
	}
}
