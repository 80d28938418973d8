package launch

import (
	"context"
	"slices"

	"lazaret/internal/step"
	"lazaret/launch/term"
)

// service is what goes on working while the sandbox runs: it has begun before
// the first step and is ended as soon as the sandbox's command has, or bringing
// it up has failed: before anything is undone. What must happen after that, on
// every way out and after a kill, is an undo.
type service interface {
	// begin gives the service what a run has; its steps do the rest.
	begin(live)
	// finish ends the service and returns when it has ended. It is called once,
	// also where none of its steps ran.
	finish(ctx context.Context)
}

// live is what a service may use of the run.
type live struct {
	emit func(step.Event) // tells what happened
	// tell is emit for what may only go on if it could be written down.
	tell func(step.Event) error
	// answer answers requests at the terminal; nil where nobody does.
	answer func(context.Context, Answering)
	end    func(error) // ends the sandbox, with the run's error
	// session is the person's terminal; nil where there is none.
	session *term.Session
	screen  *term.Virtual  // see IO.Screen
	helper  func() *helper // the helper, once its step is done
}

// serve begins the plan's services and returns what ends them, newest first.
func (p *Plan) serve(l live) (finish func(context.Context)) {
	for _, s := range p.services {
		s.begin(l)
	}
	return func(ctx context.Context) {
		for _, s := range slices.Backward(p.services) {
			s.finish(ctx)
		}
	}
}
