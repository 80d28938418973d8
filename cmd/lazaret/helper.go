package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"lazaret/launch"
)

// newHelperCmd is not for people: launch starts it in podman's namespace with
// a socket at descriptor 3 and the run's lock at descriptor 4.
func newHelperCmd() *cobra.Command {
	return &cobra.Command{
		Use:    launch.HelperCommand,
		Short:  "Perform a launch's steps in podman's namespace (started by launch)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			conn, lock := os.NewFile(3, "conversation"), os.NewFile(4, "lock")
			if fi, err := conn.Stat(); err != nil || fi.Mode().Type() != fs.ModeSocket {
				return notByHand(launch.HelperCommand)
			}
			if fi, err := lock.Stat(); err != nil || !fi.Mode().IsRegular() {
				return notByHand(launch.HelperCommand)
			}
			return launch.ServeHelper(conn, lock, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		},
	}
}

func notByHand(command string) error {
	return hinted{fmt.Errorf("%s is started by lazaret, not by hand", command), `run "lazaret launch"`}
}

// newDiscardCmd is not for people: "lazaret clean" starts it in podman's
// namespace, where alone the files of a sandbox can be removed.
func newDiscardCmd() *cobra.Command {
	return &cobra.Command{
		Use:    launch.DiscardCommand + " DATA_ROOT RUN",
		Short:  "Remove a run's own directory in data_root (started by clean)",
		Hidden: true,
		Args:   words(2, 2),
		RunE:   func(_ *cobra.Command, args []string) error { return launch.DiscardRun(args[0], args[1]) },
	}
}
