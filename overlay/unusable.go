package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unusable says of a place what is wrong with it, where that is known.
func (p Place) unusable(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	where := show(p.DataRoot)
	switch {
	case errors.Is(err, unix.EROFS):
		return refuse("make it writable, or set storage.data_root to another directory", "%s is on a file system that is mounted read-only: %v", where, err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return refuse(`make room: "lazaret state du" shows what the profiles keep`, "%s is full: %v", where, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return refuse("make it yours and writable, or set storage.data_root to another directory", "%s cannot be written to: %v", where, err)
	case errors.Is(err, unix.ELOOP):
		return refuse("put a directory in its place", "below %s there is a symlink where a directory has to be: %v", where, err)
	case errors.Is(err, unix.ENOTDIR):
		return refuse("put a directory in its place", "below %s there is a file where a directory has to be: %v", where, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}

// filesystems that people keep their homes on, by what statfs(2) says.
var filesystems = map[int64]string{
	0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB", 0x01021994: "tmpfs", 0x794c7630: "an overlay",
	fuseMagic: "FUSE", 0x01021997: "9p", 0x4d44: "FAT", 0xef53: "ext4", 0x9123683e: "Btrfs", 0x58465342: "XFS", 0x2fc12fc1: "ZFS",
}

func filesystem(dir *os.File) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd(dir), &st); err != nil {
		return "an unknown file system"
	}
	if name := filesystems[int64(st.Type)]; name != "" {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", st.Type)
}

// Fleeting tells whether a directory, or what there is of the way to it, is in
// the machine's memory.
func Fleeting(dir string) bool {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			return st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC
		}
		if dir == "/" || !errors.Is(err, unix.ENOENT) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}
