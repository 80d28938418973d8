package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// converse is the shell on a terminal: a prompt, a line editor with history,
// and Ctrl-C that ends the line or the command, not the shell.
func converse(c *call, r *interp.Runner, tty *os.File) int {
	disposition.mu.Lock()
	disposition.interactive = true
	disposition.mu.Unlock()
	// Notified, not ignored: what is ignored stays so in the commands.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT)
	// Without job control nobody could wake a stopped command, or this shell.
	signal.Ignore(syscall.SIGTSTP)

	line := newEditor(tty, c.out)
	pending, status := "", 0
	for {
		prompt := promptFor(r.Dir)
		if pending != "" {
			prompt = "> "
		}
		text, err := line.read(prompt)
		switch {
		case errors.Is(err, errInterrupted):
			pending = ""
			status = runLine(c, r, "(exit 130)")
			continue
		case err == io.EOF && pending == "":
			fmt.Fprintln(c.out)
			return status
		case err != nil:
			if err != io.EOF {
				return c.fail(err)
			}
		}
		pending += text + "\n"
		file, perr := syntax.NewParser().Parse(strings.NewReader(pending), "sh")
		if perr != nil && syntax.IsIncomplete(perr) && err == nil {
			continue
		}
		pending = ""
		if perr != nil {
			c.fail(perr)
			status = runLine(c, r, "(exit 2)")
			continue
		}
		markExec(file.Stmts)
		for _, stmt := range file.Stmts {
			status = statusOf(c, r.Run(context.Background(), stmt))
			if r.Exited() {
				return status
			}
		}
	}
}

// runLine runs a line of ours, so that $? is as it should be.
func runLine(c *call, r *interp.Runner, text string) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "sh")
	if err != nil {
		return c.fail(err)
	}
	status := 0
	for _, stmt := range file.Stmts {
		status = statusOf(c, r.Run(context.Background(), stmt))
	}
	return status
}

func promptFor(dir string) string {
	if home := os.Getenv("HOME"); home != "" && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + dir[len(home):]
	}
	if os.Getuid() == 0 {
		return dir + " # "
	}
	return dir + " $ "
}

var errInterrupted = errors.New("interrupted")

// editor reads lines with the terminal in raw mode, and only then: commands
// have it as it was.
type editor struct {
	tty         *os.File
	term        *term.Terminal
	interrupted bool
}

func newEditor(tty *os.File, out io.Writer) *editor {
	e := &editor{tty: tty}
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e, out}, "")
	return e
}

// Read turns Ctrl-C into "clear the line and end it". The line editor knows
// Ctrl-C only as the end of all input.
func (e *editor) Read(p []byte) (int, error) {
	if len(p) < 4 {
		return 0, io.ErrShortBuffer
	}
	n, err := e.tty.Read(p[:len(p)-3])
	for i, b := range p[:n] {
		if b == 3 {
			e.interrupted = true
			return i + copy(p[i:], "\x05\x15\r"), nil // what was typed after it goes too
		}
	}
	return n, err
}

func (e *editor) read(prompt string) (string, error) {
	fd := int(e.tty.Fd())
	if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
		e.term.SetSize(w, h)
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, old)
	e.term.SetPrompt(prompt)
	line, err := e.term.ReadLine()
	if e.interrupted && err == nil {
		e.interrupted = false
		return "", errInterrupted
	}
	return line, err
}
