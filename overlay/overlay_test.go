package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const insideVar = "LAZARET_OVERLAY_TEST_INSIDE"

// TestMain runs the tests in a mount namespace of their own, and for whoever is
// not root in a user namespace too, as the helper is.
func TestMain(m *testing.M) {
	if os.Getenv(insideVar) == "1" {
		os.Exit(m.Run())
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	err := cmd.Run()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		os.Exit(ee.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// world is a data_root and an image.
type world struct {
	*testing.T
	data, image, target string
	mounts              Mounts
	driver              string
}

func newWorld(t *testing.T, driver string) *world {
	dir := t.TempDir()
	w := &world{T: t, data: dir + "/data", image: dir + "/image", target: dir + "/target", driver: driver}
	t.Cleanup(func() {
		if err := w.mounts.Close(); err != nil {
			t.Error(err)
		}
	})
	w.files(w.image, "usr/bin/a", "usr/bin/b", "usr/lib/l/x", "usr/lib/l/y", "etc/hosts")
	return w
}

// files makes files whose content is their own name.
func (w *world) files(root string, names ...string) {
	w.Helper()
	for _, n := range names {
		p := filepath.Join(root, n)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(n), 0o644)); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) layer(path string) Layer {
	program, _ := exec.LookPath("fuse-overlayfs")
	return Layer{
		Place: Kept(w.data, "agent"), Name: strings.ReplaceAll(path[1:], "/", "_"), Path: path, Image: Image{"image:1", "sha256:1"},
		Driver: w.driver, Program: program, Run: "0123456789ab",
	}
}

func (w *world) up(l Layer) error {
	w.Helper()
	_, _, err := w.mounts.Up(w.Context(), l, w.image, func(string) string { return "" }, w.target)
	return err
}

// deep makes directories in the kept layer of /usr, each in the one before, with
// a file in the last: as a sandbox does it, step by step.
func (w *world) deep(name string, levels int) {
	w.Helper()
	at, err := unix.Open(w.upper("usr"), unix.O_PATH|unix.O_DIRECTORY, 0)
	w.must(err)
	for range levels {
		w.must(unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		w.must(err)
		unix.Close(at)
		at = next
	}
	f, err := unix.Openat(at, "last", unix.O_CREAT|unix.O_WRONLY, 0o644)
	w.must(err)
	unix.Close(f)
	unix.Close(at)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) sh(script string) string {
	w.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = w.target
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (w *world) upper(name string) string { return filepath.Join(w.data, "agent", name+"_changes") }

// both runs a test with each driver.
func both(t *testing.T, f func(w *world)) {
	for _, d := range []string{Native, Fuse} {
		t.Run(d, func(t *testing.T) { f(newWorld(t, d)) })
	}
}

func TestKeepsAcrossMounts(t *testing.T) {
	both(t, func(w *world) {
		w.must(w.up(w.layer("/usr")))
		w.sh("echo new >bin/c; rm bin/a; rm -r lib/l; mkdir lib/l; echo z >lib/l/z; echo changed >bin/b")
		w.must(w.mounts.Down("usr"))
		w.must(w.up(w.layer("/usr")))
		if got := w.sh("ls bin lib/l; cat bin/b"); got != "bin:\nb\nc\n\nlib/l:\nz\nchanged\n" {
			t.Errorf("got %q", got)
		}
		k, err := Kept(w.data, "agent").Read()
		w.must(err)
		if r := k.Layers["usr"]; r.Driver != w.driver || r.Path != "/usr" || r.Image.Config != "sha256:1" {
			t.Errorf("recorded: %+v", r)
		}
		var got []string
		w.must(Kept(w.data, "agent").Changes("usr", w.image, func(c Change) error {
			got = append(got, c.Kind+" "+c.Path)
			return nil
		}))
		slices.Sort(got)
		if want := []string{"added bin/c", "added lib/l/z", "changed bin/b", "deleted bin/a", "deleted lib/l/x", "deleted lib/l/y"}; !slices.Equal(got, want) {
			t.Errorf("changes: %q", got)
		}
	})
}

// A link in an image is resolved by whoever opens it. First what a mount by
// path does, then that ours does not.
func TestLinksInTheImage(t *testing.T) {
	w := newWorld(t, Native)
	home := t.TempDir()
	w.files(home, ".aws/credentials")
	for name, to := range map[string]string{"data": home, "var": "/"} {
		w.must(os.Symlink(to, filepath.Join(w.image, name)))
	}
	for _, path := range []string{"/data", "/var" + home} {
		naive := t.TempDir()
		for _, d := range []string{"upper", "work", "merged"} {
			w.must(os.Mkdir(filepath.Join(naive, d), 0o755))
		}
		opts := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr", w.image+path, naive, naive)
		w.must(unix.Mount("overlay", naive+"/merged", "overlay", 0, opts))
		got, err := os.ReadFile(naive + "/merged/.aws/credentials")
		unix.Unmount(naive+"/merged", unix.MNT_DETACH)
		if err != nil || string(got) != ".aws/credentials" {
			t.Errorf("%s: the attack does not work, so this proves nothing: %v", path, err)
		}
		err = w.up(w.layer(path))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "is a symlink in the image") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOwnDirectoriesThatAreLinks(t *testing.T) {
	for name, attack := range map[string]func(w *world, home string){
		"profile": func(w *world, home string) { w.must(os.Symlink(home, w.data+"/agent")) },
		"upper":   func(w *world, home string) { w.mk("agent"); w.must(os.Symlink(home, w.upper("usr"))) },
		"work":    func(w *world, home string) { w.mk("agent"); w.must(os.Symlink(home, w.data+"/agent/usr_work")) },
		"merged":  func(w *world, home string) { w.mk("agent"); w.must(os.Symlink(home, w.data+"/agent/usr_merged")) },
		"records": func(w *world, home string) {
			w.mk(".lazaret/state")
			w.must(os.Symlink(home, w.data+"/.lazaret/state/agent"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Native)
			home := t.TempDir()
			w.mk("")
			attack(w, home)
			err := w.up(w.layer("/usr"))
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
			if left, _ := os.ReadDir(home); len(left) > 0 {
				t.Errorf("made %v there", left)
			}
		})
	}
}

func (w *world) mk(dir string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Join(w.data, dir), 0o700))
}

func TestDirectoryOfTheImage(t *testing.T) {
	both(t, func(w *world) {
		w.must(os.MkdirAll(w.image+"/root/x", 0o755))
		w.must(os.Chmod(w.image+"/root", os.ModeSticky|0o750))
		w.must(w.up(w.layer("/root")))
		if got := w.sh("stat -c %a ."); got != "1750\n" {
			t.Errorf("mode %s", got)
		}
		w.must(w.mounts.Down("root"))
		// The image's mode changes: ours follows, until the agent has changed it.
		w.must(os.Chmod(w.image+"/root", 0o700))
		w.must(w.up(w.layer("/root")))
		if got := w.sh("stat -c %a ."); got != "700\n" {
			t.Errorf("mode %s", got)
		}
		w.sh("chmod 711 .")
		w.must(w.mounts.Down("root"))
		w.must(os.Chmod(w.image+"/root", 0o755))
		w.must(w.up(w.layer("/root")))
		if got := w.sh("stat -c %a ."); got != "711\n" {
			t.Errorf("mode %s", got)
		}
		w.must(w.mounts.Down("root"))
		// A directory that the image does not have, and a file.
		w.must(w.up(w.layer("/opt/new/deep")))
		if got := w.sh("stat -c %a .; ls -A"); got != "755\n" {
			t.Errorf("got %q", got)
		}
		w.must(w.mounts.Down("opt_new_deep"))
		if err := w.up(w.layer("/usr/bin/a")); err == nil || !strings.Contains(err.Error(), "is not a directory in the image") {
			t.Errorf("a file: %v", err)
		}
	})
}

// What an agent left where a volume is mounted does not lead the mount away.
func TestLinksUnderMounts(t *testing.T) {
	w := newWorld(t, Native)
	l := w.layer("/usr")
	l.Under = []string{"lib/l", "lib/l/new/deep", "absent/x"}
	w.must(w.up(l))
	w.sh("mv lib moved; ln -s /workspace lib")
	w.must(w.mounts.Down("usr"))
	err := w.up(l)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "/usr/lib is a symlink to /workspace, and something else is to be mounted at /usr/lib/l") {
		t.Errorf("got %v", err)
	}
	l.Under = nil
	w.must(w.up(l)) // nothing of it is mounted any more
}

func TestOthersStayOut(t *testing.T) {
	w := newWorld(t, Native)
	w.mk("agent")
	w.must(os.Chmod(w.data+"/agent", 0o755))
	w.must(w.up(w.layer("/usr")))
	w.sh("cp bin/a suid; chmod 4755 suid")
	for _, d := range []string{"agent", ".lazaret", ".lazaret/state", ".lazaret/state/agent"} {
		if fi, err := os.Stat(filepath.Join(w.data, d)); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, fi.Mode(), err)
		}
	}
}

