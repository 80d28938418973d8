// Package prompt asks the person at a terminal about the requests of a sandbox.
// It is the only package that knows bubbletea. It shows, and passes on what the
// person decided; it never runs anything, and whatever ends it without an
// answer approves nothing.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lazaret/escalate"
)

// Box is the sandbox, to be stopped while the person thinks after an abort.
type Box interface {
	// Suspend stops everything in it, and ends it where that fails.
	Suspend(context.Context) error
	Resume(context.Context) error
	End(context.Context) error
}

// Options are what the prompt works on.
type Options struct {
	Desk escalate.Desk
	Box  Box      // nil: an abort only shuts the channel
	TTY  *os.File // the person's terminal, for nobody else meanwhile
	// Environ says what the terminal can do: TERM, NO_COLOR and others.
	Environ []string
	// UTF8: it reads UTF-8. Another one is sent nothing beyond ASCII, of which it
	// could obey a part.
	UTF8 bool
	By   string // who answers, for the audit log
	Only int    // the number of the only request to answer; 0: all
}

// Run asks about what waits until nothing does, or ctx ends.
func Run(ctx context.Context, o Options) error {
	m := model{
		desk: o.Desk, box: o.Box, ctx: ctx, now: time.Now, by: o.By, only: o.Only,
		after: func(d time.Duration, msg tea.Msg) tea.Cmd { return tea.Tick(d, func(time.Time) tea.Msg { return msg }) },
		sym:   simple, focused: true, notify: notification(o.Environ),
	}
	if o.UTF8 {
		m.sym = fancy
	}
	p := tea.NewProgram(m, tea.WithInput(o.TTY), tea.WithOutput(o.TTY), tea.WithEnvironment(unasked(o.Environ)), tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, func() { p.Send(endMsg{}) })
	defer stop()
	if _, err := p.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("asking on the terminal: %w", err)
	}
	return nil
}

// unasked is the environment without what has the library that draws ask a program:
// inside tmux, it runs the first "tmux" in PATH to learn of colours, and with a
// virtual environment of the workspace's active, that is what an agent put there.
func unasked(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, "TMUX=") })
}

func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(environ[i], "="); k == name {
			return v
		}
	}
	return ""
}
