package launch

import "fmt"

// RefusedError is a launch that was refused before anything was changed.
type RefusedError struct {
	What string // the thing, and what is wrong with it
	Do   string // the way out
}

func (e *RefusedError) Error() string { return e.What }

// Hint is the way out.
func (e *RefusedError) Hint() string { return e.Do }

func refuse(do, format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...), do}
}

// LackError is a launch that was refused for something that the machine lacks.
type LackError struct {
	*RefusedError
	Check string // what Examine calls it
}

// Hint is the way out, and where more is said.
func (e *LackError) Hint() string {
	return e.Do + fmt.Sprintf(" (%s in what \"lazaret doctor\" prints)", e.Check)
}

func (e *LackError) Unwrap() error { return e.RefusedError }

func lacks(check, do, format string, args ...any) error {
	return &LackError{&RefusedError{fmt.Sprintf(format, args...), do}, check}
}
