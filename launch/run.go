package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/launch/term"
)

// StartHelper starts the helper in podman's namespace.
type StartHelper struct {
	Conf string // the run's containers.conf

	start func(ctx context.Context, conf string) error
}

// Do starts the helper and waits until it answers.
func (o *StartHelper) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	return nil, o.start(ctx, o.Conf)
}

// Show tells what is started.
func (o *StartHelper) Show() []string {
	return []string{"nsenter into podman's user namespace, unshare mounts, lazaret " + HelperCommand}
}

// IO is what the sandbox's input and output are connected to.
type IO struct {
	Stdin, Stdout, Stderr *os.File
	// Terminal is the person's terminal ("/dev/tty") where the plan has one.
	Terminal string
	// Clipboard lets the sandbox write the terminal's clipboard.
	Clipboard bool
	// Screen is that terminal, where it is one that nobody need be at.
	Screen *term.Virtual
	// UTF8: the terminal, or that among the streams, reads UTF-8.
	UTF8 bool
	// Observe, when set, sees every event; see step.Runner.
	Observe func(step.Event) error
	// First, when set, is called before the first that the sandbox, or its
	// set-up, prints on the terminal.
	First func()
	// Answer, when set, shows the sandbox's requests to the person at the
	// terminal. It is called once, before the sandbox starts, where there is a
	// terminal, and returns when ctx ends.
	Answer func(ctx context.Context, a Answering)
}

// teardownTime bounds a teardown, whatever happened before.
const teardownTime = 2 * time.Minute

// Run performs the plan and returns the exit status of the sandbox's command.
// When it returns, for whatever reason, everything it did to the host is
// undone, or the error says what is not.
func (p *Plan) Run(ctx context.Context, io IO) (status int, err error) {
	if err := p.vouched(); err != nil {
		return 0, err
	}
	if err := roomIn(p.Host.RuntimeDir); err != nil {
		return 0, err
	}
	c, err := newClaim(p.Host.RuntimeDir, p.Record)
	if err != nil {
		return 0, err
	}
	r := &run{plan: p, claim: c, io: io}
	defer func() {
		if p := recover(); p != nil {
			if r.session != nil {
				r.session.Restore() // or nobody could read why it ended
			}
			panic(p)
		}
	}()
	values, err := r.up(ctx)
	derr := r.down(context.WithoutCancel(ctx))
	if err != nil {
		return 0, errors.Join(err, derr)
	}
	if _, ran := values[exitValue]; !ran {
		return 0, derr // a plan without a sandbox; see OnlyImages
	}
	status, serr := strconv.Atoi(values[exitValue])
	return status, errors.Join(serr, derr)
}

// run is a Plan being performed.
type run struct {
	plan    *Plan
	claim   *claim
	io      IO
	runner  *step.Runner
	helper  *helper
	session *term.Session
	outlets []*term.Outlet // what is printed without a session
	back    chan error     // gives the end of the session, once that is under way
	attend  attend
	forward func() error // makes the terminal the sandbox's, once
}

func (r *run) up(ctx context.Context) (step.Values, error) {
	if r.plan.Host.Terminal {
		s, err := term.Open(r.io.Terminal, term.Options{Title: "lazaret " + r.plan.Record.Profile + ": ", Clipboard: r.io.Clipboard, UTF8: r.io.UTF8, First: r.io.First})
		if err != nil {
			return nil, err
		}
		r.session = s
	}
	r.forward = sync.OnceValue(func() error {
		if r.session == nil {
			return nil
		}
		return r.session.Forward()
	})
	for _, s := range r.plan.Steps {
		if op, ok := s.Op.(*StartHelper); ok {
			op.start = r.startHelper
		}
	}
	r.runner = &step.Runner{
		Run: r.claim.ID, Journal: r.claim.journal, Now: time.Now,
		Do: r.do, Undo: r.undo, Observe: r.io.Observe,
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.attend.plan, r.attend.end, r.attend.screen = r.plan, func(err error) { cancel(err) }, r.io.Screen
	r.attend.answers()
	finish := r.plan.serve(live{
		emit: r.runner.Emit, session: r.session, helper: func() *helper { return r.helper },
		end: cancel, tell: r.runner.Tell, answer: r.io.Answer, screen: r.io.Screen,
	})
	values, err := r.runner.Up(proc.Telling(inner, r.ran), r.plan.Steps)
	if ctx.Err() == nil && inner.Err() != nil {
		err = context.Cause(inner) // a service ended it
	}
	r.attend.phase.Store(PhaseEnding)
	finish(context.WithoutCancel(ctx))
	r.giveBack()
	return values, err
}

// giveBack begins to make the terminal the person's again, beside the teardown:
// what was printed last may still be under way.
func (r *run) giveBack() {
	if r.session == nil {
		return
	}
	r.back = make(chan error, 1)
	go func() {
		err := r.session.Close()
		r.runner.Emit(step.Event{Kind: step.Returned})
		r.back <- err
	}()
}

// ran puts a program that was run into the stream of events.
func (r *run) ran(p proc.Ran) {
	r.runner.Emit(step.Event{Kind: step.Ran, Micros: p.Took.Microseconds(), Attr: map[string]string{"argv": shown(p.Argv...), "status": strconv.Itoa(p.Status)}})
}

// over is called when nothing runs in the sandbox any more. Podman still has to
// remove it: meanwhile its router can end, whose undo then waits for less. One
// that ended before its network was up is left to that.
func (r *run) over() {
	if u := r.plan.uplink; u != nil && r.attend.phase.Load() == PhaseRunning {
		go u.finish(context.Background())
	}
}

func (r *run) startHelper(ctx context.Context, conf string) (err error) {
	stdio := [3]*os.File{r.io.Stdin, r.io.Stdout, r.io.Stderr}
	if r.session != nil {
		child := r.session.Child()
		stdio = [3]*os.File{child, r.session.Output(), child} // podman asks the first what it is on
	} else {
		for i := 1; i < len(stdio); i++ {
			o, err := term.NewOutlet(stdio[i], r.io.UTF8)
			if err != nil {
				return err
			}
			r.outlets = append(r.outlets, o)
			stdio[i] = o.File
		}
	}
	var terminal *os.File
	if r.session != nil {
		if terminal, err = r.session.Spare(); err != nil {
			return err
		}
		defer terminal.Close()
	}
	for range 2 {
		r.helper, err = startHelper(ctx, r.plan.Host, r.claim, conf, stdio, terminal, r.plan.held.file, r.ran, r.over)
		if !errors.Is(err, errEndedAtOnce) {
			break
		}
		// Podman's pause process may have ended after it was found: podman makes
		// another one.
		if _, there := findPause(r.plan.Host); there {
			break
		}
	}
	if err == nil {
		r.attend.helper.Store(r.helper)
	}
	return err
}

func (r *run) do(ctx context.Context, s step.Step, in step.Values) (step.Values, error) {
	if s.Where == step.Host {
		return s.Op.Do(ctx, in)
	}
	if o, ok := s.Op.(interface{ values() (step.Values, error) }); ok {
		more, err := o.values()
		if err != nil {
			return nil, err
		}
		maps.Copy(in, more)
	}
	var err error
	switch s.Op.(type) {
	case Setup:
		r.secrets(in)
		err = r.forward()
	case Sandbox:
		r.secrets(in)
		err = r.begun()
	}
	if err != nil {
		return nil, err
	}
	defer r.follow(s)()
	out, err := r.helper.do(ctx, s.Op, in)
	r.tell(s, out)
	switch s.Op.(type) {
	case Gate:
		if err == nil {
			err = r.begun()
		}
	case Sandbox:
		if ctx.Err() == nil {
			// Where it ended before its command began, podman has said why.
			err = errors.Join(err, r.forward())
		}
	}
	return out, err
}

func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Name == name })
}

