package gitshadow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// smallFile bounds what is read of a file that git keeps short, in bytes.
const smallFile = 1 << 20

// packedMax bounds a packed-refs file: a million refs.
const packedMax = 64 << 20

// writeWhole writes a small file of lazaret's own, so that there is the whole of
// it or what was there before: a half-written one is what a kill leaves.
func writeWhole(path string, text []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// readFile reads a regular file that is no link and has at most limit bytes.
// What a repository holds may be a named pipe, a device or a link: nothing of
// that is opened.
func readFile(path string, limit int64) (string, error) {
	f, err := openSolid(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("%s is larger than %d bytes", filepath.Base(path), limit)
	}
	return string(b), nil
}

// openSolid opens a file to be read, by a path in which there is no link: the
// directories on the way may be an agent's to replace.
func openSolid(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// isDir tells whether a directory is there that is no link.
func isDir(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// fileSize is a file's size in bytes; 0 where there is none.
func fileSize(path string) int64 {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// within tells whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// real is where a path that is written in dir leads.
func real(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = dir + "/" + path // not joined: "link/.." is not nothing
	}
	return filepath.EvalSymlinks(path)
}
