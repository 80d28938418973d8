package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/launch/term"
	"lazaret/lock/config"
)

// background is a launch without a terminal of a person's. Until its sandbox is
// up it is the foreground of the launch that started it.
type background struct {
	d      *deps
	screen *term.Virtual
	stderr io.Writer
	live   *live // what is shown there until the sandbox is up; nil: nothing

	up     atomic.Bool
	starts *os.File // the launch that started it
	record launch.Record
	kept   *keptRun

	cancel context.CancelFunc
	polled sync.WaitGroup
}

// newBackground makes the terminal, and makes it this process's. Its standard input
// is another: nobody is there to be asked.
func newBackground(d *deps, size string, o term.Options, stderr io.Writer) (*background, error) {
	starts := os.NewFile(3, "up")
	if fi, err := starts.Stat(); err != nil || fi.Mode().Type() != fs.ModeSocket {
		return nil, notByHand("launch --" + backgroundFlag)
	}
	syscall.CloseOnExec(3)
	cols, rows := 80, 24
	fmt.Sscanf(size, "%dx%d", &cols, &rows)
	v, err := term.NewVirtual(max(cols, 1), max(rows, 1), o)
	if err != nil {
		return nil, err
	}
	if err := v.Own(); err != nil {
		return nil, err
	}
	b := &background{d: d, screen: v, starts: starts, stderr: stderr}
	go func() {
		// Whoever waits for the sandbox is gone, before it is up.
		starts.Read(make([]byte, 1))
		if !b.up.Load() {
			hangUp()
		}
	}()
	return b, nil
}

// begin opens what is kept of the run.
func (b *background) begin(r launch.Record) (err error) {
	b.record = r
	b.kept, err = b.d.keepRun(r)
	return err
}

// Write writes what lazaret says: to where the launch was started, and once the
// sandbox is up to what is kept, and to the terminal where somebody is attached.
func (b *background) Write(p []byte) (int, error) {
	if !b.up.Load() {
		return b.stderr.Write(p)
	}
	b.kept.Write(p)
	if b.screen.Busy() != "" {
		b.stderr.Write(p)
	}
	return len(p), nil
}

// holds tells whether a signal is one that a launch without a terminal goes on
// after.
func (b *background) holds(s os.Signal) bool {
	return b != nil && s == syscall.SIGHUP && b.up.Load()
}

// terminal is the launch's terminal, nil for one that is not in the background.
func (b *background) terminal() *term.Virtual {
	if b == nil {
		return nil
	}
	return b.screen
}

// upPause is how often it is looked whether a sandbox is up.
const upPause = 100 * time.Millisecond

// event looks for the moment from which the sandbox runs.
func (b *background) event(env launch.Env) func(step.Event) {
	return func(e step.Event) {
		switch {
		case e.Step != "sandbox":
		case e.Kind == step.Begin:
			ctx, cancel := context.WithCancel(context.Background())
			b.cancel = cancel
			b.polled.Go(func() {
				for !launch.Up(ctx, env, b.record) {
					if !pause(ctx, upPause) {
						return
					}
				}
				b.detached()
			})
		case e.Kind == step.Done || e.Kind == step.Failed:
			b.cancel()
		}
	}
}

// detached lets go of where the launch was started.
func (b *background) detached() {
	if b.live != nil {
		b.live.up()
	}
	b.screen.Connect(2)
	b.up.Store(true)
	b.say(false)
}

// say tells the launch that started this one that it need not wait any longer.
func (b *background) say(ended bool) {
	json.NewEncoder(ascii{b.starts}).Encode(up{b.record.ID, b.record.Profile, ended})
	b.starts.Close()
}

// notStarted are podman's statuses for a command that could not be started.
func notStarted(status int) bool { return status >= 125 && status <= 127 }

// finish ends the terminal with the run, and keeps how it ended.
func (b *background) finish(cmd *cobra.Command, status int, err error) error {
	if b.cancel != nil {
		b.cancel()
		b.polled.Wait()
	}
	out := launchEnd(status, err)
	if b.kept == nil { // nothing was launched yet
		return out
	}
	var es *exitStatus
	errors.As(out, &es)
	if es != nil {
		status = es.Status
	}
	if !b.up.Load() && (err != nil || notStarted(status)) {
		b.screen.Drain()
		tellScreen(b.stderr, b.screen.Text()) // what podman said
		b.kept.drop()
		return out
	}
	signal.Ignore(syscall.SIGHUP) // of the terminal, which ends now
	ended := !b.up.Swap(true)
	report(b, cmd.CommandPath(), out)
	b.screen.Drain(2)
	b.kept.end(status, b.screen.Text())
	if ended {
		b.say(true)
	}
	b.screen.Close(status)
	return &exitStatus{Status: status}
}

// tellScreen tells what a sandbox has shown.
func tellScreen(w io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, config.Show(l))
	}
}
