package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// UnfitError is what a sandbox wrote and cannot be brought home, now or later.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }

func (e *UnfitError) Unwrap() error { return e.Err }

// unfit tells what a sandbox is to blame for from what the host is short of.
func unfit(err error) error {
	for _, e := range []error{context.Canceled, context.DeadlineExceeded, unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EACCES, unix.EPERM, unix.EMFILE, unix.ENFILE, unix.EIO} {
		if errors.Is(err, e) {
			return err
		}
	}
	var pe *proc.Error
	if errors.As(err, &pe) {
		if proc.ExitStatus(err) < 0 {
			return err
		}
		for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EACCES} {
			if strings.Contains(strings.ToLower(pe.Stderr), e.Error()) {
				return err
			}
		}
	}
	return &UnfitError{reason(err)}
}

// reason is what git said of what it would not take, rather than that it did
// not: the last line of what it says is seldom the one that tells why.
func reason(err error) error {
	var pe *proc.Error
	if !errors.As(err, &pe) {
		return err
	}
	for line := range strings.Lines(pe.Stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "error: "); ok {
			return fmt.Errorf("git does not take it: %s", show(text))
		}
	}
	return err
}
