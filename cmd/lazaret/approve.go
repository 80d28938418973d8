package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"lazaret/escalate"
	"lazaret/escalate/prompt"
	"lazaret/launch"
	"lazaret/launch/term"
	"lazaret/lock/config"
)

func newApproveCmd(d *deps) *cobra.Command {
	var list, wait bool
	cmd := &cobra.Command{
		Use:   "approve [flags] [ID]",
		Short: "Answer what sandboxes ask of this machine",
		Long: `Approve shows the requests of your sandboxes that wait for an answer, as their
own terminals do: to approve and run, deny, edit, or abort. ID is that of a
sandbox, as "lazaret ps" shows it, or of one request. Whoever answers first
has answered.

Without ID it takes the one sandbox that asks; where several do, it lists them.
With --wait it stays, and asks as requests come.`,
		Example: `  lazaret approve
  lazaret approve --list`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one ID at a time")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := d.launchEnv()
			if err != nil {
				return err
			}
			all, err := askers(cmd.Context(), env)
			if err != nil {
				return err
			}
			if list {
				return tellAsking(cmd.OutOrStdout(), all)
			}
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			from, only, err := pick(all, id)
			if err != nil {
				var several *severalAsk
				if errors.As(err, &several) {
					tellAsking(cmd.OutOrStdout(), all)
				}
				return err
			}
			return d.approve(cmd, from, only, wait)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "only list what waits")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay, and show requests as they come, until the sandbox ends")
	return cmd
}

// asker is a sandbox that may ask, with what waits.
type asker struct {
	launch.Far
	asks []escalate.Ask
}

func askers(ctx context.Context, env launch.Env) ([]asker, error) {
	far, err := launch.Asking(ctx, env)
	if err != nil {
		return nil, err
	}
	var out []asker
	for _, f := range far {
		asks, err := f.Pending(ctx)
		if err == nil {
			out = append(out, asker{f, asks})
		}
	}
	return out, nil
}

// severalAsk is an approve that cannot know which sandbox is meant.
type severalAsk struct{ n int }

func (e *severalAsk) Error() string { return fmt.Sprintf("%d sandboxes ask", e.n) }

// Hint is the next command.
func (e *severalAsk) Hint() string { return `say which: "lazaret approve ID"` }

// pick finds the sandbox that is meant, and the only request where one is. A
// sandbox names its requests itself, so its name for one never means another
// sandbox.
func pick(all []asker, id string) (from asker, only int, err error) {
	if id == "" {
		some := all
		if len(all) > 1 {
			some = slices.DeleteFunc(slices.Clone(all), func(a asker) bool { return len(a.asks) == 0 })
		}
		switch {
		case len(some) == 1:
			return some[0], 0, nil
		case len(some) > 1:
			return asker{}, 0, &severalAsk{len(some)}
		case len(all) > 1:
			return asker{}, 0, hinted{errors.New("no sandbox asks for anything"), `"lazaret approve --wait ID" waits for requests`}
		}
		return asker{}, 0, hinted{errors.New("no sandbox is running that may ask"), `"lazaret ps" lists those that run; [escalation] in lazaret.toml lets them ask`}
	}
	for _, a := range all {
		if a.Record.ID == id {
			return a, 0, nil
		}
	}
	found := 0
	for _, a := range all {
		for _, ask := range a.asks {
			if ask.ID == id {
				from, only = a, ask.Seq
				found++
			}
		}
	}
	switch found {
	case 0:
		return asker{}, 0, hinted{fmt.Errorf("%s: neither a sandbox that may ask nor a request that waits", config.Show(id)), `"lazaret approve --list" lists what waits`}
	case 1:
		return from, only, nil
	}
	return asker{}, 0, hinted{fmt.Errorf("%s: %d requests have this name", config.Show(id), found), "say the ID of the sandbox, which it cannot choose"}
}

func tellAsking(to io.Writer, all []asker) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tPROFILE\tREQUEST\tTIME LEFT\tCOMMAND")
	for _, a := range all {
		for _, ask := range a.asks {
			command := make([]string, len(ask.Argv))
			for i, arg := range ask.Argv {
				command[i] = config.Show(arg)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.Record.ID, a.Record.Profile, clipped(config.Show(ask.ID), 24),
				max(time.Until(ask.Deadline), 0).Round(time.Second), clipped(strings.Join(command, " "), 60))
		}
	}
	return w.Flush()
}

// clipped cuts a text to so many characters.
func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// approve asks on the terminal this was called from.
func (d *deps) approve(cmd *cobra.Command, from asker, only int, wait bool) error {
	stdin, _, _ := files(cmd)
	if stdin == nil || !xterm.IsTerminal(int(stdin.Fd())) {
		return &exitStatus{exitError, errNoTerminal}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for told := false; ; {
		asks, err := from.Pending(ctx)
		if err != nil {
			if wait && ctx.Err() == nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "the sandbox has ended")
				return nil
			}
			return err
		}
		switch {
		case len(asks) > 0:
			if err := d.askHere(ctx, from, only); err != nil {
				return err
			}
			told = false
		case !told:
			what := "nothing waits"
			if wait {
				what = "waiting for requests of " + from.Record.Profile + " (" + from.Record.ID + "); Ctrl-C ends this"
			}
			fmt.Fprintln(cmd.ErrOrStderr(), what)
			told = true
		}
		if !wait {
			return nil
		}
		select {
		case <-from.Changed():
		case <-ctx.Done():
			return nil
		}
	}
}

var errNoTerminal = errors.New("approving needs a terminal: a request is read before it is answered")

// askHere asks on /dev/tty, which is also what the prompt draws on.
func (d *deps) askHere(ctx context.Context, from asker, only int) error {
	tty, err := os.OpenFile(terminalPath, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return errNoTerminal
	}
	defer tty.Close()
	defer term.Drain(terminalPath)
	return prompt.Run(ctx, prompt.Options{Desk: from, Box: from, TTY: tty, Environ: d.environ, UTF8: term.UTF8(d.env, tty), By: "lazaret approve", Only: only})
}