func TestEngineFiles(t *testing.T) {
	w := newWorld(t, Native)
	w.mk("agent/etc_changes")
	w.files(w.upper("etc"), "hosts", "kept")
	w.must(os.Symlink("/workspace/x", w.upper("etc")+"/resolv.conf"))
	w.must(os.Mkdir(w.upper("etc")+"/hostname", 0o755))
	w.files(w.upper("etc"), "hostname/precious")
	w.must(w.up(w.layer("/etc")))
	if got := w.sh("cat hosts kept; ls; cat hostname.set-aside-*/precious"); got != "etc/hostskepthostname.set-aside-0123456789ab\nhosts\nkept\nhostname/precious" {
		t.Errorf("got %q", got)
	}
}

func TestDriverOfALayer(t *testing.T) {
	w := newWorld(t, Auto)
	w.must(w.up(w.layer("/usr")))
	w.sh("touch new")
	w.must(w.mounts.Down("usr"))
	w.driver = Fuse
	if err := w.up(w.layer("/usr")); err == nil || !strings.Contains(err.Error(), "was made by native") {
		t.Errorf("another driver: %v", err)
	}
	// Without its record, nobody knows whose marks they are.
	w.must(os.Remove(w.data + "/.lazaret/state/agent/=usr.json"))
	w.driver = Auto
	if err := w.up(w.layer("/usr")); err == nil || !strings.Contains(err.Error(), "no record says which driver") {
		t.Errorf("no record: %v", err)
	}
	w.driver = Native
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("ls"); got != "bin\nlib\nnew\n" {
		t.Errorf("got %q", got)
	}
}

