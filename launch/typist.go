package launch

import (
	"time"

	"lazaret/launch/term"
)

// typist types for a viewer: where the sandbox does not read, whatever else the
// viewer says does not wait for that.
type typist chan typed

// typed is what was typed, or somebody who waits until everything before is.
type typed struct {
	text []byte
	rest chan<- struct{}
}

const (
	typedMost = 1024                   // messages; a read of a terminal each
	typeRest  = 200 * time.Millisecond // for what was typed before one leaves
)

func newTypist(screen *term.Virtual, v *term.Viewer) typist {
	t := make(typist, typedMost)
	go func() {
		stuck := false
		for next := range t {
			switch {
			case next.rest != nil:
				close(next.rest)
			case !stuck:
				stuck = !screen.Type(v, next.text)
			}
			// What came meanwhile is lost with it.
			stuck = stuck && len(t) > 0
		}
	}()
	return t
}

// add has something typed, unless there is too much.
func (t typist) add(text []byte) {
	select {
	case t <- typed{text: text}:
	default:
	}
}

// rest waits a moment for what was typed so far.
func (t typist) rest() {
	done := make(chan struct{})
	select {
	case t <- typed{rest: done}:
	default:
		return
	}
	select {
	case <-done:
	case <-time.After(typeRest):
	}
}
