package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"lazaret/internal/proc"
	"lazaret/launch"
	"lazaret/launch/term"
)

func newExecCmd(d *deps) *cobra.Command {
	var name string
	var command []string
	cmd := &cobra.Command{
		Use:   "exec ID|PROFILE -- COMMAND...",
		Short: "Run a further command in a sandbox that is running",
		Long: `Exec runs a command in a running sandbox: as root there, in /workspace, with the
sandbox's own environment and on a terminal where you have one. It exits with the
command's status, 125 when lazaret failed and 128 when the command could not be
started. Nothing on this machine changes, and the command ends with the sandbox
at the latest.`,
		Example: `  lazaret exec claude -- bash
  lazaret exec claude -- git status`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && args[1] == "--" {
				args = append([]string{args[0]}, args[2:]...) // the dashes may be left out
			}
			if len(args) < 2 {
				return usage("which sandbox, and what? lazaret exec ID|PROFILE -- COMMAND...")
			}
			name, command = args[0], args[1:]
			return nil
		},
		ValidArgsFunction: d.completeRuns,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return launchEnd(d.exec(cmd, name, command))
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the sandbox's name is the command's
	return cmd
}

func (d *deps) exec(cmd *cobra.Command, name string, command []string) (int, error) {
	env, err := d.launchEnv()
	if err != nil {
		return 0, err
	}
	runs, err := launch.KnownRuns(env)
	if err != nil {
		return 0, err
	}
	one, err := d.pickRun(runs, name)
	if err != nil {
		return 0, err
	}
	stdin, stdout, stderr := files(cmd)
	tty := xterm.IsTerminal(int(stdin.Fd())) && xterm.IsTerminal(int(stdout.Fd())) && hasTerminal()
	vars := map[string]string{}
	if t := d.env("TERM"); tty && t != "" {
		vars["TERM"] = t
	}
	argv, environ, err := launch.Enter(cmd.Context(), env, one.Record, vars, command)
	if err != nil {
		return 0, err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	status, err := runInside(ctx, proc.Cmd{Argv: argv, Env: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr, Session: true}, tty, term.UTF8(d.env, stdin, stdout, stderr), one.Profile)
	return status, unlessSignalled(ctx, err)
}

// runInside runs a command of a sandbox to its end. On a terminal it gets one
// of lazaret's own, like the sandbox itself: what it prints is as hostile.
func runInside(ctx context.Context, c proc.Cmd, tty, utf8 bool, profile string) (status int, err error) {
	if tty {
		s, err := term.Open(terminalPath, term.Options{Title: "lazaret " + profile + ": ", UTF8: utf8})
		if err != nil {
			return 0, err
		}
		defer s.Close()
		child := s.Child()
		c.Stdin, c.Stdout, c.Stderr, c.Terminal = child, child, child, true
		if err := s.Forward(); err != nil {
			return 0, err
		}
	}
	if c.Stdin == nil {
		if c.Stdin, err = os.Open(os.DevNull); err != nil {
			return 0, err
		}
		defer c.Stdin.Close()
	}
	if !tty {
		// Each of them may be a terminal by itself, and the runtime hands them in
		// as they are.
		in, err := term.Inlet(c.Stdin)
		if err != nil {
			return 0, err
		}
		if in != c.Stdin {
			defer in.Close()
		}
		c.Stdin = in
		for _, f := range []**os.File{&c.Stdout, &c.Stderr} {
			o, err := term.NewOutlet(*f, utf8)
			if err != nil {
				return 0, err
			}
			defer o.Close()
			*f = o.File
		}
	}
	_, err = proc.Output(ctx, c)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if status = proc.ExitStatus(err); status < 0 {
		return 0, err
	}
	return status, nil
}