func TestChoose(t *testing.T) {
	no := errors.New("no")
	for _, tc := range []struct {
		want         string
		native, fuse error
		got          string
	}{
		{Auto, nil, nil, Native}, {Auto, no, nil, Fuse}, {Auto, no, no, ""},
		{Native, no, nil, ""}, {Fuse, nil, no, ""}, {Fuse, no, nil, Fuse},
	} {
		got, _, err := choose(t.Context(), tc.want, func(_ context.Context, d string) error {
			if d == Native {
				return tc.native
			}
			return tc.fuse
		})
		if err == nil && got != tc.got || err != nil && tc.got != "" {
			t.Errorf("%+v: %q, %v", tc, got, err)
		}
	}
}

// A daemon that died leaves a mount that answers nothing.
func TestDeadFuseMount(t *testing.T) {
	w := newWorld(t, Fuse)
	w.must(w.up(w.layer("/usr")))
	w.sh("echo kept >kept")
	w.must(unix.Kill(w.mounts.up["usr"].daemon.pid, unix.SIGKILL))
	<-w.mounts.up["usr"].daemon.done
	if _, err := os.Stat(w.data + "/agent/usr_merged"); !errors.Is(err, unix.ENOTCONN) {
		t.Fatalf("not dead: %v", err)
	}
	w.mounts.up["usr"].dir.Close() // whoever had it mounted is gone
	w.mounts.up = nil
	w.must(unix.Unmount(w.target, unix.MNT_DETACH))
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("cat kept"); got != "kept\n" {
		t.Errorf("got %q", got)
	}
	// One that lives is somebody's.
	var other Mounts
	_, _, err := other.Up(t.Context(), w.layer("/usr"), w.image, nil, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "something is mounted there already") {
		t.Errorf("a second one: %v", err)
	}
}

