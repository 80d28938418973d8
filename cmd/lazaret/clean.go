package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock/config"
)

func newCleanCmd(d *deps) *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Take away what a killed lazaret left behind",
		Long: `Clean finds the runs whose lazaret is gone and undoes what they did to this
machine: their containers, sockets, directories and records. Sandboxes that are
running, images and everything that persists stay.`,
		Example: `  lazaret clean`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := d.launchEnv()
			if err != nil {
				return err
			}
			cleaned, err := d.clean(cmd.Context(), env)
			errs := []error{err}
			for _, c := range cleaned {
				for _, u := range c.Undone {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: undone: %s\n", c.ID, config.Show(u))
				}
				tellGit(&ending{w: cmd.OutOrStdout()}, c.Record.Profile, c.Git)
				if c.Err != nil {
					errs = append(errs, fmt.Errorf("run %s: %w", c.ID, c.Err))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: cleaned up (%s in %s)\n", c.ID, c.Record.Profile, config.Show(d.tilde(c.Record.Workspace)))
			}
			return errors.Join(errs...)
		},
	}
}

// clean undoes what killed lazarets left behind, and ends their sessions as
// they would have.
func (d *deps) clean(ctx context.Context, env launch.Env) ([]launch.Cleaned, error) {
	cleaned, err := launch.Clean(ctx, env)
	errs := []error{err}
	for _, c := range cleaned {
		if c.Err == nil {
			errs = append(errs, d.endSession(ctx, c.Record.Workspace))
		}
	}
	return cleaned, errors.Join(errs...)
}
