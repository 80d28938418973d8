package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stat prints what stat(2) says, or what -c FORMAT asks for.
func stat(c *call) int {
	opts, args, err := parse(c.args, "Lc:")
	if err != nil || len(args) == 0 {
		return c.usage("[-L] [-c FORMAT] PATH...")
	}
	return c.each(args, func(path string) error {
		var st unix.Stat_t
		get := unix.Lstat
		if opts.has('L') {
			get = unix.Stat
		}
		if err := get(path, &st); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		format := opts.value('c', "  File: %n\n  Size: %s\tLinks: %h\tInode: %i\tDevice: %d\n  Type: %F\n  Mode: (%a/%A)  Uid: (%u/%U)  Gid: (%g/%G)\nModify: %y")
		fmt.Fprintln(c.out, formatStat(format, path, &st))
		return nil
	})
}

func formatStat(format, path string, st *unix.Stat_t) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		mtime := time.Unix(st.Mtim.Unix())
		switch format[i] {
		case 'n':
			b.WriteString(path)
		case 's':
			b.WriteString(strconv.FormatInt(st.Size, 10))
		case 'h':
			b.WriteString(strconv.FormatUint(uint64(st.Nlink), 10))
		case 'i':
			b.WriteString(strconv.FormatUint(st.Ino, 10))
		case 'd':
			b.WriteString(strconv.FormatUint(st.Dev, 10))
		case 'u':
			b.WriteString(strconv.FormatUint(uint64(st.Uid), 10))
		case 'g':
			b.WriteString(strconv.FormatUint(uint64(st.Gid), 10))
		case 'U':
			b.WriteString(nameOf("/etc/passwd", st.Uid))
		case 'G':
			b.WriteString(nameOf("/etc/group", st.Gid))
		case 'a':
			b.WriteString(strconv.FormatUint(uint64(st.Mode&0o7777), 8))
		case 'A':
			b.WriteString(modeString(st.Mode))
		case 'F':
			b.WriteString(typeName(st.Mode, st.Size))
		case 'Y':
			b.WriteString(strconv.FormatInt(mtime.Unix(), 10))
		case 'y':
			b.WriteString(mtime.Format("2006-01-02 15:04:05.000000000 -0700"))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString("?")
		}
	}
	return b.String()
}

func typeName(mode uint32, size int64) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFLNK:
		return "symbolic link"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return "character special file"
	case unix.S_IFBLK:
		return "block special file"
	}
	if size == 0 {
		return "regular empty file"
	}
	return "regular file"
}

// modeString is the mode as ls shows it.
func modeString(mode uint32) string {
	kind := map[uint32]byte{unix.S_IFDIR: 'd', unix.S_IFLNK: 'l', unix.S_IFIFO: 'p', unix.S_IFSOCK: 's', unix.S_IFCHR: 'c', unix.S_IFBLK: 'b'}[mode&unix.S_IFMT]
	if kind == 0 {
		kind = '-'
	}
	b := []byte{kind}
	for i, c := range []byte("rwxrwxrwx") {
		if mode>>(8-i)&1 == 0 {
			c = '-'
		}
		b = append(b, c)
	}
	for _, special := range []struct {
		bit uint32
		at  int
		c   byte
	}{{0o4000, 3, 's'}, {0o2000, 6, 's'}, {0o1000, 9, 't'}} {
		if mode&special.bit != 0 {
			if b[special.at] == 'x' {
				b[special.at] = special.c
			} else {
				b[special.at] = special.c - 'a' + 'A'
			}
		}
	}
	return string(b)
}
