package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing wrong with the configuration, at one place. The
// constructors (ParseEndpoint, ParseHost …) return it without a place; Load
// fills that in.
//
// Values of the env table and text that is not valid TOML are never quoted:
// the first may be secrets, the second may be any file of the machine that
// somebody's lazaret.toml turned out to be.
type Error struct {
	File string // the layer as it is shown, or "" where no layer is involved
	Line int    // from 1; 0 where the error has no line (a missing key)
	Key  string // dotted, elements in brackets: "network.allow_hosts[0]"
	Msg  string // what is wrong
	hint string

	cause error // for errors.Is; nil where nobody asks
}

// Error gives "file:line: key: what is wrong", without the parts that are unknown.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(Show(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Hint says what to do about it, or is "".
func (e *Error) Hint() string { return e.hint }

func (e *Error) Unwrap() error { return e.cause }

// Errors is more than one Error, ordered by place.
type Errors []*Error

// Error gives one line per error, each with its hint.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
		if e.hint != "" {
			lines[i] += "; " + e.hint
		}
	}
	return strings.Join(lines, "\n")
}

// Hint is empty: every line carries its own, and the first one's alone would mislead.
func (es Errors) Hint() string { return "" }

// Unwrap gives the errors to errors.As and errors.Is.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// errorf makes an Error that has no place yet.
func errorf(hint, format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...), hint: hint}
}

// problems collects errors, so that a person sees all of them at once.
type problems struct {
	files []string // layer names in precedence order, for a stable order
	list  Errors
}

// at records err as being about key, written at pos.
func (p *problems) at(pos Position, key string, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Msg: err.Error()}
	}
	const most = 200 // a key can be as long as the file
	if r := []rune(key); len(r) > most {
		key = string(r[:most]) + "…"
	}
	p.list = append(p.list, &Error{File: pos.File, Line: pos.Line, Key: key, Msg: e.Msg, hint: e.hint})
}

// err gives what was collected: nil, one *Error, or Errors in the order of the
// layers, lines and keys.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(slices.Index(p.files, a.File), slices.Index(p.files, b.File)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Msg, b.Msg))
	})
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	return p.list
}
