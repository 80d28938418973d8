package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type entry struct {
	name, path string
	st         unix.Stat_t
}

func ls(c *call) int {
	opts, args, err := parse(c.args, "1aAdFhilnRrSt")
	if err != nil {
		return c.usage("[-1aAdFhilnRrSt] [PATH...]")
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	status := 0
	var files []entry
	var dirs []string
	for _, path := range args {
		e := entry{name: path, path: path}
		get := unix.Lstat
		if !opts.has('l') && !opts.has('d') {
			get = unix.Stat // the directory a link leads to
		}
		err := get(path, &e.st)
		if err != nil {
			err = unix.Lstat(path, &e.st)
		}
		switch {
		case err != nil:
			status = c.fail(&os.PathError{Op: "ls", Path: path, Err: err})
		case e.st.Mode&unix.S_IFMT == unix.S_IFDIR && !opts.has('d'):
			dirs = append(dirs, path)
		default:
			files = append(files, e)
		}
	}
	c.list(opts, files)
	titled := len(args) > 1 || opts.has('R')
	for i := 0; i < len(dirs); i++ {
		if titled {
			if i > 0 || len(files) > 0 {
				fmt.Fprintln(c.out)
			}
			fmt.Fprintf(c.out, "%s:\n", dirs[i])
		}
		entries, err := readDir(opts, dirs[i])
		if err != nil {
			status = c.fail(err)
		}
		c.list(opts, entries)
		if opts.has('R') {
			var below []string
			for _, e := range entries {
				if e.st.Mode&unix.S_IFMT == unix.S_IFDIR && e.name != "." && e.name != ".." {
					below = append(below, e.path)
				}
			}
			dirs = slices.Insert(dirs, i+1, below...)
		}
	}
	return status
}

func readDir(opts options, dir string) ([]entry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if opts.has('a') {
		names = append(names, ".", "..")
	}
	var entries []entry
	for _, name := range names {
		if strings.HasPrefix(name, ".") && !opts.has('a') && !opts.has('A') {
			continue
		}
		e := entry{name: name, path: filepath.Join(dir, name)}
		if unix.Lstat(e.path, &e.st) == nil { // else it went meanwhile
			entries = append(entries, e)
		}
	}
	return entries, err
}

func (c *call) list(opts options, entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	switch {
	case opts.has('t'):
		slices.SortStableFunc(entries, func(a, b entry) int { return int(min(max(b.st.Mtim.Nano()-a.st.Mtim.Nano(), -1), 1)) })
	case opts.has('S'):
		slices.SortStableFunc(entries, func(a, b entry) int { return int(min(max(b.st.Size-a.st.Size, -1), 1)) })
	}
	if opts.has('r') {
		slices.Reverse(entries)
	}
	for _, e := range entries {
		if opts.has('i') {
			fmt.Fprintf(c.out, "%8d ", e.st.Ino)
		}
		name := e.name
		if opts.has('F') {
			name += suffix(e.st.Mode)
		}
		if !opts.has('l') && !opts.has('n') {
			fmt.Fprintln(c.out, name)
			continue
		}
		if e.st.Mode&unix.S_IFMT == unix.S_IFLNK {
			if target, err := os.Readlink(e.path); err == nil {
				name += " -> " + target
			}
		}
		user, group := fmt.Sprint(e.st.Uid), fmt.Sprint(e.st.Gid)
		if !opts.has('n') {
			user, group = nameOf("/etc/passwd", e.st.Uid), nameOf("/etc/group", e.st.Gid)
		}
		size := fmt.Sprint(e.st.Size)
		if opts.has('h') {
			size = human(e.st.Size)
		}
		fmt.Fprintf(c.out, "%s %3d %-8s %-8s %8s %s %s\n", modeString(e.st.Mode), e.st.Nlink, user, group, size,
			time.Unix(e.st.Mtim.Unix()).Format("2006-01-02 15:04"), name)
	}
}

func suffix(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "/"
	case unix.S_IFLNK:
		return "@"
	case unix.S_IFIFO:
		return "|"
	case unix.S_IFSOCK:
		return "="
	}
	if mode&0o111 != 0 && mode&unix.S_IFMT == unix.S_IFREG {
		return "*"
	}
	return ""
}

func human(n int64) string {
	f, unit := float64(n), ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	if unit == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f%s", f, unit)
}
