package launch

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"lazaret/launch/podman"
	"lazaret/launch/term"
)

// Verbs of the control socket about the run as a whole.
const (
	verbStatus = "status" // what is run, and how it is going
	verbStop   = "stop"   // end it; the connection ends when everything is undone
	verbEnter  = "enter"  // where a program is started beside the sandbox's own
)

// ErrStopped is the end of a sandbox that another lazaret asked for.
var ErrStopped = errors.New("stopped by \"lazaret stop\"")

// Phases of a run.
const (
	PhaseStarting = "starting"
	PhaseRunning  = "running"
	PhaseEnding   = "ending"
)

// Status is what a running lazaret says of its run.
type Status struct {
	Record
	Phase string `json:"phase"`
	// Branch is the branch that the sandbox's git started on, "" where there is
	// none.
	Branch  string `json:"branch"`
	Denials int    `json:"denials"` // connections and names that were denied
	Pending int    `json:"pending"` // requests that wait for an answer
	// Attached tells whether somebody is attached to one that runs detached.
	Attached bool `json:"attached,omitempty"`
}

// reporter is a service that has something to say of the run's status.
type reporter interface{ report(*Status) }

// attend answers other lazarets about the run as a whole.
type attend struct {
	plan   *Plan
	end    func(error)
	phase  atomic.Value // string
	waits  atomic.Int32 // for how much the sandbox's command waits; see begun
	helper atomic.Pointer[helper]
	screen *term.Virtual // nil: it is on a terminal of the person's, or on none
}

// answers says what is answered from here on.
func (a *attend) answers() {
	a.phase.Store(PhaseStarting)
	a.waits.Store(1)
	if a.plan.has(gateStep) {
		a.waits.Store(2)
	}
	c := &a.plan.control
	c.handle(verbStatus, func(_ context.Context, conn *net.UnixConn, _ json.RawMessage) {
		json.NewEncoder(conn).Encode(a.status())
	})
	c.handle(verbStop, a.stop)
	c.handle(verbAttach, a.attach)
	c.handle(verbEnter, func(_ context.Context, conn *net.UnixConn, _ json.RawMessage) {
		json.NewEncoder(conn).Encode(a.enter())
	})
}

// begun tells whether the sandbox's command waits for nothing more, now that one
// thing is done.
func (a *attend) begun() bool {
	if a.waits.Add(-1) > 0 {
		return false
	}
	a.phase.CompareAndSwap(PhaseStarting, PhaseRunning)
	return true
}

func (a *attend) status() Status {
	s := Status{Record: a.plan.Record, Phase: a.phase.Load().(string), Branch: a.plan.branch}
	if a.screen != nil {
		s.Attached = a.screen.Busy() != ""
	}
	for _, svc := range a.plan.services {
		if t, ok := svc.(reporter); ok {
			t.report(&s)
		}
	}
	return s
}

// stop ends the sandbox. The connection stays open until this process has
// undone everything and ends: its end is the answer.
func (a *attend) stop(_ context.Context, conn *net.UnixConn, _ json.RawMessage) {
	conn.SetDeadline(time.Time{})
	if _, err := conn.Write([]byte("{}\n")); err != nil {
		return
	}
	a.end(ErrStopped)
	conn.Read(make([]byte, 1)) // until whoever asked goes away, or we do
}

// door is where a program is started beside the sandbox's own: in the helper's
// namespaces, by the runtime.
type door struct {
	Helper  string        `json:"helper"` // "pid/start time"; "" before the sandbox is up
	Engine  podman.Engine `json:"engine"`
	Environ []string      `json:"environ"`
}

func (a *attend) enter() door {
	h := a.helper.Load()
	if h == nil || a.phase.Load() != PhaseRunning {
		return door{}
	}
	name, err := processName(h.pid)
	if err != nil {
		return door{}
	}
	return door{Helper: name, Engine: a.plan.Engine, Environ: a.plan.environ}
}

// report gives how many requests wait.
func (s *escalation) report(st *Status) {
	if s.daemon == nil {
		return
	}
	if asks, err := s.daemon.Queue().Pending(context.Background()); err == nil {
		st.Pending = len(asks)
	}
}
