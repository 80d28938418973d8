package lock

import (
	"fmt"
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
