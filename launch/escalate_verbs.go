package launch

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"lazaret/escalate"
)

// Verbs of the control socket by which another lazaret answers requests.
const (
	verbAsks    = "asks"
	verbAnswer  = "answer"
	verbResolve = "resolve"
	verbAbort   = "abort"
	verbSuspend = "suspend"
	verbResume  = "resume"
	verbEnd     = "end"
)

// answerArgs are the arguments of verbAnswer.
type answerArgs struct {
	Seq     int              `json:"seq"`
	Verdict escalate.Verdict `json:"verdict"`
}

// deskReply answers any of the verbs.
type deskReply struct {
	Err      string             `json:"err,omitempty"`
	Gone     bool               `json:"gone,omitempty"`    // escalate.ErrGone
	Changed  bool               `json:"changed,omitempty"` // escalate.ErrProgram
	Marked   bool               `json:"marked,omitempty"`  // escalate.ErrMarks
	Asks     []escalate.Ask     `json:"asks,omitempty"`
	Resolved *escalate.Resolved `json:"resolved,omitempty"`
}

// verbs has the control socket answer for the queue.
func (s *escalation) verbs(c *control) {
	handle := func(verb string, do func(ctx context.Context, args json.RawMessage) (deskReply, error)) {
		c.handle(verb, func(ctx context.Context, conn *net.UnixConn, args json.RawMessage) {
			conn.SetDeadline(time.Now().Add(2 * stillTime))
			var r deskReply
			err := errors.New("the sandbox has not started yet")
			if s.daemon != nil {
				r, err = do(ctx, args)
			}
			if err != nil {
				r.Err, r.Gone = err.Error(), errors.Is(err, escalate.ErrGone)
				r.Changed, r.Marked = errors.Is(err, escalate.ErrProgram), errors.Is(err, escalate.ErrMarks)
			}
			json.NewEncoder(conn).Encode(r)
		})
	}
	plain := func(verb string, do func(context.Context) error) {
		handle(verb, func(ctx context.Context, _ json.RawMessage) (deskReply, error) { return deskReply{}, do(ctx) })
	}
	handle(verbAsks, func(ctx context.Context, _ json.RawMessage) (r deskReply, err error) {
		asks, err := s.daemon.Queue().Pending(ctx)
		for _, a := range asks {
			// By the clock as it is now: another process has no other.
			now := time.Now()
			a.Deadline = now.Add(a.Deadline.Sub(now))
			r.Asks = append(r.Asks, a)
		}
		return r, err
	})
	handle(verbAnswer, func(ctx context.Context, raw json.RawMessage) (r deskReply, err error) {
		var a answerArgs
		if err := json.Unmarshal(raw, &a); err != nil {
			return r, err
		}
		return r, s.daemon.Queue().Answer(ctx, a.Seq, a.Verdict)
	})
	handle(verbResolve, func(ctx context.Context, raw json.RawMessage) (r deskReply, err error) {
		var argv []string
		if err := json.Unmarshal(raw, &argv); err != nil {
			return r, err
		}
		res, err := s.daemon.Queue().Resolve(ctx, argv)
		r.Resolved = &res
		return r, err
	})
	plain(verbAbort, func(ctx context.Context) error { return s.daemon.Queue().Abort(ctx) })
	plain(verbSuspend, s.Suspend)
	plain(verbResume, s.Resume)
	plain(verbEnd, s.End)
}

// Far is the desk and the box of a sandbox that another lazaret runs.
type Far struct {
	Record Record
	socket string
}

// Asking lists the sandboxes of this person that may ask, as Runs does.
func Asking(ctx context.Context, e Env) ([]Far, error) {
	dir, err := runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
	if err != nil {
		return nil, err
	}
	runs, err := Runs(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []Far
	for _, r := range runs {
		f := Far{r, filepath.Join(dir, "lazaret", r.ID, controlSocket)}
		if _, err := f.Pending(ctx); err == nil {
			out = append(out, f)
		}
	}
	return out, nil
}

func (f Far) ask(ctx context.Context, verb string, args any) (r deskReply, err error) {
	conn, err := callRun(ctx, f.socket, verb, args)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn.SetDeadline(time.Now().Add(2 * stillTime))
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return r, errors.New("the sandbox has ended, or may not ask")
	}
	switch {
	case r.Gone:
		return r, escalate.ErrGone
	case r.Changed:
		return r, escalate.ErrProgram
	case r.Marked:
		return r, escalate.ErrMarks
	case r.Err != "":
		return r, errors.New(r.Err)
	}
	return r, nil
}

// Pending lists what waits, oldest first.
func (f Far) Pending(ctx context.Context) ([]escalate.Ask, error) {
	r, err := f.ask(ctx, verbAsks, nil)
	return r.Asks, err
}

// farPause is how often somebody else's desk is looked at.
const farPause = 300 * time.Millisecond

// Changed gives a channel that is closed when it is time to look again.
func (f Far) Changed() <-chan struct{} {
	ch := make(chan struct{})
	time.AfterFunc(farPause, func() { close(ch) })
	return ch
}

// Answer answers a request.
func (f Far) Answer(ctx context.Context, seq int, v escalate.Verdict) error {
	_, err := f.ask(ctx, verbAnswer, answerArgs{seq, v})
	return err
}

// Resolve tells what an edited vector would run.
func (f Far) Resolve(ctx context.Context, argv []string) (escalate.Resolved, error) {
	r, err := f.ask(ctx, verbResolve, argv)
	if err != nil || r.Resolved == nil {
		return escalate.Resolved{}, err
	}
	return *r.Resolved, nil
}

// Abort shuts the channel.
func (f Far) Abort(ctx context.Context) error { return f.plain(ctx, verbAbort) }

// Suspend makes the sandbox stand still, or else ends it.
func (f Far) Suspend(ctx context.Context) error { return f.plain(ctx, verbSuspend) }

// Resume lets it go on.
func (f Far) Resume(ctx context.Context) error { return f.plain(ctx, verbResume) }

// End ends it.
func (f Far) End(ctx context.Context) error { return f.plain(ctx, verbEnd) }

func (f Far) plain(ctx context.Context, verb string) error {
	_, err := f.ask(ctx, verb, nil)
	return err
}
