package config

import (
	"errors"
	"fmt"
	"io"
	"os"

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
