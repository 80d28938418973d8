package main

import (
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
			cleaned, err := launch.Clean(cmd.Context(), env)
			errs := []error{err}
			for _, c := range cleaned {
				for _, u := range c.Undone {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: undone: %s\n", c.ID, config.Show(u))
				}
				if c.Err != nil {
					errs = append(errs, fmt.Errorf("run %s: %w", c.ID, c.Err))
					continue
				}
				if err := d.endSession(cmd.Context(), c.Record.Workspace); err != nil {
					errs = append(errs, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: cleaned up (%s in %s)\n", c.ID, c.Record.Profile, config.Show(d.tilde(c.Record.Workspace)))
			}
			return errors.Join(errs...)
		},
	}
}
