package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"lazaret/launch"
	"lazaret/launch/term"
	"lazaret/lock/config"
)

func newAttachCmd(d *deps) *cobra.Command {
	var take bool
	cmd := &cobra.Command{
		Use:   "attach [flags] [ID|PROFILE]",
		Short: "Sit down at the terminal of a detached sandbox",
		Long: `Attach joins this terminal with that of a sandbox that "lazaret launch --detach"
started: it shows what the sandbox shows, and what you type is typed there. One
terminal at a time is attached. Without an argument it takes the one that runs in
the current directory.

` + term.LeaveKeys + ` leaves, and so does closing the terminal: the sandbox goes on. When
the sandbox ends, attach exits with its status. With the ID of one that has ended
already it tells how. Without a terminal, attach prints what the sandbox prints
from now on, and types nothing.`,
		Example: `  lazaret attach
  lazaret attach --take claude`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one sandbox at a time: lazaret attach [ID|PROFILE]")
			}
			return nil
		},
		ValidArgsFunction: d.completeDetached,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return launchEnd(d.attach(cmd, name, take))
		},
	}
	cmd.Flags().BoolVar(&take, "take", false, "let whoever is attached make way")
	return cmd
}

// attach attaches, and gives the sandbox's status where it ends.
func (d *deps) attach(cmd *cobra.Command, name string, take bool) (int, error) {
	env, err := d.launchEnv()
	if err != nil {
		return 0, err
	}
	runs, err := launch.KnownRuns(env)
	if err != nil {
		return 0, err
	}
	one, err := d.pickDetached(runs, name)
	if err != nil {
		if e, ok := d.endedRun(name); ok {
			return e.Status, e.tell(d, cmd.ErrOrStderr())
		}
		return 0, d.lastEnded(name, err)
	}
	if !one.Alive {
		return 0, hinted{fmt.Errorf("the lazaret of run %s (%s) was killed", one.ID, one.Profile), `"lazaret clean" takes away what it left`}
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	end, err := d.sitDown(ctx, cmd, env, one.Record, take)
	var busy *term.BusyError
	switch {
	case errors.As(err, &busy):
		return 0, hinted{fmt.Errorf("run %s (%s): %w", one.ID, one.Profile, busy),
			fmt.Sprintf("leave it there with %s, or take it: \"lazaret attach --take %s\"", term.LeaveKeys, one.ID)}
	case err != nil:
		return 0, fmt.Errorf("run %s (%s): %w", one.ID, one.Profile, err)
	case end.Over:
		return end.Status, nil
	case end.Taken != "":
		fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: %s has attached to %s (%s)\n", config.Show(end.Taken), one.Profile, one.ID)
	case ctx.Err() == nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: left %s, which goes on; \"lazaret attach %s\" comes back\n", one.Profile, one.ID)
	}
	return 0, unlessSignalled(ctx, ctx.Err())
}

// sitDown joins this terminal with the sandbox's, or where there is none what is
// printed with the output.
func (d *deps) sitDown(ctx context.Context, cmd *cobra.Command, env launch.Env, r launch.Record, take bool) (term.End, error) {
	stdin, stdout, _ := files(cmd)
	if !xterm.IsTerminal(int(stdin.Fd())) || !xterm.IsTerminal(int(stdout.Fd())) || !hasTerminal() {
		return d.follow(ctx, env, r, take, stdout)
	}
	w, err := term.OpenWindow(terminalPath, term.UTF8(d.env, stdin, stdout))
	if err != nil {
		return term.End{}, err
	}
	defer w.Close()
	name, _ := os.Readlink("/proc/self/fd/0")
	far, err := launch.Attach(ctx, env, r, launch.AttachTo{Take: take, Window: w, Name: name})
	if err != nil {
		return term.End{}, err
	}
	defer far.Close()
	fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: %s leaves %s, which goes on%s\n", term.LeaveKeys, r.Profile, d.said(r))
	if _, err = w.Show(ctx, far); err == nil {
		far.Back()
	}
	if !far.End().Over {
		fmt.Fprintln(cmd.ErrOrStderr()) // the cursor is where the sandbox had it
	}
	return far.End(), err
}

// said points to what the run's lazaret said while nobody was attached.
func (d *deps) said(r launch.Record) string {
	path := d.keptLog(r.ID)
	if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
		return ""
	}
	return "; its lazaret has said something: " + config.Show(d.tilde(path))
}

// follow prints what a sandbox prints until it ends.
func (d *deps) follow(ctx context.Context, env launch.Env, r launch.Record, take bool, stdout *os.File) (term.End, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return term.End{}, err
	}
	defer null.Close()
	out, err := term.NewOutlet(stdout, term.UTF8(d.env, stdout))
	if err != nil {
		return term.End{}, err
	}
	defer out.Close()
	far, err := launch.Attach(ctx, env, r, launch.AttachTo{Take: take, Terminal: null})
	if err != nil {
		return term.End{}, err
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { far.Close() })()
	for {
		b, err := far.Next()
		if err == nil {
			_, err = out.File.Write(b)
		}
		switch {
		case far.End() != (term.End{}), ctx.Err() != nil:
			return far.End(), nil
		case err != nil:
			return term.End{}, err
		}
	}
}

// pickDetached is pickRun, of those that can be attached to; one that is named
// and cannot is for Attach to refuse.
func (d *deps) pickDetached(runs []launch.Known, name string) (launch.Known, error) {
	detached := slices.DeleteFunc(slices.Clone(runs), func(k launch.Known) bool { return !k.Detached })
	one, err := d.pickRun(detached, name)
	if err != nil {
		if other, oerr := d.pickRun(runs, name); oerr == nil && !other.Detached {
			return launch.Known{}, &launch.NotDetachedError{Record: other.Record}
		}
	}
	return one, err
}

// lastEnded adds to a lack of sandboxes which one has ended that may be meant.
func (d *deps) lastEnded(name string, err error) error {
	var not *launch.NotDetachedError
	if errors.As(err, &not) {
		return err
	}
	for _, e := range slices.Backward(d.keptEnds()) {
		if e.Record.Workspace == d.cwd && (name == "" || e.Record.Profile == name || strings.HasPrefix(e.Record.ID, name)) {
			return hinted{err, fmt.Sprintf(`the last one has ended: "lazaret attach %s" tells how`, e.Record.ID)}
		}
	}
	return err
}

// completeDetached is completeRuns, of those that can be attached to.
func (d *deps) completeDetached(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return d.completeKnown(args, begun, func(k launch.Known) bool { return k.Detached && k.Alive })
}
