package launch

import (
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/lock/config"
)

// expected is what podman opens in an image before it starts anything, whatever
// that is, and where the runtime mounts something by itself. There may be nothing.
var expected = []struct {
	path string
	mode uint32
}{
	{"etc/passwd", unix.S_IFREG}, {"etc/group", unix.S_IFREG},
	{"dev", unix.S_IFDIR}, {"proc", unix.S_IFDIR}, {"sys", unix.S_IFDIR}, {"tmp", unix.S_IFDIR},
}

// unexpected refuses an image that podman or the runtime would wait for, without
// an end: one with a pipe there, to which nobody writes. Links lead where they
// do for programs in it.
func (o Image) unexpected(root string) error {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var bad []string
	for _, e := range expected {
		if mode, there := modeIn(at, e.path, 0); there && mode != e.mode {
			bad = append(bad, config.Show("/"+e.path))
		} else if mode, there := modeIn(at, e.path, unix.O_NOFOLLOW); there && mode == unix.S_IFLNK && e.mode == unix.S_IFDIR {
			if _, there := modeIn(at, e.path, 0); !there {
				bad = append(bad, config.Show("/"+e.path))
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return refuse("use an image without it, or replace it in one built from this",
		"profiles.%s.image: it has a pipe, a link to nothing or the like at %s: it would not start, or podman would wait for it without an end", o.Profile, strings.Join(bad, ", "))
}

// modeIn gives the kind of what is at a path in a root directory.
func modeIn(root int, path string, flags int) (kind uint32, there bool) {
	fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0, false
	}
	return st.Mode & unix.S_IFMT, true
}