func TestHalfMade(t *testing.T) {
	w := newWorld(t, Auto)
	w.mk("agent/usr_changes") // and no record
	w.mk(filepath.Join("agent/.probe-usr/work", "work"))
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("stat -c %a .; ls"); got != "755\nbin\nlib\n" {
		t.Errorf("got %q", got)
	}
	w.must(w.mounts.Down("usr"))
	// Taken away by hand: the record is of nothing.
	w.must(os.RemoveAll(w.upper("usr")))
	w.must(os.RemoveAll(w.data + "/agent/usr_work"))
	w.must(w.up(w.layer("/usr")))
	w.sh("ls bin/a")
}

// Places that are no good say why.
func TestUnusablePlaces(t *testing.T) {
	for _, tc := range []struct{ name, opts, want string }{
		{"full", "size=4k,nr_inodes=4", "is full"},
		{"read-only", "ro", "read-only"},
		{"tmpfs", "size=10m", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Auto)
			w.mk("")
			flags := uintptr(0)
			if tc.opts == "ro" {
				flags, tc.opts = unix.MS_RDONLY, ""
			}
			w.must(unix.Mount("tmpfs", w.data, "tmpfs", flags, tc.opts))
			defer unix.Unmount(w.data, unix.MNT_DETACH)
			err := w.up(w.layer("/usr"))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				w.sh("rm -r lib; mkdir lib; test -z \"$(ls lib)\"")
			}
			w.must(w.mounts.Close())
		})
	}
}

