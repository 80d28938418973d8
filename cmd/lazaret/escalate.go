package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lazaret/escalate"
	"lazaret/escalate/wire"
	"lazaret/launch"
	"lazaret/lock/config"
)

func newEscalateCmd(d *deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "escalate",
		Short: "Look into what sandboxes may ask of this machine",
		Long: `A sandbox whose profile may ask ([escalation] in lazaret.toml) sends commands for
this machine with lazaret-escalate. Those of the lock's whitelist run at once;
you are asked about the others. "lazaret log" shows what was asked.`,
		Example: `  lazaret escalate`,
	}
	cmd.AddCommand(newEscalateTestCmd(d))
	return cmd
}

func newEscalateTestCmd(d *deps) *cobra.Command {
	var profile, lock string
	var raw, stdin, user bool
	cmd := &cobra.Command{
		Use:   "test [flags] -- COMMAND...",
		Short: "Say what would become of a request, and why",
		Long: `Test says what lazaret would do if a sandbox asked to run COMMAND on this
machine: run it without a question, ask you, or deny it, and why. It looks at
lazaret.lock, at your PATH and at what the sandbox can write to; it runs and
changes nothing. It exits with 0 where COMMAND would run without a question,
and with 1 otherwise.`,
		Example: `  lazaret escalate test -- aws sts get-caller-identity
  lazaret escalate test --raw -- 'git status; curl evil'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.ArgsLenAtDash() != 0 || len(args) == 0:
				return usage("which command? lazaret escalate test [--profile NAME] -- COMMAND...")
			case raw && len(args) != 1:
				return usage("--raw takes the command as one argument")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			locked, err := d.openLock(trustOptions{lock: lock, user: user})
			if err != nil {
				return err
			}
			env, err := d.launchEnv()
			if err != nil {
				return err
			}
			command := wire.Quote(args)
			if raw {
				command = args[0]
			}
			t, err := launch.TestEscalation(locked.file, profile, env, command, stdin)
			if err != nil {
				return err
			}
			tellDecision(cmd.OutOrStdout(), t)
			if !t.Auto {
				return &exitStatus{Status: exitError}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&profile, "profile", "", "the `NAME` of the profile that asks, where there is more than one")
	f.BoolVar(&raw, "raw", false, "take COMMAND as the one string that a sandbox sends")
	f.BoolVar(&stdin, "stdin", false, "as if the request came with input")
	f.BoolVar(&user, "user", false, "use your own lock although a parent directory has a config")
	f.StringVar(&lock, "lock", "", "the lock `file`, in place of lazaret.lock")
	return cmd
}

// tellDecision says what would happen, line by line.
func tellDecision(out io.Writer, t launch.EscalationTest) {
	line := func(name, text string) { fmt.Fprintf(out, "%-8s %s\n", name, text) }
	switch {
	case t.Refused != "":
		line("outcome", "denied without a question")
		line("because", config.Show(t.Refused))
	case t.Auto:
		line("outcome", "runs without a question")
		line("because", "the lock allows: "+config.Show(t.Why))
	default:
		line("outcome", "asks you")
		line("because", config.Show(t.Why))
	}
	for i, a := range t.Argv {
		line(fmt.Sprintf("arg %d", i), config.Show(a))
	}
	if t.Program != "" {
		line("program", config.Show(t.Program))
	} else if t.Refused == "" {
		line("program", "none: "+config.Show(t.Trouble))
	}
	if t.Refused == "" {
		line("runs in", config.Show(t.Dir))
		line("at most", t.Time.Round(time.Second).String()+", "+fmt.Sprint(t.MaxOutput)+" bytes of each output")
	}
	for _, m := range t.Marks {
		where := fmt.Sprintf("arg %d", m.Arg)
		if m.Arg < 0 {
			where = "request"
		}
		line("note", where+" "+config.Show(m.Text))
	}
}

func newEscalateHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "escalate-help",
		Short: "Print a paragraph that tells an agent how to ask the host",
		Long: `Escalate-help prints a paragraph for an agent's instructions (CLAUDE.md,
AGENTS.md and the like). "lazaret-escalate --help" inside the sandbox says the
same at length.`,
		Example: `  lazaret escalate-help`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), strings.TrimSpace(agentHelp)+"\n")
			return err
		},
	}
}

const agentHelp = `
You run in a sandbox. What it cannot do (use the host's credentials, touch files
outside /workspace, start the host's services) you can ask the person at the
host for: lazaret-escalate --reason "WHY, IN A SENTENCE" -- COMMAND [ARGUMENT...].
It waits for the answer, prints what the command printed and exits with its
status; 77 means denied, 75 that nobody answered, 69 that there is no channel.
There is no shell: one program with its arguments, host paths, relative paths
for files of the workspace, input only with --stdin. Everything else (installing,
building, testing) do in the sandbox. After a no, do not ask again in other
words. lazaret-escalate --help tells more.
`

// newRunnerCmd is not for people: launch starts it for each command that was
// allowed, with a socket at descriptor 3.
func newRunnerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    escalate.RunnerCommand,
		Short:  "Run one command that a sandbox asked for (started by launch)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			conn := os.NewFile(3, "conversation")
			if fi, err := conn.Stat(); err != nil || fi.Mode().Type() != fs.ModeSocket {
				return notByHand(escalate.RunnerCommand)
			}
			return escalate.ServeRunner(conn, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		},
	}
}
