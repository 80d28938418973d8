package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const findUsage = "[PATH...] [-maxdepth N] [-mindepth N] [[!] -name PATTERN | -path PATTERN | -type dflps | -empty]... [-print | -print0 | -exec COMMAND {} ; | -exec COMMAND {} +]"

// finding is one find: all of its tests must hold.
type finding struct {
	*call
	min, max int
	tests    []func(path string, d fs.DirEntry) bool
	end      string   // after each path printed
	command  []string // to run instead
	batch    bool     // with all paths at once
	found    []string
	status   int
	w        *bufio.Writer
}

func find(c *call) int {
	f := &finding{call: c, max: 1 << 30, end: "\n", w: bufio.NewWriter(c.out)}
	args := c.args
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	if err := f.parse(args); err != nil {
		c.fail(err)
		return c.usage(findUsage)
	}
	for _, root := range roots {
		f.walk(root)
	}
	f.w.Flush()
	if f.batch && len(f.found) > 0 {
		f.run(f.found)
	}
	return f.status
}

func (f *finding) parse(args []string) error {
	not := false
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		value := ""
		switch word {
		case "-maxdepth", "-mindepth", "-name", "-path", "-type":
			if len(args) == 0 {
				return fmt.Errorf("%s needs a value", word)
			}
			value, args = args[0], args[1:]
		}
		var test func(string, fs.DirEntry) bool
		switch word {
		case "!", "-not":
			not = !not
			continue
		case "-a", "-and":
			continue
		case "-maxdepth", "-mindepth":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			if word == "-maxdepth" {
				f.max = n
			} else {
				f.min = n
			}
			continue
		case "-print":
			continue
		case "-print0":
			f.end = "\x00"
			continue
		case "-exec":
			i := 0
			for i < len(args) && args[i] != ";" && args[i] != "+" {
				i++
			}
			if i == 0 || i == len(args) {
				return errors.New("-exec needs a command that ends with ; or +")
			}
			f.command, f.batch, args = args[:i], args[i] == "+", args[i+1:]
			continue
		case "-name", "-path":
			if _, err := filepath.Match(value, ""); err != nil {
				return err
			}
			test = func(path string, _ fs.DirEntry) bool {
				if word == "-name" {
					path = filepath.Base(path)
				}
				ok, _ := filepath.Match(value, path)
				return ok
			}
		case "-type":
			kinds := map[string]fs.FileMode{"f": 0, "d": fs.ModeDir, "l": fs.ModeSymlink, "p": fs.ModeNamedPipe, "s": fs.ModeSocket}
			kind, ok := kinds[value]
			if !ok {
				return fmt.Errorf("no type %q", value)
			}
			test = func(_ string, d fs.DirEntry) bool { return d.Type() == kind }
		case "-empty":
			test = func(path string, d fs.DirEntry) bool {
				if d.IsDir() {
					entries, err := os.ReadDir(path)
					return err == nil && len(entries) == 0
				}
				fi, err := d.Info()
				return err == nil && fi.Size() == 0
			}
		default:
			return fmt.Errorf("unknown: %s", word)
		}
		if not {
			inner := test
			test, not = func(path string, d fs.DirEntry) bool { return !inner(path, d) }, false
		}
		f.tests = append(f.tests, test)
	}
	return nil
}

func (f *finding) walk(root string) {
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			f.status = f.fail(err)
			return nil
		}
		depth := 0
		if path != root {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			depth = strings.Count(rel, "/") + 1
		}
		if depth >= f.min {
			f.visit(path, d)
		}
		if depth >= f.max && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

func (f *finding) visit(path string, d fs.DirEntry) {
	for _, test := range f.tests {
		if !test(path, d) {
			return
		}
	}
	switch {
	case f.batch:
		f.found = append(f.found, path)
	case f.command != nil:
		f.w.Flush()
		f.run([]string{path})
	default:
		f.w.WriteString(path + f.end)
	}
}

func (f *finding) run(paths []string) {
	var argv []string
	for _, a := range f.command {
		if a == "{}" {
			argv = append(argv, paths...)
		} else {
			argv = append(argv, a)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.in, f.out, f.err
	if err := children.start(cmd); err != nil {
		f.status = f.fail(err)
	} else if children.wait(cmd) != nil && f.batch {
		f.status = 1
	}
}
