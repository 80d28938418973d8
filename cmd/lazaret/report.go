package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"lazaret/internal/proc"
	"lazaret/lock"
	"lazaret/lock/config"
)

// hinter is an error that knows the next command.
type hinter interface{ Hint() string }

// hinted is an error with the next command.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }

// report tells the error of a command in two lines, what is wrong and what to
// do next, and gives the exit status that goes with it. command is what ran, as
// a person would type it.
func report(stderr io.Writer, command string, err error) int {
	if err == nil {
		return exitOK
	}
	status := exitError
	var es *exitStatus
	if errors.As(err, &es) {
		status = es.Status
		if es.Err == nil {
			return status
		}
		err = es.Err
	}
	text := fmt.Sprintf("lazaret: error: %s\n", onScreen(err.Error()))
	if next := nextStep(command, status, err); next != "" {
		text += fmt.Sprintf("lazaret: hint: %s\n", onScreen(next))
	}
	columns := 0
	if f := terminalOf(stderr); f != nil {
		columns, _, _ = term.GetSize(int(f.Fd()))
	}
	io.WriteString(stderr, foldLines(text, columns, "\n"))
	return status
}

// onScreen is the text of an error as it goes on a screen. The system's errors
// have the names of files as they are, and a sandbox can have chosen those: to
// act on a terminal, or to go on as if lazaret had said it.
func onScreen(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = config.Show(l)
		if i > 0 && strings.HasPrefix(l, "lazaret:") {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// nextStep is what a person can do about an error: what the error says itself,
// else what helps against its kind. It is empty only where the person has just
// decided that nothing be done.
func nextStep(command string, status int, err error) string {
	var (
		h       hinter
		said    *notTrusted
		one     *config.Error
		configs config.Errors
		locks   lock.Errors
		program *proc.Error
		late    *proc.LateError
	)
	hasHint := errors.As(err, &h)
	switch {
	case hasHint && h.Hint() != "":
		return h.Hint()
	case errors.As(err, &said) || errors.Is(err, errNothingDone):
		return ""
	case status == exitUsage:
		return fmt.Sprintf("run %q", command+" --help")
	case errors.As(err, &locks):
		return "" // each line has its own
	case errors.As(err, &configs):
		if slices.ContainsFunc(configs, func(e *config.Error) bool { return e.Hint() == "" }) {
			return "mend these lines, then run it again"
		}
		return ""
	case errors.As(err, &one) && one.File != "":
		return "mend " + config.Show(one.File) + ", then run it again"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on that file system, then run it again"
	case errors.Is(err, fs.ErrNotExist):
		return "see whether that path is the right one, then run it again"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "see who owns it and who may write there: ls -ld"
	case errors.As(err, &late) && late.Program == "podman":
		return `another podman may keep it waiting ("ps -C podman"); once "podman info" answers, run it again`
	case errors.As(err, &program):
		return helpWith(filepath.Base(program.Argv[0]))
	}
	return `see what "lazaret doctor" finds; if it finds nothing, report this with what "lazaret version" prints`
}

// helpWith says how to find out what is wrong with a program that lazaret runs.
func helpWith(program string) string {
	if slices.Contains([]string{"podman", "runsc", "runc", "crun", "unshare", "nsenter", "fuse-overlayfs"}, program) {
		return `see what "lazaret doctor" finds`
	}
	return "see what " + config.Show(program) + " says when you run it yourself"
}

// errNothingDone is a person's no.
var errNothingDone = errors.New("nothing was done")

func usage(format string, args ...any) error {
	return &exitStatus{exitUsage, fmt.Errorf(format, args...)}
}
