package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lazaret/internal/step"
	"lazaret/launch"
	terminal "lazaret/launch/term"
	"lazaret/lock/config"
)

type launchOptions struct {
	dryRun    bool
	ephemeral bool
	skipSetup bool
	user      bool
	lock      string
	profile   string
	command   []string
	// clipboard lets the sandbox write the clipboard.
	clipboard bool
	// endOffline ends the sandbox when its network is lost.
	endOffline bool
	quiet      bool
	record     recordOptions
	// detach has the launch go on without this terminal, by a lazaret to which
	// backgroundFlag gives size.
	detach bool
	size   string
	back   *background // in that lazaret
}

func newLaunchCmd(d *deps) *cobra.Command {
	var o launchOptions
	cmd := &cobra.Command{
		Use:   "launch [flags] [PROFILE] [-- COMMAND...]",
		Short: "Start a sandbox exactly as lazaret.lock says",
		Long: `Launch starts the sandbox of a profile from lazaret.lock and from nothing else,
with the current directory at /workspace, and runs the profile's command in it,
or COMMAND. The only profile of a lock need not be named. It exits with the command's status: 128+n for a signal, 125 when
lazaret itself failed.

A lock is obeyed once you have agreed to it: launch shows what it grants, or
what has changed, and asks; see "lazaret trust".

On a terminal, launch shows what the sandbox is given while it starts, and sums
up at the end what came of it. --quiet says what must not be missed, and nothing
else: errors, warnings, and what waits for you.

What the sandbox prints is filtered: what draws reaches the terminal, what asks
it to do something else does not, such as setting the clipboard.

With --detach it returns once the sandbox is up and prints its ID; the sandbox has a
terminal of lazaret's own, which "lazaret attach" shows. Until then it is as without,
and goes with this terminal. What its lazaret says later, and how it ended, is kept
in ~/.local/state/lazaret/detached (XDG_STATE_HOME).

On the way out, whichever it is, everything launch did to this machine is
undone. What a killed lazaret leaves behind, "lazaret clean" and the next
launch take away.`,
		Example: `  lazaret launch shell
  lazaret launch shell -- uname -a
  lazaret launch --detach shell
  lazaret launch --dry-run shell`,
		ValidArgsFunction: d.completeProfile,
		Args: func(cmd *cobra.Command, args []string) error {
			n := cmd.ArgsLenAtDash()
			if n < 0 {
				n = len(args)
			}
			if n > 1 {
				return usage("one profile at a time; a command goes after --")
			}
			if n == 1 {
				o.profile = args[0]
			}
			o.command = args[n:]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.size == "" {
				return launchEnd(runLaunch(cmd, d, o))
			}
			var err error
			screen := terminal.Options{Title: "lazaret " + o.profile + " (" + terminal.LeaveKeys + " leaves)", Clipboard: o.clipboard}
			if o.back, err = newBackground(d, o.size, screen, cmd.ErrOrStderr()); err != nil {
				return launchEnd(0, err)
			}
			status, err := runLaunch(cmd, d, o)
			return o.back.finish(cmd, status, err)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be done, and do nothing")
	f.BoolVar(&o.skipSetup, "skip-setup", false, "do not run the profile's setup commands, even where they are due")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "start persistent directories empty and keep nothing")
	f.BoolVar(&o.user, "user", false, "use your own lock although a parent directory has a config")
	f.BoolVar(&o.endOffline, "end-offline", false, "end the sandbox when its network sidecar dies; else it goes on without network")
	f.BoolVar(&o.clipboard, "clipboard", false, "let the sandbox put text into the terminal's clipboard; it never reads it")
	f.StringVar(&o.lock, "lock", "", "the lock `file`, in place of lazaret.lock")
	f.BoolVarP(&o.detach, "detach", "d", false, "go on without this terminal once the sandbox is up; \"lazaret attach\" shows it")
	f.StringVar(&o.size, backgroundFlag, "", "go on without a terminal (given by launch --detach)")
	f.MarkHidden(backgroundFlag)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say only what must not be missed")
	o.record.flags(f)
	return cmd
}

func runLaunch(cmd *cobra.Command, d *deps, o launchOptions) (int, error) {
	talk := &hush{w: cmd.ErrOrStderr()}
	if o.back != nil {
		talk.w = o.back
	}
	notes := io.Writer(talk)
	if o.quiet {
		notes = io.Discard
	}
	locked, err := d.openLock(trustOptions{lock: o.lock, user: o.user})
	if err != nil {
		return 0, err
	}
	if o.profile == "" {
		if o.profile, err = locked.onlyProfile(); err != nil {
			return 0, err
		}
	}
	file := locked.file
	stdin, stdout, stderr := files(cmd)
	tty := o.detach || o.back != nil || term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(stdout.Fd())) && hasTerminal()
	on, err := d.ground(cmd.Context(), locked, o.profile, looking{terminal: tty, dryRun: o.dryRun}, talk)
	if err != nil {
		return 0, err
	}
	host := on.host
	opts := launch.Options{ID: launch.NewID(), Started: time.Now(), Command: o.command, Ephemeral: o.ephemeral, SkipSetup: o.skipSetup, Helpers: on.helpers, EndWithoutNetwork: o.endOffline, Detached: o.detach || o.back != nil}
	if o.dryRun {
		host.Known = nil // what is done at most
		opts.ID = "RUN"
	}
	plan, err := launch.Resolve(file, o.profile, host, opts)
	if err != nil {
		return 0, err
	}
	if o.dryRun {
		_, err := io.WriteString(cmd.OutOrStdout(), plan.Text())
		return 0, err
	}
	if o.back != nil {
		err = d.agreedBefore(locked, o.profile, host)
	} else {
		err = d.agreed(cmd, locked, o.profile, host)
	}
	if err != nil {
		return 0, err
	}
	if err := d.agreedHelpers(cmd, plan); err != nil {
		return 0, err
	}
	if o.detach {
		return d.detach(cmd, o)
	}
	if o.back != nil {
		if err := o.back.begin(plan.Record); err != nil {
			return 0, err
		}
	}
	screen := d.newLive(cmd.ErrOrStderr(), host.Terminal)
	if o.quiet || o.record.verbose {
		screen.tty = nil
	}
	occupies, first := plan.Occupies, screen.first
	if o.back != nil {
		// Where the launch was typed it is shown until the sandbox is up.
		o.back.stderr, o.back.live = screen, screen
		occupies, first = func(string) bool { return false }, nil
	} else {
		talk.through(screen)
	}
	d.tellMoved(notes, locked)
	for _, n := range plan.Notices {
		fmt.Fprintf(notes, "lazaret: note: %s\n", n)
	}
	if err := d.beginSession(); err != nil {
		return 0, err
	}
	defer d.endSession(context.WithoutCancel(cmd.Context()), d.cwd)
	tell, again := warnings(talk, host.Terminal)
	guard := &watch{dir: host.Workspace, tell: tell}
	left, err := d.watchWorkspace(cmd.Context(), plan, file.Profiles[o.profile].Git.Mode != "none", talk, tell)
	if err != nil {
		return 0, err
	}
	left.notes = notes
	audit, err := d.openAudit(plan.Record)
	if err != nil {
		return 0, err
	}
	defer audit.close()
	denied := watchDenials(plan, file, audit, notes)
	asked := newRequests(audit)
	rec, err := o.record.open(talk, host.Terminal)
	if err != nil {
		return 0, err
	}
	defer rec.close()
	ctx, stop := untilSignalBut(cmd.Context(), o.back.holds)
	defer stop()
	screen.show(newBoard(o.profile, config.Show(d.tilde(host.Workspace)), plan.Steps, facts(plan, file, o.ephemeral)))
	defer context.AfterFunc(ctx, screen.interrupt)()
	after := &aftermath{screen: screen, talk: talk, asked: asked, denied: denied, left: left, warned: func() { again(guard.told) }}
	follow := []func(step.Event){
		func(e step.Event) { screen.event(e, occupies) },
		guard.event,
		denied.event,
		func(e step.Event) { told(notes, e) },
		left.event,
		rec.event,
		after.event,
	}
	if o.back != nil {
		follow = append(follow, o.back.event(on.env))
	}
	if !host.Terminal || o.back != nil {
		follow = append(follow, (&waits{d: d, talk: talk, screen: o.back.terminal()}).event)
	}
	status, err := plan.Run(ctx, launch.IO{
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Terminal: terminalPath, Screen: o.back.terminal(), Clipboard: o.clipboard,
		UTF8: o.back != nil || terminal.UTF8(d.env, stdin, stdout, stderr), First: first, Answer: func(ctx context.Context, a launch.Answering) { d.answer(ctx, a, talk) },
		Observe: func(e step.Event) error {
			for _, f := range follow {
				f(e)
			}
			if err := asked.event(e); err != nil {
				return err
			}
			if d.observe != nil {
				return d.observe(e)
			}
			return nil
		},
	})
	return status, after.say(ctx, o, plan, file.Profiles[o.profile], status, err)
}

// told says what a person should know before the sandbox starts.
func told(talk io.Writer, e step.Event) {
	if e.Kind == step.Told {
		fmt.Fprintf(talk, "lazaret: note: %s\n", e.Attr["text"])
	}
}