// On another overlay, the kernel's driver does not work, the other one does.
func TestOverlayOnOverlay(t *testing.T) {
	w := newWorld(t, Auto)
	dir := t.TempDir()
	for _, d := range []string{"lower", "upper", "work"} {
		w.must(os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	w.mk("")
	w.must(unix.Mount("overlay", w.data, "overlay", 0, fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,userxattr", dir, dir, dir)))
	defer unix.Unmount(w.data, unix.MNT_DETACH)
	w.must(w.up(w.layer("/usr")))
	w.sh("rm -r lib; mkdir lib; test -z \"$(ls lib)\"; echo x >bin/a")
	k, err := Kept(w.data, "agent").Read()
	w.must(err)
	t.Logf("driver on an overlay: %s", k.Layers["usr"].Driver)
	w.must(w.mounts.Close())
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("ls lib; cat bin/a"); got != "x\n" {
		t.Errorf("got %q", got)
	}
	w.must(w.mounts.Close())
}

// Whatever is in a tree, removing it stays in it.
func TestRemove(t *testing.T) {
	w := newWorld(t, Native)
	home := t.TempDir()
	w.files(home, "precious")
	w.mk("x/d")
	w.must(os.Symlink(home, w.data+"/x/d/out"))
	w.must(os.Symlink("..", w.data+"/x/d/up"))
	deepest := w.data + "/x"
	fd, err := unix.Open(deepest, unix.O_PATH, 0)
	w.must(err)
	for range 1200 { // deeper than a path can say
		w.must(unix.Mkdirat(fd, "deep-1", 0o700))
		next, err := unix.Openat(fd, "deep-1", unix.O_PATH, 0)
		w.must(err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	dir, err := openDir(unix.AT_FDCWD, w.data, 0)
	w.must(err)
	defer dir.Close()
	w.must(remove(dir, "x"))
	w.must(remove(dir, "x"))
	if _, err := os.Stat(home + "/precious"); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(w.data); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// A file system in it is not entered.
	w.mk("y/m")
	w.must(unix.Mount("tmpfs", w.data+"/y/m", "tmpfs", 0, ""))
	w.files(w.data, "y/m/precious")
	if err := remove(dir, "y"); err == nil {
		t.Error("it went through a mount")
	}
	if _, err := os.Stat(w.data + "/y/m/precious"); err != nil {
		t.Error(err)
	}
	w.must(unix.Unmount(w.data+"/y/m", 0))
}

func TestHold(t *testing.T) {
	p := Kept(t.TempDir(), "agent")
	alive := func(string) bool { return false }
	f, err := p.Hold(Holder{Run: "0123456789ab", Workspace: "/ws", Doing: "lazaret launch agent"}, alive)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := p.Hold(Holder{Run: "ffffffffffff"}, alive); !errors.As(err, &held) || held.Holder.Workspace != "/ws" || !strings.Contains(err.Error(), "0123456789ab") {
		t.Errorf("got %v", err)
	}
	// Dead, and its sandbox may live.
	f.Close()
	if _, err := p.Hold(Holder{Run: "ffffffffffff"}, alive); !errors.As(err, &held) || !strings.Contains(held.Do, "lazaret clean") {
		t.Errorf("got %v", err)
	}
	if f, err = p.Hold(Holder{Run: "ffffffffffff"}, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := Release(f); err != nil {
		t.Fatal(err)
	}
	if f, err = p.Hold(Holder{Run: "aaaaaaaaaaaa"}, alive); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestDrift(t *testing.T) {
	both(t, func(w *world) {
		w.must(w.up(w.layer("/usr")))
		w.sh("echo mine >bin/a; echo mine >bin/b; rm lib/l/x; echo new >bin/new")
		w.must(w.mounts.Down("usr"))
		newer := t.TempDir()
		w.files(newer, "usr/bin/a", "usr/bin/new", "usr/lib/l/x", "usr/lib/l/y")
		w.must(os.WriteFile(newer+"/usr/bin/b", []byte("a correction"), 0o644))
		l, old := w.layer("/usr"), w.image
		l.Image.Config = "sha256:2"
		w.image = newer
		now, before, err := w.mounts.Up(t.Context(), l, newer, func(id string) string { return map[string]string{"sha256:1": old}[id] }, w.target)
		w.must(err)
		slices.Sort(now.Hides)
		// bin/a is the same in both images; bin/new came with the second.
		if before == nil || before.Image.Config != "sha256:1" || !slices.Equal(now.Hides, []string{"bin/b", "bin/new"}) || now.Unsure != 0 {
			t.Errorf("%+v, before %+v", now, before)
		}
		w.must(w.mounts.Down("usr"))
		l.Image.Config = "sha256:3"
		now, _, err = w.mounts.Up(t.Context(), l, newer, func(string) string { return "" }, w.target)
		w.must(err)
		if len(now.Hides) != 0 || now.Unsure != 3 {
			t.Errorf("without the old image: %+v", now)
		}
	})
}

// A set-up's layer is added to the kept one as if it had been made there.
func TestKeepASetup(t *testing.T) {
	both(t, func(w *world) {
		w.must(w.up(w.layer("/usr")))
		w.sh("echo one >bin/one; rm bin/a; rm -r lib/l; mkdir d; echo 1 >d/1; echo 2 >d/2; mkdir gone; echo f >file; ln bin/one bin/link")
		w.must(w.mounts.Down("usr"))
		kept := Kept(w.data, "agent")
		l := w.layer("/usr")
		l.Below, l.Place = &kept, Staged(kept, l.Run)
		w.must(w.up(l))
		w.sh(`echo back >bin/a; mkdir -p lib/l; echo n >lib/l/n; rm -r d; mkdir d; echo 3 >d/3; rmdir gone; echo x >gone
			rm file; mkdir file; echo in >file/in; rm bin/b; rm bin/one; chmod 700 bin; mkdir -p new/deep; echo y >new/deep/y`)
		show := "ls -A . bin lib/l d file new/deep; cat bin/a gone file/in d/3 bin/link; stat -c %a bin"
		want := w.sh(show)
		w.must(w.mounts.Down(l.Key()))
		w.must(kept.Keep(Commit{Run: l.Run, Names: []string{"usr"}, Setup: Setup{Commands: "c", Image: "sha256:1"}}))
		w.must(kept.Recover()) // there is nothing to do
		w.must(Discard(w.data, l.Run))
		w.must(w.up(w.layer("/usr")))
		if got := w.sh(show); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		k, err := kept.Read()
		w.must(err)
		if k.Commit != nil || k.Fresh(Setup{Commands: "c", Image: "sha256:1"}, []string{"usr"}) || !k.Fresh(Setup{Commands: "d", Image: "sha256:1"}, nil) ||
			!k.Fresh(Setup{Commands: "c", Image: "sha256:1"}, []string{"usr", "root"}) {
			t.Errorf("recorded: %+v", k)
		}
		for _, dir := range []string{"agent/.setup-" + l.Run, ".lazaret/run/" + l.Run} {
			if _, err := os.Lstat(filepath.Join(w.data, dir)); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
	})
}

// What a killed Keep has not done, Discard does before it removes anything.
func TestKeepIsFinished(t *testing.T) {
	w := newWorld(t, Native)
	kept := Kept(w.data, "agent")
	l := w.layer("/usr")
	l.Below, l.Place = &kept, Staged(kept, l.Run)
	w.must(w.up(l))
	w.sh("echo made >made")
	w.must(w.mounts.Down(l.Key()))
	_, records, err := kept.open()
	w.must(err)
	w.must(writeJSON(records, commitFile, Commit{Run: l.Run, Names: []string{"usr"}}))
	w.must(Discard(w.data, l.Run))
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("cat made"); got != "made\n" {
		t.Errorf("got %q", got)
	}
	// One that had not come that far is thrown away.
	w.must(w.mounts.Down("usr"))
	w.must(w.up(l))
	w.sh("echo lost >lost")
	w.must(w.mounts.Down(l.Key()))
	w.must(Discard(w.data, l.Run))
	w.must(w.up(w.layer("/usr")))
	w.sh("test ! -e lost; cat made")
}

func TestExportImport(t *testing.T) {
	for _, to := range []string{Native, Fuse} {
		both(t, func(w *world) {
			w.must(w.up(w.layer("/usr")))
			w.sh("echo new >bin/c; ln bin/c bin/d; rm bin/a; rm -r lib/l; mkdir lib/l; echo z >lib/l/z; ln -s /nowhere s; chmod 4755 bin/c; touch -d @1 bin lib/l/z; truncate -s 1M sparse; chmod 750 .")
			show := "ls -A . bin lib/l; cat bin/d; readlink s; stat -c '%n %a %Y' bin bin/c lib/l/z sparse; stat -c %h bin/c; stat -c %a ."
			want := w.sh(show)
			w.must(w.mounts.Down("usr"))
			var b bytes.Buffer
			p := Kept(w.data, "agent")
			w.must(export(p, &b))
			w.must(p.Reset([]string{"usr"}, "ffffffffffff"))
			if left, _ := os.ReadDir(w.data + "/agent"); len(left) > 0 {
				t.Errorf("reset leaves %v", left)
			}
			w.must(p.Import(t.Context(), bytes.NewReader(b.Bytes()), "eeeeeeeeeeee", to, w.layer("/usr").Program))
			w.driver = to
			w.must(w.up(w.layer("/usr")))
			if got := w.sh(show); got != want {
				t.Errorf("to %s: got %s\nwant %s", to, got, want)
			}
			var st unix.Stat_t
			w.must(unix.Stat(w.upper("usr")+"/sparse", &st))
			if st.Blocks > 16 {
				t.Errorf("the hole is filled: %d blocks", st.Blocks)
			}
			w.must(w.mounts.Close())
		})
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		p := Kept(dir+"/data", "agent")
		p.Import(t.Context(), bytes.NewReader(data), "eeeeeeeeeeee", Native, "")
		if left, _ := os.ReadDir(dir); len(left) > 1 {
			t.Errorf("made %v", left)
		}
	})
}

// export is Export of what has nothing too deep.
func export(p Place, w io.Writer) error {
	left, err := p.Export(w)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%d directories were left out", len(left)))
	}
	return err
}

// TestExportOfDeepTrees: a sandbox that makes directories without end keeps
// nobody from the rest; and what is exported is taken, also where its path is
// longer than the kernel takes at once.
func TestExportOfDeepTrees(t *testing.T) {
	w := newWorld(t, Native)
	w.must(w.up(w.layer("/usr")))
	w.sh("echo kept >z")
	w.must(w.mounts.Down("usr"))
	w.deep("d", deepest+50)
	w.deep(strings.Repeat("long", 10), 200)
	var b bytes.Buffer
	p := Kept(w.data, "agent")
	left, err := p.Export(&b)
	w.must(err)
	if len(left) != 1 || !strings.HasPrefix(left[0].Path, "/usr/d/d/") {
		t.Fatalf("left out: %.1000v", left)
	}
	w.must(p.Reset([]string{"usr"}, "ffffffffffff"))
	w.must(p.Import(t.Context(), bytes.NewReader(b.Bytes()), "eeeeeeeeeeee", Native, ""))
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("cat z"); got != "kept\n" {
		t.Errorf("%q", got)
	}
	at, err := unix.Open(w.target, unix.O_PATH|unix.O_DIRECTORY, 0)
	for range 200 {
		w.must(err)
		var next int
		next, err = unix.Openat(at, strings.Repeat("long", 10), unix.O_PATH|unix.O_DIRECTORY, 0)
		unix.Close(at)
		at = next
	}
	w.must(err)
	var st unix.Stat_t
	w.must(unix.Fstatat(at, "last", &st, 0))
	unix.Close(at)
}

func BenchmarkMount(b *testing.B) {
	for _, d := range []string{Native, Fuse} {
		b.Run(d, func(b *testing.B) {
			dir := b.TempDir()
			os.MkdirAll(dir+"/image/usr/bin", 0o755)
			program, _ := exec.LookPath("fuse-overlayfs")
			l := Layer{Place: Kept(dir+"/data", "agent"), Name: "usr", Path: "/usr", Driver: d, Program: program, Run: "0123456789ab"}
			var m Mounts
			for b.Loop() {
				if _, _, err := m.Up(b.Context(), l, dir+"/image", nil, dir+"/target"); err != nil {
					b.Fatal(err)
				}
				if err := m.Down("usr"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChanges compares two thousand changed files with the image's, as
// "lazaret state diff" and a launch on a newer image do.
func BenchmarkChanges(b *testing.B) {
	dir := b.TempDir()
	l := Layer{Place: Kept(dir+"/data", "agent"), Name: "usr", Path: "/usr", Image: Image{"image:1", "sha256:1"}, Driver: Native, Run: "0123456789ab"}
	for i := range 2000 {
		sub := fmt.Sprintf("%s/image/usr/%d", dir, i/100)
		if err := errors.Join(os.MkdirAll(sub, 0o755), os.WriteFile(fmt.Sprintf("%s/%d", sub, i), []byte("old"), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	var m Mounts
	if _, _, err := m.Up(b.Context(), l, dir+"/image", nil, dir+"/target"); err != nil {
		b.Fatal(err)
	}
	for i := range 2000 {
		if err := os.WriteFile(fmt.Sprintf("%s/target/%d/%d", dir, i/100, i), []byte("new"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := m.Down("usr"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := l.Place.Changes("usr", dir+"/image", func(Change) error { n++; return nil }); err != nil || n != 2000 {
			b.Fatal(n, err)
		}
	}
}

// Large trees and large files: all of it with LAZARET_LONG=1.
func TestLarge(t *testing.T) {
	files, size := 2000, int64(8<<20)
	if os.Getenv("LAZARET_LONG") != "" {
		files, size = 50000, 4<<30+1
	}
	both(t, func(w *world) {
		w.must(w.up(w.layer("/usr")))
		for i := range files {
			if i%1000 == 0 {
				w.must(os.MkdirAll(fmt.Sprintf("%s/many/%d", w.target, i/1000), 0o755))
			}
			w.must(os.WriteFile(fmt.Sprintf("%s/many/%d/%d", w.target, i/1000, i), []byte("x"), 0o644))
		}
		big, err := os.Create(w.target + "/big")
		w.must(err)
		block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for left := size; left > 0; left -= int64(len(block)) {
			_, err := big.Write(block[:min(left, int64(len(block)))])
			w.must(err)
		}
		w.must(big.Close())
		w.must(w.mounts.Down("usr"))
		w.must(w.up(w.layer("/usr")))
		fi, err := os.Stat(w.target + "/big")
		w.must(err)
		if got := w.sh("find many -type f | wc -l"); got != fmt.Sprintln(files) || fi.Size() != size {
			t.Errorf("%s files, %d bytes", got, fi.Size())
		}
		w.must(w.mounts.Down("usr"))
		p, n := Kept(w.data, "agent"), 0
		w.must(p.Changes("usr", w.image, func(Change) error { n++; return nil }))
		u, err := p.Usage("usr", w.driver)
		w.must(err)
		if n < files || u.Files != int64(files)+1 || u.Bytes < size {
			t.Errorf("%d changes, %+v", n, u)
		}
		w.must(p.Reset([]string{"usr"}, "ffffffffffff"))
	})
}
