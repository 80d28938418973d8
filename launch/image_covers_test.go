package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lazaret/launch/podman"
	"lazaret/lock"
)

// TestImageCovers: podman mounts where a link in the image leads, so that an
// image with one at what lazaret covers, or above it, is refused, in whichever of
// its layers it is, unless a layer above has taken it away; also where the image
// was verified before. What the layers show together is the kernel's to say, so
// that this runs with mounts of its own.
func TestImageCovers(t *testing.T) {
	dir := os.Getenv(inNamespace)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestImageCovers$", "-test.v")
		cmd.Env = append(os.Environ(), inNamespace+"="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s := storage{t, dir}
	k := s.inspected("top", "base").known()
	at := func(layer, name string) string { return filepath.Join(s.path("overlay/"+layer+"/diff"), name) }
	// A name that ends with "/" is a directory, with "!" one that shows nothing of
	// the layer below, with "|" a pipe and with "-" one that is deleted; "a>b" is a
	// link; any other is a file.
	put := func(layer string, names []string) error {
		for _, name := range names {
			link, to, isLink := strings.Cut(name, ">")
			path := at(layer, strings.TrimRight(link, "/!|-"))
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			switch name[len(name)-1] {
			case '/':
				err = errors.Join(err, os.MkdirAll(path, 0o755))
			case '!':
				err = errors.Join(err, os.MkdirAll(path, 0o755), unix.Setxattr(path, "user.overlay.opaque", []byte("y"), 0))
			case '|':
				err = errors.Join(err, unix.Mkfifo(path, 0o644))
			case '-':
				err = errors.Join(err, unix.Mknod(path, unix.S_IFCHR, 0))
			default:
				if isLink {
					err = errors.Join(err, os.Symlink(to, path))
				} else {
					err = errors.Join(err, os.WriteFile(path, nil, 0o644))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	o := Image{Profile: "box", Covers: []string{"/workspace", "/workspace/.git", "/etc/hostname"}, Memory: Memory{Run: dir}}
	for _, tt := range []struct {
		name      string
		top, base []string
		want      string
	}{
		{"nothing", nil, nil, ""},
		{"directories and files", []string{"workspace/.git/"}, []string{"etc/hostname"}, ""},
		{"a link", nil, []string{"workspace/.git>/elsewhere"}, "/workspace/.git"},
		{"a link in a directory of both", []string{"workspace/"}, []string{"workspace/.git>/elsewhere"}, "/workspace/.git"},
		{"a link above", []string{"workspace>/proc/1/root"}, nil, "/workspace"},
		{"a pipe", []string{"workspace|"}, nil, "/workspace"},
		{"a pipe below", nil, []string{"workspace|"}, "/workspace"},
		{"a loop", []string{"etc>etc"}, nil, "/etc/hostname"},
		{"a link in a file's place", []string{"etc/hostname>/x"}, []string{"etc/hostname"}, "/etc/hostname"},
		{"a link in a directory's place", []string{"workspace>etc"}, []string{"workspace/.git/"}, "/workspace"},
		{"a link in a link's place", []string{"workspace>a"}, []string{"workspace>b"}, "/workspace"},
		{"a file in a link's place", []string{"etc/hostname"}, []string{"etc/hostname>/x"}, ""},
		{"a directory in a link's place", []string{"workspace/.git/"}, []string{"workspace/.git>/x"}, ""},
		{"a parent in a link's place", []string{"workspace/.git/"}, []string{"workspace>x"}, ""},
		{"a deleted link", []string{"workspace/.git-"}, []string{"workspace/.git>/x"}, ""},
		{"a deleted parent", []string{"workspace-"}, []string{"workspace/.git>/x"}, ""},
		{"a parent made again", []string{"workspace!"}, []string{"workspace/.git>/x"}, ""},
		{"a parent made again with a link", []string{"workspace!", "workspace/.git>/y"}, []string{"workspace/.git/"}, "/workspace/.git"},
		{"a parent made again beside it", []string{"etc!"}, []string{"workspace/.git>/x"}, "/workspace/.git"},
		{"a file in the parent's place", []string{"etc"}, []string{"etc/hostname>/x"}, ""},
		{"another link deleted", []string{"etc/hostname-"}, []string{"etc/hostname>/x", "workspace>x"}, "/workspace"},
	} {
		for _, layer := range []string{"top", "base"} {
			os.RemoveAll(at(layer, ""))
			os.Mkdir(at(layer, ""), 0o755)
		}
		if err := errors.Join(put("base", tt.base), put("top", tt.top)); err != nil {
			t.Fatal(err)
		}
		for _, verified := range []bool{true, false} {
			switch err := o.look(t.Context(), k.Layers, verified); {
			case tt.want == "" && err != nil:
				t.Errorf("%s, verified before: %v: %v", tt.name, verified, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), "at "+tt.want+" or")):
				t.Errorf("%s, verified before: %v: %v, want one about %s", tt.name, verified, err, tt.want)
			}
		}
	}
}

// TestImageCoversPlan: the covers are all that the plan mounts but the profile's
// own volumes.
func TestImageCoversPlan(t *testing.T) {
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
