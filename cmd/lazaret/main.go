// Command lazaret locks and launches sandboxes for AI coding agents. It is
// the only package that prints, reads os.Args and the environment, or exits.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"lazaret/escalate"
	"lazaret/launch"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit statuses, in one place. launch passes the agent's own through.
const (
	exitOK       = 0
	exitError    = 1
	exitUsage    = 2
	exitStale    = 3   // lock --check: the lockfile is stale
	exitFindings = 4   // guard: something was found
	exitLazaret  = 125 // launch: lazaret itself failed, as podman does
	exitPodman   = 126 // launch: podman's, of a sandbox or a command that does not start
)

// exitStatus is an error that carries an exit status. A nil Err is silent.
type exitStatus struct {
	Status int
	Err    error
}

func (e *exitStatus) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *exitStatus) Unwrap() error { return e.Err }

// errAsked is a lazaret that a sandbox asked for, by way of another program: it
// could answer the sandbox's own requests.
var errAsked = &launch.RefusedError{
	What: "lazaret is not run for a sandbox: it decides what sandboxes may do",
	Do:   "run it yourself, in a terminal of your own",
}

// run is lazaret as a function: it never exits.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	d, err := newDeps()
	if err != nil {
		return report(stderr, "lazaret", err)
	}
	return d.run(args, stdin, stdout, stderr)
}

func (d *deps) run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if d.env(escalate.EnvMark) != "" {
		return report(stderr, "lazaret", errAsked)
	}
	root := newRootCmd(d)
	root.InitDefaultCompletionCmd()
	checkCommands(root)
	checkHelp(root)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	return report(stderr, cmd.CommandPath(), err)
}

func newRootCmd(d *deps) *cobra.Command {
	root := &cobra.Command{
		Use:           "lazaret",
		Short:         "Lock and launch sandboxes for AI coding agents",
		Version:       version,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("lazaret {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &exitStatus{exitUsage, err}
	})
	root.AddCommand(
		newInitCmd(d),
		newConfigCmd(d),
		newLockCmd(d),
		newDiffCmd(d),
		newExplainCmd(d),
		newTrustCmd(d),
		newVerifyCmd(d),
		newPullCmd(d),
		newSidecarCmd(d),
		newLaunchCmd(d),
		newPsCmd(d),
		newApproveCmd(d),
		newAttachCmd(d),
		newExecCmd(d),
		newStopCmd(d),
		newLogCmd(d),
		newDoctorCmd(d),
		newGuardCmd(d),
		newProbeCmd(),
		newRelayCmd(),
		newMergeCmd(d),
		newCleanCmd(d),
		newHelperCmd(),
		newDiscardCmd(),
		newStateCmd(d),
		newStateTaskCmd(),
		newVersionCmd(),
		newEscalateCmd(d),
		newEscalateHelpCmd(),
		newRunnerCmd(),
	)
	group(root)
	checkCommands(root)
	return root
}
