package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// grep knows extended regular expressions, -F for fixed strings, and takes
// basic ones for extended.
func grep(c *call) int {
	const synopsis = "[-EFRchilnoqrsvx] [-e PATTERN | PATTERN] [FILE...]"
	opts, args, err := parse(c.args, "EFRchilnoqrsvxHe:")
	if err != nil || len(args) == 0 && !opts.has('e') {
		return c.usage(synopsis)
	}
	patterns := opts['e']
	if patterns == nil {
		patterns, args = args[:1], args[1:]
	}
	for i, p := range patterns {
		if opts.has('F') {
			p = regexp.QuoteMeta(p)
		}
		if opts.has('x') {
			p = "^(?:" + p + ")$"
		}
		patterns[i] = "(?:" + p + ")"
	}
	expr := strings.Join(patterns, "|")
	if opts.has('i') {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		c.fail(err)
		return exitUsage
	}
	recursive := opts.has('r') || opts.has('R')
	if recursive && len(args) == 0 {
		args = []string{"."}
	}
	g := &grepping{call: c, opts: opts, re: re, named: (len(args) > 1 || recursive || opts.has('H')) && !opts.has('h')}
	status := c.input(files(args, recursive), g.file)
	switch {
	case g.found && (status == 0 || opts.has('q')):
		return 0
	case status != 0:
		return exitUsage
	}
	return 1
}

// files lists what is below directories.
func files(args []string, recursive bool) []string {
	if !recursive {
		return args
	}
	var all []string
	for _, a := range args {
		filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type().IsRegular() {
				all = append(all, path) // an unreadable one is reported when opened
			}
			return nil
		})
	}
	if all == nil {
		all = []string{os.DevNull}
	}
	return all
}

type grepping struct {
	*call
	opts  options
	re    *regexp.Regexp
	named bool
	found bool
}

func (g *grepping) file(name string, in io.Reader) error {
	prefix := ""
	if g.named {
		prefix = name + ":"
	}
	n, hits := 0, 0
	err := lines(in, func(line []byte) bool {
		n++
		text := strings.TrimSuffix(string(line), "\n")
		if g.re.MatchString(text) == g.opts.has('v') {
			return true
		}
		hits++
		if g.opts.has('q') || g.opts.has('l') {
			return false
		}
		if g.opts.has('c') {
			return true
		}
		where := prefix
		if g.opts.has('n') {
			where += fmt.Sprintf("%d:", n)
		}
		if g.opts.has('o') {
			for _, m := range g.re.FindAllString(text, -1) {
				fmt.Fprintf(g.out, "%s%s\n", where, m)
			}
			return true
		}
		fmt.Fprintf(g.out, "%s%s\n", where, text)
		return true
	})
	g.found = g.found || hits > 0
	switch {
	case g.opts.has('q'):
	case g.opts.has('l') && hits > 0:
		fmt.Fprintln(g.out, name)
	case g.opts.has('c'):
		fmt.Fprintf(g.out, "%s%d\n", prefix, hits)
	}
	return err
}