// begun is called for each thing that a sandbox's command waits for, when that
// is done or, of the sandbox itself, begins. With the last the sandbox runs and
// has the terminal: until then Ctrl-C is for lazaret.
func (r *run) begun() error {
	if !r.attend.begun() {
		return nil
	}
	return r.forward()
}

// secrets gives what runs in a sandbox its secrets.
func (r *run) secrets(in step.Values) {
	for name, v := range r.plan.Host.Secrets {
		in[secretValue(name)] = v
	}
}

func (r *run) undo(ctx context.Context, u step.Undo) error {
	x := undoer{
		record: r.claim.Record, runs: filepath.Dir(r.claim.dir), cache: r.plan.Host.CacheDir, podman: r.plan.Engine, router: podman.Engine{Podman: r.plan.Host.Podman.Path, Runsc: r.plan.Host.Runc.Path},
		env: hostEnviron(r.plan.Host.Environ, r.claim.dir), lazaret: r.plan.Host.Lazaret, helper: r.helper, git: r.plan.Host.Git.Program, brought: r.plan.gits.take,
	}
	return x.undo(ctx, u)
}

// hostEnviron is podman's environment outside its namespace.
func hostEnviron(environ []string, dir string) []string {
	return append(append([]string(nil), environ...), "CONTAINERS_CONF="+filepath.Join(dir, confFile))
}

// down undoes everything, newest first, past failures.
func (r *run) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, teardownTime)
	defer cancel()
	var errs []error
	if r.runner != nil {
		errs = append(errs, r.runner.Down(proc.Telling(ctx, r.ran)))
	}
	if r.helper != nil {
		// Its end also ends every mount it made, even where it was killed.
		if err := r.helper.close(); err != nil && proc.ExitStatus(err) < 128 {
			errs = append(errs, fmt.Errorf("ending the helper: %w", err))
		}
	}
	var terr error
	if r.back != nil {
		terr = <-r.back
	}
	for _, o := range r.outlets {
		o.Close()
	}
	if l := r.plan.control.l; l != nil {
		l.Close()
	}
	if err := errors.Join(errs...); err != nil {
		// The record stays, so that "lazaret clean" can try again.
		r.plan.held.drop()
		r.claim.close()
		return errors.Join(&LeftoverError{r.claim.ID, err}, terr)
	}
	return errors.Join(r.plan.held.release(), r.claim.remove(), terr)
}

// LeftoverError is a teardown that could not undo everything.
type LeftoverError struct {
	ID  string
	Err error
}

func (e *LeftoverError) Error() string { return fmt.Sprintf("taking down run %s: %v", e.ID, e.Err) }

func (e *LeftoverError) Unwrap() error { return e.Err }

// Hint is the next command.
func (e *LeftoverError) Hint() string {
	if late := (*proc.LateError)(nil); errors.As(e.Err, &late) && late.Program == "podman" {
		return `another podman may keep it waiting ("ps -C podman"); once "podman info" answers, "lazaret clean" tries again`
	}
	return `"lazaret clean" tries again`
}
