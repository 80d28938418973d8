package escalate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits bound what one sandbox can make a person look at.
type Limits struct {
	Waiting int           // requests that may wait at the same time
	Asks    int           // requests that may come to wait within Per
	Per     time.Duration // see Asks
}

// DefaultLimits are more than somebody who reads can answer.
var DefaultLimits = Limits{Waiting: 16, Asks: 40, Per: 10 * time.Minute}

// ErrFlood denies a request that no person is shown.
var ErrFlood = errors.New("too many requests: nobody was asked")

// Queue is where one sandbox's requests wait. It is a Desk.
type Queue struct {
	limits  Limits
	now     func() time.Time
	resolve func(argv []string) Resolved
	turns   chan struct{} // holds one for every command that was approved and runs
	shut    func()        // called by Abort before all else; nil: nothing is

	mu      sync.Mutex
	next    int
	waiting []*waiter     // oldest first
	coming  int           // how many hold a place that do not wait yet
	came    []time.Time   // when the latest came to wait, within Per
	changed chan struct{} // closed and replaced at each change
	aborted chan struct{} // closed by Abort
}

type waiter struct {
	ask     Ask
	verdict chan Verdict // takes one
}

// NewQueue makes a Queue, of whose requests so many run at a time. resolve tells
// what a vector would run.
func NewQueue(l Limits, running int, now func() time.Time, resolve func([]string) Resolved) *Queue {
	return &Queue{limits: l, turns: make(chan struct{}, running), now: now, resolve: resolve, changed: make(chan struct{}), aborted: make(chan struct{})}
}

// errAborted and errTimeout end waiting without a person's answer.
var (
	errAborted = errors.New("the person at the host has shut the channel")
	errTimeout = errors.New("nobody answered in time")
)

// wait lets a request that has a place wait for its verdict, and frees the place.
// With a verdict that approves it has a turn. The error is errAborted, errTimeout
// or that of ctx, which ends when whoever asked is gone.
func (q *Queue) wait(ctx context.Context, a Ask) (Verdict, error) {
	w, err := q.enter(a)
	if err != nil {
		return Verdict{}, err
	}
	defer q.leave(w)
	timer := time.NewTimer(a.Deadline.Sub(q.now()))
	defer timer.Stop()
	select {
	case v := <-w.verdict:
		return v, nil
	case <-q.aborted:
	case <-timer.C:
	case <-ctx.Done():
	}
	// An answer that was taken counts, although its time was up by then.
	q.leave(w)
	select {
	case v := <-w.verdict:
		return v, nil
	default:
	}
	if q.isAborted() {
		return Verdict{}, errAborted
	}
	if err := context.Cause(ctx); err != nil {
		return Verdict{}, err
	}
	return Verdict{}, errTimeout
}

// place gives a request its place before anything is spent on it, or ErrFlood: all
// that come at once would else find the same one free. It is to be freed by
// wait or by giveUp.
func (q *Queue) place() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.came = slices.DeleteFunc(q.came, func(t time.Time) bool { return now.Sub(t) > q.limits.Per })
	switch n := len(q.waiting) + q.coming; {
	case n >= q.limits.Waiting:
		return fmt.Errorf("%w: %d wait already", ErrFlood, n)
	case len(q.came) >= q.limits.Asks:
		return fmt.Errorf("%w: %d came within %s", ErrFlood, len(q.came), q.limits.Per)
	}
	q.came = append(q.came, now)
	q.coming++
	return nil
}

// giveUp frees the place of a request that does not come to wait.
func (q *Queue) giveUp() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming--
}

func (q *Queue) enter(a Ask) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming--
	if q.isAborted() {
		return nil, errAborted
	}
	q.next++
	a.Seq = q.next
	w := &waiter{ask: a, verdict: make(chan Verdict, 1)}
	q.waiting = append(q.waiting, w)
	q.change()
	return w, nil
}

func (q *Queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.change()
	}
}

// change tells whoever waits for a change; with q.mu held.
func (q *Queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue) isAborted() bool {
	select {
	case <-q.aborted:
		return true
	default:
		return false
	}
}

// Pending lists what waits, oldest first.
func (q *Queue) Pending(context.Context) ([]Ask, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Ask, len(q.waiting))
	for i, w := range q.waiting {
		out[i] = w.ask
	}
	return out, nil
}

// Changed gives a channel that is closed at the next change.
func (q *Queue) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

// Answer answers the request with that number.
func (q *Queue) Answer(_ context.Context, seq int, v Verdict) error {
	ask, err := q.find(seq)
	if err != nil {
		return err
	}
	if v.Kind == Approve {
		argv := ask.Argv
		if v.Argv != nil {
			argv = v.Argv
		}
		// Outside the lock: it looks at the disk.
		r := q.resolve(argv)
		if err := v.changed(r); err != nil {
			if v.Argv == nil {
				q.renew(seq, r)
			}
			return err
		}
		v.Program, v.Marks = r.Program, r.Marks
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiting {
		if w.ask.Seq == seq && !q.isAborted() {
			if v.Kind == Approve {
				// Now or not at all: nobody remembers later what they said yes to.
				select {
				case q.turns <- struct{}{}:
				default:
					run := "commands that you approved still run"
					if cap(q.turns) == 1 {
						run = "command that you approved still runs"
					}
					return fmt.Errorf("%d %s, %w", cap(q.turns), run, ErrBusy)
				}
			}
			w.verdict <- v
			q.waiting = slices.Delete(q.waiting, i, i+1)
			q.change()
			return nil
		}
	}
	return ErrGone
}

// renew has a request that waits show what it would run by now.
func (q *Queue) renew(seq int, r Resolved) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		if w.ask.Seq == seq {
			w.ask = w.ask.now(r)
			q.change()
		}
	}
}

func (q *Queue) find(seq int) (Ask, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		if w.ask.Seq == seq {
			return w.ask, nil
		}
	}
	return Ask{}, ErrGone
}

// Resolve tells what a vector would run.
func (q *Queue) Resolve(_ context.Context, argv []string) (Resolved, error) {
	return q.resolve(argv), nil
}

// Abort denies everything that waits and everything to come.
func (q *Queue) Abort(context.Context) error {
	if q.shut != nil {
		q.shut()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isAborted() {
		close(q.aborted)
		q.waiting = nil
		q.change()
	}
	return nil
}

// Aborted gives a channel that is closed once Abort was called.
func (q *Queue) Aborted() <-chan struct{} { return q.aborted }
