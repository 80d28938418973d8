package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Runner takes steps up and down.
type Runner struct {
	Run     string // run id, for events
	Journal *Journal
	// Do performs a step where it belongs.
	Do func(ctx context.Context, s Step, in Values) (Values, error)
	// Undo performs one undo.
	Undo func(ctx context.Context, u Undo) error
	// Observe, when set, sees every event. An error it returns for Begin
	// makes the step fail before it ran.
	Observe func(Event) error
	Now     func() time.Time

	mu sync.Mutex // serialises Observe and the journal
}

// Up performs the steps, each once those it needs are done, independent ones
// in parallel. It stops at the first failure and returns it, after everything
// it had started has ended. It does not take anything down.
func (r *Runner) Up(ctx context.Context, steps []Step) (Values, error) {
	if err := check(steps); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	type end struct {
		name string
		out  Values
		err  error
	}
	ends := make(chan end)
	values, done := Values{}, map[string]bool{}
	waiting := append([]Step(nil), steps...)
	running := 0
	var failures []error
	for {
		var later []Step
		for _, s := range waiting {
			if len(failures) > 0 || ctx.Err() != nil || !ready(s, done) {
				later = append(later, s)
				continue
			}
			running++
			in := maps.Clone(values)
			go func() {
				out, err := r.one(ctx, s, in)
				ends <- end{s.Name, out, err}
			}()
		}
		waiting = later
		if running == 0 {
			break
		}
		e := <-ends
		running--
		if e.err != nil {
			failures = append(failures, e.err)
			cancel()
			continue
		}
		done[e.name] = true
		maps.Copy(values, e.out)
	}
	if len(failures) > 0 {
		// The others were cancelled because of the first.
		return values, failures[0]
	}
	return values, ctx.Err()
}

func (r *Runner) one(ctx context.Context, s Step, in Values) (Values, error) {
	start := r.Now()
	for _, u := range s.Undo {
		if err := r.push(s.Name, u); err != nil {
			return nil, fmt.Errorf("%s: journalling: %w", s.Name, err)
		}
	}
	if err := r.emit(Event{Step: s.Name, Kind: Begin}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	out, err := r.Do(ctx, s, in)
	micros := r.Now().Sub(start).Microseconds()
	if err != nil {
		r.emit(Event{Step: s.Name, Kind: Failed, Err: err.Error(), Micros: micros})
		return out, fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := r.emit(Event{Step: s.Name, Kind: Done, Micros: micros}); err != nil {
		return out, fmt.Errorf("%s: %w", s.Name, err)
	}
	return out, nil
}

// Down undoes everything in the journal, newest first, past failures, and
// returns the failures joined. What it could not undo stays in the journal.
// ctx should not be the one whose end made the teardown necessary.
func (r *Runner) Down(ctx context.Context) error {
	var errs []error
	entries := r.Journal.Pending()
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		start := r.Now()
		err := r.Undo(ctx, e.Undo)
		ev := Event{Step: e.Step, Kind: Undone, Micros: r.Now().Sub(start).Microseconds(), Attr: map[string]string{"undo": e.Undo.String()}}
		if err != nil {
			ev.Err = err.Error()
			errs = append(errs, fmt.Errorf("undoing %s: %w", e.Step, err))
		} else if err := r.Journal.Pop(e.N); err != nil {
			errs = append(errs, fmt.Errorf("undoing %s: journalling: %w", e.Step, err))
		}
		r.emit(ev)
	}
	return errors.Join(errs...)
}

// Emit adds an event that belongs to no change of a step's state, such as
// something that happens while one runs.
func (r *Runner) Emit(e Event) { r.emit(e) }

// Tell is Emit for what may only go on if whoever observes has taken it in.
func (r *Runner) Tell(e Event) error { return r.emit(e) }

func (r *Runner) push(name string, u Undo) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Journal.Push(name, u)
}

func (r *Runner) emit(e Event) error {
	if r.Observe == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Run = r.Run
	return r.Observe(e)
}

func ready(s Step, done map[string]bool) bool {
	for _, n := range s.Needs {
		if !done[n] {
			return false
		}
	}
	return true
}

// check refuses steps that could never all run.
func check(steps []Step) error {
	seen := map[string]bool{}
	for _, s := range steps {
		for _, n := range s.Needs {
			// Order in the slice is an order of execution that works, so a
			// need must come before: this also rules out cycles.
			if !seen[n] {
				return fmt.Errorf("step %s needs %s, which does not come before it", s.Name, n)
			}
		}
		if seen[s.Name] {
			return fmt.Errorf("step %s is there twice", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}
