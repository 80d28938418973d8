package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unnamed is a file that gets its name when it is whole. Whatever ends lazaret
// before, the kernel takes it away: it may hold logins.
type unnamed struct {
	*os.File
	temporary string // the name it has all the same, where a file system knows no files without one
}

// newUnnamed makes a file in a directory, for the person alone.
func newUnnamed(dir string) (*unnamed, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err == nil {
		return &unnamed{File: f}, nil
	}
	if f, err = os.CreateTemp(dir, ".lazaret-export-"); err != nil {
		return nil, err
	}
	return &unnamed{f, f.Name()}, nil
}

// name names it, if nothing has that name yet.
func (u *unnamed) name(path string) error {
	if u.temporary == "" {
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", u.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}
	err := unix.Renameat2(unix.AT_FDCWD, u.temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if err == nil {
		u.temporary = ""
	}
	return err
}

// Close closes it. Without a name, it is gone.
func (u *unnamed) Close() error {
	if u.temporary != "" {
		os.Remove(u.temporary)
	}
	return u.File.Close()
}
