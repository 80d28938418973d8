package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// deepest is how deep a layer may be to be walked through.
const deepest = 1500

var errDeep = fmt.Errorf("more than %d directories deep", deepest)

// node is one name in an upper layer.
type node struct {
	path string // below the layer, "usr/bin/x"
	name string // in its directory
	dir  *os.File
	st   unix.Stat_t
	gone bool // a whiteout: the image's file of that path is deleted
	// opaque: a directory that shows nothing of the image's.
	opaque bool
}

func (n node) kind() uint32 { return n.st.Mode & unix.S_IFMT }

// self is a path that leads to the node itself, whatever it is.
func (n node) self() string { return self(n.dir) + "/" + n.name }

// walk calls f for everything in a layer, names in order, a directory before
// what is in it. It follows no link. Where something is too deep, it has been
// everywhere else when it ends with errDeep: an agent can make such a tree, and
// hides with it what is in it, but nothing beside it.
func walk(layer *os.File, driver string, f func(node) error) error {
	var deep error
	err := walkDir(layer, "", driver, f, 0, &deep)
	if err == nil {
		err = deep
	}
	return err
}

// errSkip is said by f of a directory that is not to be gone into.
var errSkip = errors.New("not into this directory")

func walkDir(dir *os.File, at, driver string, f func(node) error, depth int, deep *error) error {
	if depth > deepest {
		if *deep == nil {
			*deep = fmt.Errorf("%s: %w", brief(at), errDeep)
		}
		return nil
	}
	names, err := list(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		n, skip, err := look(dir, at, name, driver)
		if errors.Is(err, fs.ErrNotExist) || skip {
			continue // the sandbox may be running
		}
		if err != nil {
			return err
		}
		if err := f(n); errors.Is(err, errSkip) {
			continue
		} else if err != nil {
			return err
		}
		if n.gone || !isDir(n.st) {
			continue
		}
		sub, err := openDir(fd(dir), name, beneath|unix.RESOLVE_NO_XDEV)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = walkDir(sub, n.path+"/", driver, f, depth+1, deep)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Marks of fuse-overlayfs. With the kernel's driver, they are names like others.
const (
	whPrefix = ".wh."
	whOpaque = ".wh..wh..opq"
	whOpq    = ".wh..opq"
)

// look reads what a name in a layer stands for.
func look(dir *os.File, at, name, driver string) (n node, skip bool, err error) {
	n = node{path: at + name, name: name, dir: dir}
	if n.st, err = lstat(dir, name); err != nil {
		return n, false, err
	}
	if driver == Fuse && strings.HasPrefix(name, whPrefix) {
		if strings.HasPrefix(name, whPrefix+whPrefix) || name == whOpq {
			return n, true, nil // a mark of the directory's
		}
		n.path, n.gone = at+strings.TrimPrefix(name, whPrefix), true
		return n, false, nil
	}
	switch n.kind() {
	case unix.S_IFCHR:
		n.gone = n.st.Rdev == 0
	case unix.S_IFDIR:
		n.opaque, err = isOpaque(n, driver)
	}
	return n, false, err
}

func isOpaque(n node, driver string) (bool, error) {
	attrs := []string{"user.overlay.opaque"}
	if driver == Fuse {
		attrs = append(attrs, "user.fuseoverlayfs.opaque", "trusted.overlay.opaque")
		sub, err := openDir(fd(n.dir), n.name, beneath)
		if err != nil {
			return false, err
		}
		defer sub.Close()
		for _, mark := range []string{whOpaque, whOpq} {
			if _, err := lstat(sub, mark); err == nil {
				return true, nil
			}
		}
	}
	for _, a := range attrs {
		var v [4]byte
		if n, err := unix.Lgetxattr(n.self(), a, v[:]); err == nil && n == 1 && v[0] == 'y' {
			return true, nil
		}
	}
	return false, nil
}

// under looks at the same path in a lower directory; nil: it has none. A path
// that a sandbox made can be longer than the kernel takes at once.
func under(lower *os.File, path string) (*os.File, unix.Stat_t, error) {
	i := strings.LastIndexByte(path, '/') + 1
	dir, err := openDeep(lower, path[:i])
	var f *os.File
	if err == nil {
		defer dir.Close()
		f, err = openAt(fd(dir), path[i:], unix.O_PATH|unix.O_NOFOLLOW, 0)
	}
	for _, none := range []error{fs.ErrNotExist, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, none) {
			return nil, unix.Stat_t{}, nil
		}
	}
	if err != nil {
		return nil, unix.Stat_t{}, err
	}
	st, err := stat(f)
	return f, st, err
}
