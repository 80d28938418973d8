package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lazaret/escalate/prompt"
	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/launch/podman"
	"lazaret/launch/term"
)

// answer shows a sandbox's requests on the terminal that the two share, until
// ctx ends. What lazaret says meanwhile through talk is held back.
func (d *deps) answer(ctx context.Context, a launch.Answering, talk *hush) {
	if d.env("TERM") == "dumb" {
		return // it cannot show them; there is "lazaret approve"
	}
	for {
		changed := a.Desk.Changed()
		asks, err := a.Desk.Pending(ctx)
		if err != nil || ctx.Err() != nil {
			return
		}
		there, moved := true, (<-chan struct{})(nil)
		if a.Screen != nil {
			there, moved = a.Screen.Watched()
		}
		if len(asks) > 0 && there {
			ctx, done := whileWatched(ctx, a.Screen)
			// Where the terminal cannot be had, they wait for "lazaret approve".
			talk.during(func() error {
				return a.Session.Takeover(func(tty *os.File) error {
					return prompt.Run(ctx, prompt.Options{Desk: a.Desk, Box: a.Box, TTY: tty, Environ: d.environ, UTF8: term.UTF8(d.env, tty), By: "terminal"})
				})
			})
			done()
		}
		select {
		case <-changed:
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// whileWatched gives a context that ends when nobody is at the terminal any more:
// who comes next is asked anew.
func whileWatched(ctx context.Context, v *term.Virtual) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if v == nil {
		return ctx, cancel
	}
	go func() {
		for {
			is, moved := v.Watched()
			if !is {
				cancel()
			}
			select {
			case <-moved:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// waits tells of requests that nobody is shown, because there is no
// terminal, or nobody at it:
// on the desktop, and to whoever reads what lazaret says.
type waits struct {
	d    *deps
	talk io.Writer
	// screen is a terminal that nobody need be at; nil: there is none at all.
	screen *term.Virtual

	mu   sync.Mutex
	last time.Time
}

// toldEvery is how far apart notifications are.
const toldEvery = 10 * time.Second

func (w *waits) event(e step.Event) {
	if e.Kind != step.Asked || e.Attr["what"] != "asked" {
		return
	}
	if w.screen != nil {
		if there, _ := w.screen.Watched(); there {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.last) < toldEvery {
		return
	}
	w.last = time.Now()
	fmt.Fprintf(w.talk, "lazaret: note: the sandbox asks to run a command on this machine: \"lazaret approve %s\" shows it\n", e.Run)
	go w.d.notify(e.Run)
}

// notify puts a notification on the desktop, where there is one. It holds
// nothing of the sandbox's.
func (d *deps) notify(run string) {
	if d.env("DBUS_SESSION_BUS_ADDRESS") == "" && d.env("DISPLAY") == "" && d.env("WAYLAND_DISPLAY") == "" {
		return
	}
	for _, dir := range filepath.SplitList(podman.SearchPath) {
		path := filepath.Join(dir, "notify-send")
		if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		env := []string{"PATH=" + podman.SearchPath}
		for _, k := range []string{"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "HOME"} {
			env = append(env, k+"="+d.env(k))
		}
		proc.Output(ctx, proc.Cmd{Argv: []string{path, "--app-name=lazaret", "lazaret", "A sandbox asks to run a command on this machine: lazaret approve " + run}, Env: env})
		return
	}
}
