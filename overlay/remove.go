package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// deep is how far down a tree is gone into at once: every level holds a
// descriptor, and whoever made the tree chose its depth.
const deep = 100

// remove removes dir/name, whatever it is: a tree that an agent may have
// filled. It follows no link and leaves the file system for no mount.
func remove(dir *os.File, name string) error {
	st, err := lstat(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isDir(st) {
		return unlink(dir, name, 0)
	}
	top, err := openDir(fd(dir), name, beneath)
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: top, dev: st.Dev}
	for more := true; more; {
		r.moved = false
		if err := r.empty(top, 0); err != nil {
			return fmt.Errorf("removing %s: %w", show(name), err)
		}
		more = r.moved
	}
	return unlink(dir, name, unix.AT_REMOVEDIR)
}

type remover struct {
	top   *os.File
	dev   uint64
	n     int
	moved bool // something was moved up, to be removed in the next round
}

// empty removes everything in a directory.
func (r *remover) empty(dir *os.File, depth int) error {
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := lstat(dir, name)
		if err != nil {
			return err
		}
		if !isDir(st) {
			if err := unlink(dir, name, 0); err != nil {
				return err
			}
			continue
		}
		if depth == deep {
			if err := r.up(dir, name); err != nil {
				return err
			}
			continue
		}
		if err := r.dir(dir, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *remover) dir(dir *os.File, name string, depth int) error {
	sub, err := openDir(fd(dir), name, beneath|unix.RESOLVE_NO_XDEV)
	if err != nil {
		return err
	}
	defer sub.Close()
	if st, err := stat(sub); err != nil || st.Dev != r.dev {
		return errors.Join(err, fmt.Errorf("%s is on another file system", show(name)))
	}
	if err := r.empty(sub, depth+1); err != nil {
		return err
	}
	return unlink(dir, name, unix.AT_REMOVEDIR)
}

// up moves a directory to the top, so that no path gets too deep.
func (r *remover) up(dir *os.File, name string) error {
	r.moved = true
	for {
		r.n++
		err := unix.Renameat2(fd(dir), name, fd(r.top), fmt.Sprintf("deep-%d", r.n), unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}

func unlink(dir *os.File, name string, flags int) error {
	if err := unix.Unlinkat(fd(dir), name, flags); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	return nil
}
