package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock/config"
)

func newStopCmd(d *deps) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "stop [flags] [ID|PROFILE]",
		Short: "End a sandbox and undo what its launch did",
		Long: `Stop asks the lazaret of a sandbox to end it, and waits until everything its
launch did to this machine is undone. Without an argument it ends the one that
runs in the current directory. The launch that it ends says so, and ends with
status 143, as after SIGTERM. Where the lazaret of a run is gone, stop does for
that run what "lazaret clean" does.`,
		Example: `  lazaret stop
  lazaret stop claude
  lazaret stop --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || all && len(args) > 0 {
				return usage("one sandbox, or --all: lazaret stop [ID|PROFILE]")
			}
			return nil
		},
		ValidArgsFunction: d.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := d.launchEnv()
			if err != nil {
				return err
			}
			runs, err := launch.KnownRuns(env)
			if err != nil {
				return err
			}
			if !all {
				name := ""
				if len(args) > 0 {
					name = args[0]
				}
				one, err := d.pickRun(runs, name)
				if err != nil {
					return err
				}
				runs = []launch.Known{one}
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return unlessSignalled(ctx, d.stopRuns(ctx, env, runs, cmd.OutOrStdout()))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end every sandbox of yours")
	return cmd
}

// stopRuns ends runs at the same time: one that hangs keeps no other.
func (d *deps) stopRuns(ctx context.Context, env launch.Env, runs []launch.Known, out io.Writer) error {
	errs := make([]error, len(runs)+1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	left := false
	for i, r := range runs {
		wg.Go(func() {
			err := launch.ErrLeft
			if r.Alive {
				err = launch.Stop(ctx, env, r.Record)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, launch.ErrLeft):
				left = true
			case err != nil:
				errs[i] = fmt.Errorf("stopping %s: %w", r.ID, err)
			default:
				fmt.Fprintf(out, "%s: stopped (%s in %s)\n", r.ID, r.Profile, config.Show(d.tilde(r.Workspace)))
			}
		})
	}
	wg.Wait()
	if !left {
		return errors.Join(errs...)
	}
	cleaned, err := d.clean(ctx, env)
	errs[len(runs)] = err
	for _, c := range cleaned {
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", c.ID, c.Err))
			continue
		}
		fmt.Fprintf(out, "%s: cleaned up (%s in %s)\n", c.ID, c.Record.Profile, config.Show(d.tilde(c.Record.Workspace)))
	}
	return errors.Join(errs...)
}
