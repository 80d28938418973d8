package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// uppers makes and opens the layer's own three directories.
func (b *builder) uppers() error {
	made := false
	switch err := unix.Mkdirat(fd(b.dir), changes(b.Name), 0o700); {
	case err == nil:
		made = true
	case !errors.Is(err, unix.EEXIST):
		return b.Place.unusable(&fs.PathError{Op: "mkdir", Path: changes(b.Name), Err: err})
	}
	var err error
	if b.upper, err = b.own(changes(b.Name)); err != nil {
		return err
	}
	if b.before == nil && !made {
		if err := b.adopt(); err != nil {
			return err
		}
	}
	if made {
		b.before = nil // what is recorded is of a layer that somebody took away
	}
	if err := b.setTop(made); err != nil {
		return b.Place.unusable(err)
	}
	for _, name := range []string{work(b.Name), merged(b.Name)} {
		if err := unix.Mkdirat(fd(b.dir), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return b.Place.unusable(&fs.PathError{Op: "mkdir", Path: name, Err: err})
		}
	}
	if b.work, err = b.own(work(b.Name)); err != nil {
		return err
	}
	if b.layers.merged, err = b.free(merged(b.Name)); err != nil {
		return err
	}
	if b.Path == "/etc" {
		return b.forget(engineFiles)
	}
	return nil
}

// own opens one of the layer's directories, which must be one.
func (b *builder) own(name string) (*os.File, error) {
	f, err := openDir(fd(b.dir), name, beneath)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, refuse("look at what it is and move it away", "%s is not a directory", show(filepath.Join(b.Place.DataRoot, b.Place.Dir, name)))
	}
	if err != nil {
		return nil, b.Place.unusable(err)
	}
	return f, nil
}

// adopt takes a layer of which nothing is recorded: an empty one, as a killed
// launch leaves it, or one whose driver the person names.
func (b *builder) adopt() error {
	names, err := list(b.upper)
	if err != nil {
		return err
	}
	if len(names) > 0 && b.Layer.Driver == Auto {
		return refuse(`write overlay = "native" or "fuse-overlayfs" in [storage], whichever made it, or move it away`,
			"%s holds something, and no record says which driver made it", show(filepath.Join(b.Place.DataRoot, b.Place.Dir, changes(b.Name))))
	}
	return nil
}

// setTop gives the layer's directory the owner and mode that the image's has:
// it stands for that. Once the agent has changed them, they stay.
func (b *builder) setTop(made bool) error {
	st, err := stat(b.upper)
	if err != nil {
		return err
	}
	have := Top{st.Mode & 0o7777, st.Uid, st.Gid}
	if have == b.top || !made && b.before != nil && have != b.before.Top {
		return nil
	}
	if err := unix.Fchownat(fd(b.upper), "", int(b.top.UID), int(b.top.GID), unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("giving %s its owner: %w", changes(b.Name), err)
	}
	return unix.Fchmodat(unix.AT_FDCWD, self(b.upper), b.top.Mode, 0)
}

// free opens the directory to mount on. A FUSE mount whose daemon has died is
// taken away; one that lives has another writer.
func (b *builder) free(name string) (*os.File, error) {
	path := filepath.Join(b.Place.DataRoot, b.Place.Dir, name)
	for range 8 { // they can lie on one another
		f, err := openDir(fd(b.dir), name, beneath)
		switch {
		case isDead(f, err):
			if f != nil {
				f.Close()
			}
			if err := unmount(filepath.Join(self(b.dir), name)); err != nil {
				return nil, refuse("run \"fusermount3 -u "+show(path)+"\"", "%s: a dead FUSE mount is in the way: %v", show(path), err)
			}
			continue
		case err != nil:
			return nil, b.Place.unusable(err)
		}
		inside, err := sameMount(f, b.dir)
		if err != nil || !inside {
			f.Close()
			return nil, errors.Join(err, refuse("find out who uses it, then run \"podman unshare umount "+show(path)+"\"", "%s: something is mounted there already", show(path)))
		}
		return f, nil
	}
	return nil, refuse("run \"fusermount3 -u "+show(path)+"\"", "%s: a dead FUSE mount is in the way and does not go", show(path))
}

// isDead tells whether what was opened is a FUSE mount without its daemon.
// Opening alone may not ask it.
func isDead(f *os.File, err error) bool {
	if err != nil {
		return errors.Is(err, unix.ENOTCONN)
	}
	var st unix.Statfs_t
	return errors.Is(unix.Fstatfs(fd(f), &st), unix.ENOTCONN)
}

