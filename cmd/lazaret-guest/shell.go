package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"mvdan.cc/sh/moreinterp/coreutils"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

const shellUsage = "[-aefnuxils] [-o OPTION] [-c COMMAND [NAME [ARGUMENT...]] | FILE [ARGUMENT...]]"

// shell is sh.
func shell(c *call) int {
	var params []string // options the interpreter knows, then the arguments
	var command *string
	fromStdin := false
	args := c.args
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		if arg == "--help" {
			fmt.Fprintf(c.out, "usage: sh %s\n", shellUsage)
			return 0
		}
		for _, flag := range arg[1:] {
			switch flag {
			case 'c':
				command = new(string)
			case 's':
				fromStdin = true
			case 'i', 'l', 'm', 'h', 'b': // what they ask for is so, or cannot be
			case 'o':
				if len(args) == 0 {
					return c.usage(shellUsage)
				}
				params = append(params, arg[:1]+"o", args[0])
				args = args[1:]
			case 'a', 'e', 'f', 'n', 'u', 'x':
				params = append(params, arg[:1]+string(flag))
			default:
				return c.usage(shellUsage)
			}
		}
	}
	name := c.name
	if command != nil {
		if len(args) == 0 {
			return c.usage(shellUsage)
		}
		*command, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	}
	script := ""
	if command == nil && !fromStdin && len(args) > 0 {
		script, name, args = args[0], args[0], args[1:]
	}
	r, err := newRunner(c, append(append(params, "--"), args...))
	if err != nil {
		return c.fail(err)
	}
	switch {
	case command != nil:
		return runText(c, r, strings.NewReader(*command), name)
	case script != "":
		return runFile(c, r, script)
	}
	if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return converse(c, r, f)
	}
	return runStdin(c, r)
}

func newRunner(c *call, params []string) (*interp.Runner, error) {
	environ := os.Environ()
	if os.Getenv("PATH") == "" {
		environ = append(environ, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	return interp.New(
		interp.StdIO(c.in, c.out, c.err),
		interp.Env(expand.ListEnviron(environ...)),
		interp.Interactive(true), // a POSIX shell expands aliases in scripts too
		interp.Params(params...),
		interp.CallHandler(reroute),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return execute }),
	)
}

func runFile(c *call, r *interp.Runner, path string) int {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		c.fail(err)
		return 127
	} else if err != nil {
		c.fail(err)
		return 126
	}
	defer f.Close()
	return runText(c, r, f, path)
}

func runText(c *call, r *interp.Runner, text io.Reader, name string) int {
	file, err := syntax.NewParser().Parse(text, name)
	if err != nil {
		c.fail(err)
		return 2
	}
	markExec(file.Stmts)
	return statusOf(c, r.Run(context.Background(), file))
}

// runStdin runs commands as they come. The interpreter and the commands share
// standard input, so not a byte more is read than there is of the command.
func runStdin(c *call, r *interp.Runner) int {
	status := 0
	parser := syntax.NewParser()
	for stmts, err := range parser.InteractiveSeq(oneByOne{c.in}) {
		if err != nil {
			c.fail(err)
			return 2
		}
		if parser.Incomplete() {
			continue
		}
		markExec(stmts)
		for _, stmt := range stmts {
			status = statusOf(c, r.Run(context.Background(), stmt))
			if r.Exited() {
				return status
			}
		}
	}
	return status
}

type oneByOne struct{ io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.Reader.Read(p[:min(1, len(p))]) }

func statusOf(c *call, err error) int {
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	return c.fail(err)
}

// inShell runs a program that is a builtin of the interpreter or of its core
// utilities: as a shell with that one command would.
func inShell(c *call) int {
	name := c.name
	r, err := interp.New(interp.StdIO(c.in, c.out, c.err), interp.ExecHandlers(coreutils.ExecHandler))
	if err != nil {
		return c.fail(err)
	}
	args := c.args
	if name == "mv" { // it does not ask anyway, and knows no -f
		for len(args) > 0 && args[0] == "-f" {
			args = args[1:]
		}
	}
	command := &syntax.CallExpr{}
	for _, a := range append([]string{name}, args...) {
		command.Args = append(command.Args, quoted(a))
	}
	return statusOf(c, r.Run(context.Background(), &syntax.Stmt{Cmd: command}))
}

func quoted(s string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: s}}}
}
