package gitshadow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// beneath reads a directory that a sandbox can write to. Nothing is opened but
// what really lies below it, on its own file system, with no link on the way;
// no pipe or device is waited for, and nothing but a regular file is read.
type beneath struct{ fd int }

// openBeneath opens a directory that lazaret made, by a path without links.
func openBeneath(path string) (*beneath, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &beneath{fd}, nil
}

// beneathFile takes over a directory that is open already.
func beneathFile(f *os.File) (*beneath, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &beneath{fd}, nil
}

func (d *beneath) close() { unix.Close(d.fd) }

func (d *beneath) open(name string, flags uint64) (*os.File, error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	for {
		fd, err := unix.Openat2(d.fd, name, &unix.OpenHow{
			Flags:   flags,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
		})
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue // something was renamed meanwhile
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// kind tells what lies at name, without opening it.
func (d *beneath) kind(name string) (fs.FileMode, error) {
	f, err := d.open(name, unix.O_PATH)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Mode(), nil
}

// regular opens a regular file. What is none is not even opened for reading: a
// device may act when it is.
func (d *beneath) regular(name string) (*os.File, fs.FileInfo, error) {
	p, err := d.open(name, unix.O_PATH)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	fi, err := p.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", show(name))
	}
	// The same file, whatever lies at the name by now.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", p.Fd()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), fi, nil
}

// read reads a regular file of at most limit bytes.
func (d *beneath) read(name string, limit int64) ([]byte, error) {
	f, _, err := d.regular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", show(name), limit)
	}
	return b, nil
}

// names lists a directory, up to most entries.
func (d *beneath) names(name string, most int) ([]string, error) {
	f, err := d.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// list lists a directory with what kind each entry is, up to most entries. It
// costs a part of asking for each, where nobody is writing.
func (d *beneath) list(name string, most int) ([]fs.DirEntry, error) {
	f, err := d.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// By a name that can be opened: some file systems do not say the kind.
	g, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, err
	}
	defer g.Close()
	list, err := g.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}
