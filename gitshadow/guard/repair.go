package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// AsideSuffix is what a thing that was moved aside has at the end of its name.
const AsideSuffix = ".lazaret-quarantine"

var asideName = regexp.MustCompile(regexp.QuoteMeta(AsideSuffix) + `(-[0-9]+)?$`)

func isAside(name string) bool {
	return strings.Contains(name, AsideSuffix) && asideName.MatchString(name)
}

// ErrOther is a thing that is not the one that was found any more.
var ErrOther = errors.New("it is another one by now")

// Do repairs one finding and says what was done. It follows no link, and
// nothing is removed. No sandbox may be running that could write there, but
// for Strip, which works on the open file.
func (f Finding) Do() (did string, err error) {
	dir, base, err := parent(string(f.Root), string(f.Path))
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	switch f.Repair {
	case Strip:
		return strip(dir, base, f.Inode)
	case Aside:
		return aside(dir, base, f)
	}
	return "", errors.New("nothing can be done about it here")
}

// parent opens the directory that a path below root lies in.
func parent(root, rel string) (fd int, base string, err error) {
	if rel == "" {
		return -1, "", errors.New("it is the directory itself")
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if fd, err = unix.Open(root, flags, 0); err != nil {
		return -1, "", err
	}
	dir, base := path.Split(rel)
	for _, name := range strings.Split(strings.Trim(dir, "/"), "/") {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, flags, 0)
		unix.Close(fd)
		if err != nil {
			return -1, "", err
		}
		fd = next
	}
	return fd, base, nil
}

func strip(dir int, base string, ino uint64) (string, error) {
	// As a place, not to be read: its owner may have left himself no leave to.
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != ino || int(st.Uid) != os.Getuid() {
		return "", ErrOther
	}
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o777); err != nil {
		return "", err
	}
	return fmt.Sprintf("mode %04o is %04o now", st.Mode&0o7777, st.Mode&0o777), nil
}

// aside renames a thing to a name that nothing looks for, in the same
// directory: what it held is at hand, and no file system has to be crossed.
func aside(dir int, base string, f Finding) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", err
	}
	if f.Inode != 0 && st.Ino != f.Inode {
		return "", ErrOther
	}
	to, err := renameAside(dir, base)
	if err != nil {
		return "", err
	}
	if f.Kind == Repository && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := behead(dir, to); err != nil {
			return "", err
		}
	}
	return "is " + to + " now", nil
}

// renameAside renames to the first name that is free.
func renameAside(dir int, base string) (to string, err error) {
	to = base + AsideSuffix
	for n := 2; ; n++ {
		err := unix.Renameat2(dir, base, dir, to, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) || n > 1000 {
			return to, err
		}
		to = fmt.Sprintf("%s%s-%d", base, AsideSuffix, n)
	}
}

// behead makes a directory one that git does not take for a repository: it
// would from within, whatever the directory is called.
func behead(dir int, name string) error {
	fd, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err = renameAside(fd, "HEAD"); errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// Order sorts repairs so that none takes another's path away: what lies deeper
// comes first.
func Order(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(strings.Count(string(b.Path), "/"), strings.Count(string(a.Path), "/")), compare(a, b))
	})
}
