// Command lazaret-guest is all of builtin:shell: a POSIX shell and the core
// utilities in one static binary, which is what it is called as. It aims to be
// enough to try a sandbox and to test one, not to replace a distribution.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if os.Getpid() == 1 {
		// Nobody else will: the kernel spares pid 1 the signals it has no
		// handler for, and leaves it everybody's orphans.
		superviseAsInit()
	}
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// call is one invocation of an applet.
type call struct {
	name string
	args []string // without the name
	in   io.Reader
	out  io.Writer
	err  io.Writer
}

// applet is a program; it returns the exit status.
type applet func(*call) int

const exitUsage = 2

// applets are the programs by name.
func applets() map[string]applet {
	all := map[string]applet{
		"basename": basename, "chown": chown, "cut": cut, "date": date, "dd": dd, "dirname": dirname, "dmesg": dmesg,
		"env": env, "find": find, "grep": grep, "head": head, "hostname": hostname, "id": id, "kill": killCmd, "ln": ln,
		"ls": ls, "mkfifo": mkfifo, "mount": mount, "nproc": nproc, "ps": ps, "readlink": readlink,
		"realpath": realpath, "rmdir": rmdir, "seq": seq, "sh": shell, "sha256sum": sha256sum, "sleep": sleep,
		"sort": sortCmd, "stat": stat, "stty": stty, "sync": syncCmd, "tail": tail, "tee": tee, "timeout": timeout,
		"tr": tr, "tty": tty, "umount": umount, "uname": uname, "uniq": uniq, "wc": wc, "which": which,
		"whoami": whoami, "yes": yes,
	}
	for _, name := range strings.Fields("[ echo false printf pwd test true") {
		all[name] = inShell
	}
	for _, name := range strings.Fields("base64 cat chmod cp gunzip gzip mkdir mktemp mv rm tar touch xargs") {
		all[name] = inShell
	}
	return all
}

func run(argv []string, in io.Reader, out, err io.Writer) int {
	name := "lazaret-guest"
	if len(argv) > 0 {
		name = strings.TrimPrefix(filepath.Base(argv[0]), "-") // login shells have a dash
		argv = argv[1:]
	}
	all := applets()
	if all[name] == nil { // under its own name: the first argument says
		if len(argv) == 0 || argv[0] == "--help" || argv[0] == "--list" {
			fmt.Fprintf(out, "usage: lazaret-guest PROGRAM [ARGUMENT...]\n\nPrograms: %s\n",
				strings.Join(slices.Sorted(maps.Keys(all)), " "))
			return 0
		}
		name, argv = argv[0], argv[1:]
	}
	program := all[name]
	if program == nil {
		fmt.Fprintf(err, "lazaret-guest: no program %q\n", name)
		return 127
	}
	return program(&call{name: name, args: argv, in: in, out: out, err: err})
}

// fail reports an error of the program and returns its status.
func (c *call) fail(err any) int {
	fmt.Fprintf(c.err, "%s: %v\n", c.name, err)
	return 1
}

// usage reports a misuse.
func (c *call) usage(synopsis string) int {
	fmt.Fprintf(c.err, "usage: %s %s\n", c.name, synopsis)
	return exitUsage
}
