package lock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParseError says why a text is not a lockfile this build accepts. It quotes
// keys of the schema and never values: the file may be anything.
type ParseError struct {
	Line   int    // from 1, or 0 where the place is not known
	Key    string // dotted, or "" where no key is to blame
	Reason string
	Newer  bool // the version is newer than this build reads; nothing else was looked at
	hint   string
}

func (e *ParseError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Hint is the next command.
func (e *ParseError) Hint() string {
	if e.hint != "" {
		return e.hint
	}
	return `run "lazaret lock"`
}

// Errors is more than one error, in the order of the profiles.
type Errors []error

// Error gives one line per error, each with its hint.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, err := range es {
		lines[i] = err.Error()
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" {
			lines[i] += "; " + h.Hint()
		}
	}
	return strings.Join(lines, "\n")
}

// Hint is empty: every line carries its own, and the first one's alone would mislead.
func (es Errors) Hint() string { return "" }

// Unwrap gives the errors to errors.As and errors.Is.
func (es Errors) Unwrap() []error { return es }

// join makes one error of those that are not nil, or nil.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return Errors(errs)
}

// KeyError is a value that a lock must not hold.
type KeyError struct {
	Key    string // dotted
	Reason string
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Reason }

// wrong makes a KeyError.
func wrong(key, format string, args ...any) error {
	return &KeyError{key, fmt.Sprintf(format, args...)}
}
