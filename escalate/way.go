package escalate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// linksMax is how many symlinks a path may hold: the kernel's own limit.
const linksMax = 40

// namesMax is how many names of a path may be to come: each symlink adds those of
// a path, and whatever fails has all of them to tell.
const namesMax = 2000

var errTooLong = errors.New("too long a path, with the symlinks in it")

// way goes along a path as the kernel does, one name at a time: what .. means is
// decided by where the symlinks before it led, and not by the path's text.
type way struct {
	at    string   // where it is, without symlinks
	rest  []string // the names to come
	own   int      // how many of rest, from its end, are no symlink's
	links int      // symlinks that were followed
	cwd   string   // what /proc/self/cwd will be for the command; "": as it is here
}

func newWay(from, path string) *way {
	rest := names(path)
	return &way{at: from, rest: rest, own: len(rest)}
}

// names are the names of a path that lead anywhere.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// step is what a way met.
type step struct {
	entry string // the file that was looked up; "" where the name was ".."
	up    bool   // the path itself says ".."
	link  bool   // entry is a symlink, which was followed
}

// next goes on by one name.
func (w *way) next() (s step, err error) {
	if len(w.rest) > namesMax {
		return s, errTooLong
	}
	name, own := w.rest[0], len(w.rest) <= w.own
	w.rest = w.rest[1:]
	w.own = min(w.own, len(w.rest))
	if name == ".." {
		w.at, s.up = filepath.Dir(w.at), own
		return s, nil
	}
	s.entry = filepath.Join(w.at, name)
	fi, err := os.Lstat(s.entry)
	if err != nil {
		return s, err
	}
	if fi.Mode().Type() != fs.ModeSymlink {
		w.at = s.entry
		return s, nil
	}
	s.link = true
	if w.links++; w.links > linksMax {
		return s, fmt.Errorf("%s: %w", s.entry, unix.ELOOP)
	}
	to, err := os.Readlink(s.entry)
	if err != nil {
		return s, err
	}
	if w.cwd != "" && filepath.Base(s.entry) == "cwd" && strings.HasPrefix(s.entry, fmt.Sprintf("/proc/%d/", os.Getpid())) {
		to = w.cwd
	}
	if filepath.IsAbs(to) {
		w.at = "/"
	}
	w.rest = append(names(to), w.rest...)
	return s, nil
}
