package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func basename(c *call) int {
	if len(c.args) < 1 || len(c.args) > 2 {
		return c.usage("PATH [SUFFIX]")
	}
	name := filepath.Base(c.args[0])
	if len(c.args) == 2 && name != c.args[1] {
		name = strings.TrimSuffix(name, c.args[1])
	}
	fmt.Fprintln(c.out, name)
	return 0
}

func dirname(c *call) int {
	if len(c.args) != 1 {
		return c.usage("PATH")
	}
	path := strings.TrimRight(c.args[0], "/")
	if path == "" && c.args[0] != "" {
		path = "/"
	}
	fmt.Fprintln(c.out, filepath.Dir(path))
	return 0
}

// each runs do on every argument and reports its errors.
func (c *call) each(args []string, do func(string) error) int {
	status := 0
	for _, a := range args {
		if err := do(a); err != nil {
			status = c.fail(err)
		}
	}
	return status
}

func ln(c *call) int {
	const synopsis = "[-sfn] TARGET [LINK]  or  ln [-sfn] TARGET... DIRECTORY"
	opts, args, err := parse(c.args, "sfn")
	if err != nil || len(args) == 0 {
		return c.usage(synopsis)
	}
	dest := "."
	if len(args) > 1 {
		dest, args = args[len(args)-1], args[:len(args)-1]
	}
	stat := os.Stat
	if opts.has('n') {
		stat = os.Lstat
	}
	fi, err := stat(dest)
	into := err == nil && fi.IsDir()
	if len(args) > 1 && !into {
		return c.fail(dest + " is not a directory")
	}
	return c.each(args, func(target string) error {
		link := dest
		if into {
			link = filepath.Join(dest, filepath.Base(target))
		}
		if opts.has('f') {
			if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		if opts.has('s') {
			return os.Symlink(target, link)
		}
		return os.Link(target, link)
	})
}

func readlink(c *call) int {
	opts, args, err := parse(c.args, "fne")
	if err != nil || len(args) == 0 {
		return c.usage("[-fn] PATH...")
	}
	return c.each(args, func(path string) error {
		read := os.Readlink
		if opts.has('f') || opts.has('e') {
			read = resolved
		}
		target, err := read(path)
		if err == nil {
			fmt.Fprint(c.out, target)
			if !opts.has('n') {
				fmt.Fprintln(c.out)
			}
		}
		return err
	})
}

func realpath(c *call) int {
	if len(c.args) == 0 {
		return c.usage("PATH...")
	}
	return c.each(c.args, func(path string) error {
		real, err := resolved(path)
		if err == nil {
			fmt.Fprintln(c.out, real)
		}
		return err
	})
}

// resolved is the absolute path without links; the last element may be missing.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	if _, err := os.Lstat(abs); err == nil {
		return filepath.EvalSymlinks(abs)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	return filepath.Join(dir, filepath.Base(abs)), err
}

func rmdir(c *call) int {
	opts, args, err := parse(c.args, "p")
	if err != nil || len(args) == 0 {
		return c.usage("[-p] DIRECTORY...")
	}
	return c.each(args, func(path string) error {
		for {
			if err := unix.Rmdir(path); err != nil {
				return &os.PathError{Op: "rmdir", Path: path, Err: err}
			}
			path = filepath.Dir(path)
			if !opts.has('p') || path == "." || path == "/" {
				return nil
			}
		}
	})
}

func mkfifo(c *call) int {
	if len(c.args) == 0 {
		return c.usage("PATH...")
	}
	return c.each(c.args, func(path string) error {
		if err := unix.Mkfifo(path, 0o666); err != nil {
			return &os.PathError{Op: "mkfifo", Path: path, Err: err}
		}
		return nil
	})
}

func chown(c *call) int {
	opts, args, err := parse(c.args, "Rh")
	if err != nil || len(args) < 2 {
		return c.usage("[-Rh] OWNER[:GROUP] PATH...")
	}
	owner, group, _ := strings.Cut(args[0], ":")
	uid, err1 := lookupID("/etc/passwd", owner)
	gid, err2 := lookupID("/etc/group", group)
	if err1 != nil || err2 != nil {
		return c.fail("no such owner: " + args[0])
	}
	set := os.Chown
	if opts.has('h') || opts.has('R') {
		set = os.Lchown
	}
	return c.each(args[1:], func(path string) error {
		if !opts.has('R') {
			return set(path, uid, gid)
		}
		return filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return set(p, uid, gid)
		})
	})
}

func sha256sum(c *call) int {
	args := c.args
	if len(args) == 0 {
		args = []string{"-"}
	}
	return c.each(args, func(path string) error {
		in, err := c.open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		h := sha256.New()
		if _, err := io.Copy(h, in); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s  %s\n", hex.EncodeToString(h.Sum(nil)), path)
		return err
	})
}

// open opens an input; "-" is standard input.
func (c *call) open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(c.in), nil
	}
	return os.Open(path)
}
