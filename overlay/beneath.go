package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openDir opens a directory, to go on from and to mount, not to read.
func openDir(at int, path string, resolve uint64) (*os.File, error) {
	return openAt(at, path, unix.O_PATH|unix.O_DIRECTORY, resolve)
}

func openAt(at int, path string, flags int, resolve uint64) (*os.File, error) {
	for {
		fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve})
		// EAGAIN: something was renamed meanwhile, and it cannot say where.
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: brief(path), Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

func fd(f *os.File) int { return int(f.Fd()) }

// self is a path that leads to what f is, wherever that lies by now.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(fd(f)) }

// makeDirs makes a directory below root, and those above it, each nobody
// else's to enter, and opens it.
func makeDirs(root *os.File, path string) (*os.File, error) {
	at, err := openDir(fd(root), ".", beneath)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(path, "/") {
		next, err := makeDir(at, name, 0o700)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
		if err := unix.Fchmodat(unix.AT_FDCWD, self(at), 0o700, 0); err != nil {
			at.Close()
			return nil, fmt.Errorf("closing %s to others: %w", path, err)
		}
	}
	return at, nil
}

// makeDir makes a directory where there is none and opens it.
func makeDir(at *os.File, name string, mode uint32) (*os.File, error) {
	if err := unix.Mkdirat(fd(at), name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &fs.PathError{Op: "mkdir", Path: brief(name), Err: err}
	}
	return openDir(fd(at), name, beneath)
}

// lstat looks at one name in a directory.
func lstat(at *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd(at), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return st, &fs.PathError{Op: "stat", Path: brief(name), Err: err}
	}
	return st, nil
}

func stat(f *os.File) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd(f), &st)
	return st, err
}

func isDir(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// list reads a directory that was opened by openDir.
func list(dir *os.File) ([]string, error) {
	f, err := openAt(fd(dir), ".", unix.O_RDONLY|unix.O_DIRECTORY, beneath)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// imageDir opens a directory of the image, or returns nil where it has none.
// It goes no way that is not the path itself: a link in an image is resolved
// by whoever looks, and here that is the host.
func imageDir(root *os.File, path string) (*os.File, error) {
	rel := strings.TrimPrefix(path, "/")
	dir, err := openDir(fd(root), rel, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	}
	if link, to := firstLink(root, rel); link != "" {
		return nil, refuse("name the directory it leads to, "+strconv.Quote(to)+", or another one",
			"persistent_dirs: /%s is a symlink in the image, to %s", show(link), show(to))
	}
	if errors.Is(err, unix.ENOTDIR) {
		return nil, refuse("name a directory", "persistent_dirs: %s is not a directory in the image", show(path))
	}
	return nil, fmt.Errorf("opening %s in the image: %w", show(path), err)
}

// firstLink finds the part of a path that is a symlink, for the message.
func firstLink(root *os.File, rel string) (link, to string) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		path := strings.Join(parts[:i+1], "/")
		f, err := openAt(fd(root), path, unix.O_PATH|unix.O_NOFOLLOW, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
		if err != nil {
			return "", ""
		}
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(fd(f), "", buf)
		f.Close()
		if err == nil {
			return path, string(buf[:n])
		}
	}
	return "", ""
}

// show makes a name that somebody else chose harmless to print.
func show(s string) string {
	q := strconv.QuoteToGraphic(s)
	if q == `"`+s+`"` && !strings.ContainsAny(s, " ") {
		return s
	}
	return strconv.Quote(s)
}

// brief is show for a path of any length.
func brief(path string) string {
	const most = 100
	if r := []rune(path); len(r) > most {
		return show(string(r[:most]) + "…")
	}
	return show(path)
}
