package overlay

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// hidesMost bounds the list of a record.
const hidesMost = 1000

// drift finds which files of the layer stand before files of the new image
// that are not what they were in the old one: the image's correction does not
// arrive, or a database does not say what is installed. It is told for the
// person's good: whatever of an agent's cannot be compared is only counted, and
// keeps nobody from launching.
func (b *builder) drift(old string) error {
	var was *os.File
	if old != "" {
		root, err := openDir(unix.AT_FDCWD, old, 0)
		if err != nil {
			return err
		}
		defer root.Close()
		was, err = imageDir(root, b.Path)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			return err
		}
		if was != nil {
			defer was.Close()
		}
	}
	now := b.lower[len(b.lower)-1]
	err := walk(b.upper, b.now.Driver, func(n node) error {
		if n.gone || isDir(n.st) {
			return nil
		}
		hides, err := hides(n.path, was, now)
		if err != nil || hides && old == "" {
			b.now.Unsure++
		} else if hides {
			b.hide(n.path)
		}
		return nil
	})
	if err != nil {
		b.now.Unsure++
	}
	return nil
}

// hides tells whether the image has a file of that path which it had otherwise
// before; was is nil where it had not even the directory.
func hides(path string, was, now *os.File) (bool, error) {
	hidden, hst, err := under(now, path)
	if err != nil || hidden == nil {
		return false, err
	}
	defer hidden.Close()
	if was == nil {
		return true, nil
	}
	before, bst, err := under(was, path)
	if err != nil || before == nil {
		return err == nil, err
	}
	defer before.Close()
	same, err := sameFile(before, bst, hidden, hst)
	return !same, err
}

func (b *builder) hide(path string) {
	if len(b.now.Hides) == hidesMost {
		b.now.HidesMore++
		return
	}
	b.now.Hides = append(b.now.Hides, path)
}

// sameFile tells whether two files of images are the same: times do not count,
// which a build sets as it likes.
func sameFile(a *os.File, ast unix.Stat_t, b *os.File, bst unix.Stat_t) (bool, error) {
	if ast.Mode != bst.Mode || ast.Uid != bst.Uid || ast.Gid != bst.Gid {
		return false, nil
	}
	switch ast.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if ast.Size != bst.Size {
			return false, nil
		}
		return sameContent(a, b, ast.Size)
	case unix.S_IFLNK:
		x, xerr := readlink(a)
		y, yerr := readlink(b)
		return x == y, errors.Join(xerr, yerr)
	}
	return ast.Rdev == bst.Rdev, nil
}

func readlink(f *os.File) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd(f), "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// reopen opens for reading what was opened as a place only: a regular file.
func reopen(f *os.File) (*os.File, error) {
	n, err := unix.Open(self(f), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(n), f.Name()), nil
}

// sameContent compares two regular files of size bytes.
func sameContent(a, b *os.File, size int64) (bool, error) {
	x, err := reopen(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := reopen(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	// One byte more finds the end. Most files are small, and there may be many.
	most := min(size+1, 64<<10)
	p, q := make([]byte, most), make([]byte, most)
	for {
		n, err := io.ReadFull(x, p)
		m, merr := io.ReadFull(y, q)
		if n != m || !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		switch {
		case err == nil && merr == nil:
			continue
		case (err == io.EOF || err == io.ErrUnexpectedEOF) && err == merr:
			return true, nil
		}
		return false, errors.Join(err, merr)
	}
}
