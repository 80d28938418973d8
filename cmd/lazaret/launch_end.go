package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock"
)

// launchEnd is the end of a command with the status of what ran in a sandbox, or
// an error of lazaret's own.
func launchEnd(status int, err error) error {
	var es *exitStatus
	switch {
	case errors.As(err, &es):
		return err
	case err != nil:
		return &exitStatus{exitLazaret, err}
	case status != 0:
		return &exitStatus{Status: status}
	}
	return nil
}

// aftermath is what watched a launch, and has something to say when it is over.
type aftermath struct {
	screen *live
	talk   *hush
	asked  *requests
	denied *denials
	left   *sentry
	warned func() // says again what was said while the sandbox ran

	ran   time.Duration // 0: it never did
	stuck string        // the step that failed first
}

// event takes one event of the launch.
func (a *aftermath) event(e step.Event) {
	if e.Kind == step.Failed && a.stuck == "" {
		a.stuck = e.Step
	}
	if e.Kind == step.Done && e.Step == "sandbox" {
		a.ran = time.Duration(e.Micros) * time.Microsecond
	}
}

// say says what became of a launch that ended with a status or an error, and
// gives the error that is still to be said. ctx is what a signal ends.
func (a *aftermath) say(ctx context.Context, o launchOptions, plan *launch.Plan, profile lock.Profile, status int, err error) error {
	if ctx.Err() != nil {
		a.screen.interrupt() // what told it may not have come to it
	}
	var leftover *launch.LeftoverError
	a.screen.close(!errors.As(err, &leftover))
	end := a.screen.newEnding(a.talk)
	if end.quiet = o.quiet; o.back != nil {
		end.look = nil // it is kept, and shown to whoever attaches
	}
	if a.ran > 0 {
		end.ended(o.profile, status, a.ran)
	}
	tellGit(end, o.profile, plan.GitHome())
	a.asked.end(end)
	a.denied.end(end)
	a.left.end(context.WithoutCancel(ctx), end)
	a.warned()
	if a.ran > 0 {
		end.state(plan, profile, o.ephemeral)
	}
	if errors.Is(err, launch.ErrStopped) {
		fmt.Fprintf(a.talk, "lazaret: note: %v\n", launch.ErrStopped)
	}
	if (status == exitLazaret || status == exitPodman) && err == nil {
		fmt.Fprintf(a.talk, "lazaret: note: podman could not start it, or its command ended so; \"lazaret doctor\" says whether a sandbox starts on this machine\n")
	}
	return pointed(unlessSignalled(ctx, err), a.stuck)
}

// doctorChecks says which of doctor's checks a step of a launch depends on.
var doctorChecks = map[string]string{
	"helper": "userns", "image": "storage", "network.image": "storage", "network.router": "tun",
	"network.hello": "network", "network.cable": "network", "network.policy": "network", "control": "runtime-dir",
}

// pointed gives an error that has no hint one: the step that failed says where
// to look.
func pointed(err error, stuck string) error {
	var es *exitStatus
	var h hinter
	if err == nil || errors.As(err, &es) || errors.As(err, &h) || doctorChecks[stuck] == "" {
		return err
	}
	return hinted{err, fmt.Sprintf("see %s in what \"lazaret doctor\" prints", doctorChecks[stuck])}
}
