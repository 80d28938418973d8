package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lazaret/lock/config"
)

func newStateResetCmd(d *deps, o *trustOptions) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset PROFILE [DIR...]",
		Short: "Remove what is kept, so that the image's directory shows again",
		Long: `Reset removes what a profile keeps in its persistent directories, or in those
that are named. It asks. Volumes, the workspace and the image stay.`,
		Example:           "  lazaret state reset claude /usr/local\n  lazaret state reset --yes claude",
		Args:              words(1, -1),
		ValidArgsFunction: d.completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			k, names, err := s.one(args[0], args[1:])
			if err != nil {
				return err
			}
			talk := cmd.ErrOrStderr()
			// Counting is for the person to weigh, and stops no removal.
			usage, err := s.usage(cmd, k, names)
			if stopped(err) {
				return err
			}
			if err != nil {
				fmt.Fprintf(talk, "lazaret: warning: how much it is cannot be told\n")
			}
			for _, u := range usage {
				least := ""
				if u.Least {
					least = "at least "
				}
				fmt.Fprintf(talk, "%s: %s%s in %s\n", config.Show(k.Layers[u.Name].Path), least, sizeText(u.Bytes), count(int(u.Files), "file"))
			}
			if !yes {
				if err := sure(cmd, talk, "Remove this for good?"); err != nil {
					return err
				}
			}
			if _, err := s.do(cmd, s.task("reset", k, names), nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: reset\n", config.Show(k.Dir))
			return d.forgetUsers(filepath.Join(s.root, k.Dir))
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// forgetUsers forgets who has used a directory of state in which nothing is left:
// the next workspace finds nothing of theirs. What reset leaves, volumes, is
// still theirs.
func (d *deps) forgetUsers(dir string) error {
	left, err := os.ReadDir(dir)
	if len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	return store.ForgetUsers(dir)
}

// sure asks on the terminal; without one, it is an error.
func sure(cmd *cobra.Command, to io.Writer, question string) error {
	stdin, _, _ := files(cmd)
	if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
		return hinted{fmt.Errorf("nothing was done: there is nobody to ask"), "--yes does it without asking"}
	}
	switch ok, err := confirm(stdin, to, question); {
	case err != nil:
		return err
	case !ok:
		return &exitStatus{exitError, errNothingDone}
	}
	return nil
}
