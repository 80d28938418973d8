package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"lazaret/launch"
)

// signalled is the end of a launch by a signal.
type signalled struct{ Signal syscall.Signal }

func (s signalled) Error() string { return s.Signal.String() }

// unlessSignalled is what is to be said of a run's end. After a signal, what
// the end of everything under way had to say is of no interest, but what could
// not be undone is; the status is the signal's.
func unlessSignalled(ctx context.Context, err error) error {
	var s signalled
	var left *launch.LeftoverError
	switch {
	case errors.Is(err, launch.ErrStopped) && !errors.As(err, &left):
		return &exitStatus{Status: 128 + int(syscall.SIGTERM)}
	case err == nil || !errors.As(context.Cause(ctx), &s):
		return err
	case errors.As(err, &left):
		return left
	}
	return &exitStatus{Status: 128 + int(s.Signal)}
}

// stopped reports whether an error is the end by a signal.
func stopped(err error) bool {
	var es *exitStatus
	return errors.As(err, &es) && es.Err == nil && es.Status > 128
}

// untilSignal gives a context that ends with the first signal that asks a
// program to end. Later ones change nothing: a teardown is not cut short.
func untilSignal(ctx context.Context) (context.Context, func()) {
	return untilSignalBut(ctx, func(os.Signal) bool { return false })
}

// untilSignalBut is untilSignal that passes over the signals that holds is true
// for when they come.
func untilSignalBut(ctx context.Context, holds func(os.Signal) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for s := range ch {
			if holds(s) {
				continue
			}
			cancel(signalled{s.(syscall.Signal)})
		}
	}()
	return ctx, func() { signal.Stop(ch); close(ch); cancel(nil) }
}
