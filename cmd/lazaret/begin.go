package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

// ground is what a sandbox is planned on, beside its lock.
type ground struct {
	helpers lock.Helpers
	env     launch.Env
	host    launch.Host
}

// looking is how a command looks around before it plans a sandbox.
type looking struct {
	terminal  bool // the sandbox gets one
	noSecrets bool // none is handed to anything, so none need be set
	dryRun    bool // nothing is changed, also not what a killed run left
}

// ground looks at the machine for a sandbox of a profile. Before, what killed runs
// left is taken away: it must not be taken for the person's own.
func (d *deps) ground(ctx context.Context, l lockFile, profile string, o looking, talk io.Writer) (on ground, err error) {
	if on.helpers, err = ownHelpers(); err != nil {
		return on, err
	}
	if on.env, err = d.launchEnv(); err != nil {
		return on, err
	}
	on.env.Terminal = o.terminal
	if o.noSecrets {
		on.env.LookupEnv = func(string) (string, bool) { return "", true }
	}
	if !o.dryRun {
		if err := d.cleanBefore(ctx, on.env, talk); err != nil {
			return on, err
		}
	}
	on.host, err = launch.Probe(l.file, profile, on.env)
	return on, err
}

// cleanBefore takes away what killed lazarets left behind. What cannot be is
// said, and does not stop a launch, which shares nothing with it.
func (d *deps) cleanBefore(ctx context.Context, env launch.Env, talk io.Writer) error {
	cleaned, err := d.clean(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range cleaned {
		tellGit(&ending{w: talk}, c.Record.Profile, c.Git)
		if c.Err != nil {
			fmt.Fprintf(talk, "lazaret: warning: cleaning up after run %s: %s\n", c.ID, config.Show(c.Err.Error()))
		} else {
			fmt.Fprintf(talk, "lazaret: note: cleaned up after run %s, which was killed\n", c.ID)
		}
	}
	return nil
}
