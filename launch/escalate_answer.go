package launch

import (
	"context"

	"lazaret/escalate"
	"lazaret/launch/term"
)

// Answering is what a program needs that answers a sandbox's requests.
type Answering struct {
	Desk escalate.Desk // where they wait
	// Session is the terminal that the sandbox shares; nil in another process.
	Session *term.Session
	// Screen is the terminal of Session where nobody need be at it.
	Screen *term.Virtual
	Box    Box
}

// Box is a sandbox that can be made to stand still.
type Box interface {
	// Suspend stops everything in the sandbox. Where that fails, the sandbox is
	// ended instead: after an abort, nothing in it goes on.
	Suspend(context.Context) error
	// Resume lets it go on.
	Resume(context.Context) error
	// End ends it.
	End(context.Context) error
}
