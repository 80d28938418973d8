package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxFile is the most bytes that a config file or a lock may have.
const MaxFile = 4 << 20

// ErrTooLarge is a file with more than that.
var ErrTooLarge = errors.New("is larger than 4 MiB")

// ReadFile reads a config file that may have been put there by somebody else:
// a repository can carry a lazaret.toml that is a link to /proc/self/environ
// or to /dev/zero, or a FIFO that nobody writes to. So the last component is
// not followed when it is a link, opening does not block, and only regular
// files of at most 4 MiB are read. A missing file is os.ErrNotExist. The user's
// own file, which is often a link into a collection of such files, is theirs to
// link: a caller resolves its path first.
func ReadFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, &Error{File: path, Msg: "is a symbolic link", hint: "put the file itself there"}
	case errors.Is(err, unix.ENXIO): // a socket
		return nil, notRegular(path)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", Show(path), err)
	}
	return readOpen(fd, path)
}

// ErrLeads is a path with a link on the way, or out of the directory that it is to
// stay in.
var ErrLeads = errors.New("a link is on the way there")

// ReadBeneath reads a file as ReadFile does, by a path relative to dir that has no
// link on the way and stays in it, or else gives ErrLeads: what is looked at and
// what is read are one file, whoever moves things meanwhile.
func ReadBeneath(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Show(path), err)
	}
	defer d.Close()
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(int(d.Fd()), name, &how)
		switch {
		case err == nil:
			return readOpen(fd, path)
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN) && tries < beneathTries:
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("reading %s: %w", Show(path), ErrLeads)
		case errors.Is(err, unix.ENXIO): // a socket
			return nil, notRegular(path)
		default:
			return nil, fmt.Errorf("reading %s: %w", Show(path), err)
		}
	}
}

// beneathTries is how often a path is opened while the kernel says that something
// on the way is being moved.
const beneathTries = 100

// readOpen reads and closes a file that was opened.
func readOpen(fd int, path string) ([]byte, error) {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()

	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Show(path), err)
	}
	if !fi.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	// The size is only what the file says: files in /proc say 0.
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Show(path), err)
	}
	if len(data) > MaxFile {
		return nil, &Error{File: path, Msg: ErrTooLarge.Error(), cause: ErrTooLarge}
	}
	return data, nil
}

func notRegular(path string) error {
	return &Error{File: path, Msg: "is not a regular file", hint: "put a regular file there"}
}