func sameMount(a, b *os.File) (bool, error) {
	var x, y unix.Statx_t
	if err := errors.Join(
		unix.Statx(fd(a), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x),
		unix.Statx(fd(b), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &y),
	); err != nil {
		return false, err
	}
	return x.Mnt_id == y.Mnt_id, nil
}

// engineFiles are what the engine gives every container in /etc. A copy in the
// layer, left by a run without the engine's file over it, would name servers
// and hosts of another day, and a link there would lead the mount elsewhere.
var engineFiles = []string{"hostname", "hosts", "resolv.conf"}

// forget takes files out of the layer. What is not a file is set aside, since
// somebody made it with a purpose.
func (b *builder) forget(names []string) error {
	for _, name := range names {
		st, err := lstat(b.upper, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if isDir(st) {
			err = unix.Renameat2(fd(b.upper), name, fd(b.upper), name+".set-aside-"+b.Run, unix.RENAME_NOREPLACE)
		} else {
			err = unix.Unlinkat(fd(b.upper), name, 0)
		}
		if err != nil {
			return fmt.Errorf("making way for /etc/%s: %w", name, err)
		}
		unix.Unlinkat(fd(b.upper), ".wh."+name, 0)
	}
	return nil
}

// probePrefix begins the name of a directory in which a driver is tried.
const probePrefix = ".probe-"

// probe tries a driver where the layer is: whether it mounts says little about
// whether what is deleted stays deleted.
func (b *builder) probe(ctx context.Context, driver string) error {
	at := probePrefix + b.Key()
	if err := remove(b.dir, at); err != nil {
		return err
	}
	top, err := makeDir(b.dir, at, 0o700)
	if err != nil {
		return b.Place.unusable(err)
	}
	defer func() { remove(b.dir, at) }()
	defer top.Close()
	var l layers
	defer func() { l.close() }()
	for _, d := range []struct {
		name string
		into **os.File
	}{{"lower", nil}, {"upper", &l.upper}, {"work", &l.work}, {"merged", &l.merged}} {
		f, err := makeDir(top, d.name, 0o755)
		if err != nil {
			return b.Place.unusable(err)
		}
		if d.into == nil {
			l.lower = []*os.File{f}
			continue
		}
		*d.into = f
	}
	in := self(l.lower[0])
	if err := errors.Join(os.Mkdir(in+"/d", 0o755), os.WriteFile(in+"/d/f", []byte("x"), 0o644), os.WriteFile(in+"/g", nil, 0o644)); err != nil {
		return b.Place.unusable(err)
	}
	// A file of another owner first, without any driver: where that is
	// impossible, none helps.
	if err := os.WriteFile(self(l.upper)+"/owned", nil, 0o600); err != nil {
		return b.Place.unusable(err)
	}
	if err := os.Lchown(self(l.upper)+"/owned", 1, 1); err != nil && !errors.Is(err, unix.EINVAL) {
		return refuse("set storage.data_root to a directory on a local disk",
			"%s is on %s, which does not let files belong to the sandbox's other users: %v", show(b.Place.DataRoot), filesystem(top), err)
	}
	var d *daemon
	if driver == Fuse {
		d, err = l.fuse(ctx, b.Program, b.Label, FuseName(b.Run, b.Key()))
	} else {
		err = l.native(b.Label)
	}
	if err != nil {
		return err
	}
	defer func() {
		unmount(filepath.Join(self(top), "merged"))
		if d != nil {
			d.end()
		}
	}()
	return try(top, driver)
}

// try does what package managers do.
func try(top *os.File, driver string) error {
	m, err := openDir(fd(top), "merged", beneath)
	if err != nil {
		return err
	}
	defer m.Close()
	at := self(m)
	if err := errors.Join(os.Remove(at+"/d/f"), os.Remove(at+"/d"), os.Mkdir(at+"/d", 0o755), os.Remove(at+"/g")); err != nil {
		return err
	}
	// Where a new file is put in the place of the image's and then deleted, all
	// releases of fuse-overlayfs up to 1.10 at least show the image's again.
	// That is no reason to have no state at all.
	if driver != Fuse {
		if err := errors.Join(os.WriteFile(at+"/new", []byte("x"), 0o644), os.Rename(at+"/new", at+"/g"), os.Remove(at+"/g")); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(at + "/d")
	if _, gerr := os.Lstat(at + "/g"); err != nil || len(left) > 0 || !errors.Is(gerr, fs.ErrNotExist) {
		return fmt.Errorf("what was deleted comes back (%v, %d left, %v)", err, len(left), gerr)
	}
	return nil
}
