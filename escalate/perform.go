package escalate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lazaret/escalate/wire"
)

// turn is one of the commands that may run at a time: of those that run without a
// question, or of those that a person approved, so that neither keeps the other
// from running. It is held until the sandbox has taken what the command printed,
// which is in memory as long.
type turn struct {
	of   chan struct{}
	held bool
}

// take waits for a free one.
func (t *turn) take(ctx context.Context, aborted <-chan struct{}) error {
	select {
	case t.of <- struct{}{}:
		t.held = true
		return nil
	case <-aborted:
		return errAborted
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) leave() {
	if t.held {
		<-t.of
		t.held = false
	}
}

// decided is what has become of a request.
type decided struct {
	status  string
	argv    []string
	program string
	marks   []Mark
	by      string
	reason  string
	auto    bool
}

// perform runs what was allowed, and whose turn it is.
func (d *Daemon) perform(ctx context.Context, r wire.Request, c decided) wire.Response {
	if err := d.still(r, c); err != nil {
		return d.deny(r, c.not(err))
	}
	dir := d.Dir
	if c.auto {
		// A program that looks for its configuration where it runs must find
		// none of the sandbox's.
		dir = d.Empty
	}
	entry := Entry{Kind: "decided", Request: r, Argv: c.argv, Program: c.program, Status: c.status, By: c.by, Dir: dir, Auto: c.auto}
	if err := d.log(entry); err != nil {
		return wire.Response{RequestID: r.RequestID, Status: wire.Denied, Error: "the host cannot write its audit log"}
	}
	if d.queue.isAborted() { // while that was written
		entry.Kind, entry.Status, entry.Reason = "ended", wire.Aborted, errAborted.Error()
		d.log(entry)
		return wire.Response{RequestID: r.RequestID, Status: wire.Aborted, Error: entry.Reason}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, d.CommandTime, fmt.Errorf("stopped after %s, the most a command may take", d.CommandTime))
	defer cancel()
	res := d.Runners.run(ctx, job{Path: c.program, Argv: c.argv, Env: d.Env, Dir: dir, Keep: !c.auto}, r.Stdin, d.MaxOutput)
	status := res.Status
	if status < 0 {
		status = 127 // as a shell has it
	}
	resp := wire.Response{RequestID: r.RequestID, Approved: true, Status: c.status, ExitCode: &status, Truncated: res.Truncated}
	if c.status == wire.Edited {
		resp.Command = wire.Quote(c.argv)
	}
	resp.SetOutput(res.Stdout, res.Stderr)
	entry.Kind, entry.ExitCode, entry.Duration = "ended", status, time.Since(start)
	if res.Err != nil {
		resp.Error = res.Err.Error()
		entry.Reason = resp.Error
	}
	d.log(entry)
	return resp
}

// errChanged ends what was allowed as something else.
var errChanged = errors.New("it was approved, and not run")

// still tells why what was allowed is not to be run any more. Time may have
// passed since, in which the sandbox could change what the command names.
func (d *Daemon) still(r wire.Request, c decided) error {
	var err error
	if c.auto {
		if again := Decide(d.Policy, d.Lookup, r.Command, len(r.Stdin) > 0); !again.Auto || again.Program != c.program {
			err = ErrProgram
		}
	} else {
		err = Verdict{Program: c.program, Marks: c.marks}.changed(d.queue.resolve(c.argv))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	if d.queue.isAborted() {
		return errAborted
	}
	return nil
}

// not is what becomes of what was allowed and could not be run.
func (c decided) not(err error) decided {
	c.reason = err.Error()
	switch {
	case errors.Is(err, errAborted):
		c.status, c.by = wire.Aborted, "person"
	case errors.Is(err, errChanged):
		c.status, c.by = wire.Denied, "lazaret"
	default:
		c.status = wire.NoChannel
	}
	return c
}
