package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// nameOf looks an id up in passwd or group; the number when it has no name.
func nameOf(file string, id uint32) string {
	want := strconv.FormatUint(uint64(id), 10)
	for _, f := range accounts(file) {
		if f[2] == want {
			return f[0]
		}
	}
	return want
}

// lookupID is the id of a name or number; -1, which changes nothing, for none.
func lookupID(file, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	for _, f := range accounts(file) {
		if f[0] == name {
			name = f[2]
		}
	}
	return strconv.Atoi(name)
}

func accounts(file string) [][]string {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var all [][]string
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 2 {
			all = append(all, f)
		}
	}
	return all
}

func id(c *call) int {
	opts, args, err := parse(c.args, "ugGn")
	if err != nil || len(args) > 0 {
		return c.usage("[-ugGn]")
	}
	groups, err := os.Getgroups()
	if err != nil {
		return c.fail(err)
	}
	if gid := os.Getegid(); !slices.Contains(groups, gid) {
		groups = append([]int{gid}, groups...)
	}
	show := func(file string, n int) string {
		if opts.has('n') {
			return nameOf(file, uint32(n))
		}
		return strconv.Itoa(n)
	}
	both := func(file string, n int) string {
		if name := nameOf(file, uint32(n)); name != strconv.Itoa(n) {
			return fmt.Sprintf("%d(%s)", n, name)
		}
		return strconv.Itoa(n)
	}
	switch {
	case opts.has('u'):
		fmt.Fprintln(c.out, show("/etc/passwd", os.Geteuid()))
	case opts.has('g'):
		fmt.Fprintln(c.out, show("/etc/group", os.Getegid()))
	default:
		var list []string
		for _, g := range groups {
			if opts.has('G') {
				list = append(list, show("/etc/group", g))
			} else {
				list = append(list, both("/etc/group", g))
			}
		}
		if opts.has('G') {
			fmt.Fprintln(c.out, strings.Join(list, " "))
			break
		}
		fmt.Fprintf(c.out, "uid=%s gid=%s groups=%s\n", both("/etc/passwd", os.Geteuid()), both("/etc/group", os.Getegid()), strings.Join(list, ","))
	}
	return 0
}

func whoami(c *call) int {
	fmt.Fprintln(c.out, nameOf("/etc/passwd", uint32(os.Geteuid())))
	return 0
}
