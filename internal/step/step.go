// Package step is how lazaret changes a host: as steps that are data, each
// with its undo as data, journalled before the step runs. Teardown and
// "lazaret clean" share one interpreter. Package step runs nothing by itself;
// the operations and the undo kinds are given to it.
package step

import (
	"context"
	"fmt"
)

// Undo takes one change back. Running it twice, or before its step ran,
// succeeds.
type Undo struct {
	Kind string `json:"kind"` // container, rmdir, tree
	Base string `json:"base"` // workspace or cache: the only roots a record may name
	Name string `json:"name"` // path below Base, or container name
}

func (u Undo) String() string {
	if u.Base == "" {
		return fmt.Sprintf("%s %s", u.Kind, u.Name)
	}
	return fmt.Sprintf("%s <%s>/%s", u.Kind, u.Base, u.Name)
}

// Where says which process performs a step.
type Where int

const (
	// Host is the supervisor: lazaret itself, as the user.
	Host Where = iota
	// Podman is the helper in podman's user namespace, with a mount
	// namespace of its own.
	Podman
)

func (w Where) String() string {
	if w == Podman {
		return "podman"
	}
	return "host"
}

// Values are facts that only execution knows, by dotted name:
// "sandbox.exit". In a dry run they print as <sandbox.exit>.
type Values map[string]string

// Op is what a step does. Implementations are plain data.
type Op interface {
	// Do performs the operation; in holds what earlier steps found out.
	Do(ctx context.Context, in Values) (out Values, err error)
	// Show gives the operation as lines for --dry-run, secrets as env:NAME.
	Show() []string
}

// Step is one change to the host.
type Step struct {
	Name  string // "sandbox.run": in errors, events and the fault table
	Where Where
	Needs []string // steps that do not need each other run in parallel
	Op    Op
	Undo  []Undo // journalled before Op.Do
}

// Kinds of Event.
const (
	Begin  = "begin"  // the undo is journalled, the step is about to run
	Done   = "done"   // the step succeeded
	Failed = "failed" // the step failed
	Undone = "undone" // one undo was performed
	Notice = "notice" // something a person should know
	Told   = "told"   // something a person should know before the sandbox starts
	Denied = "denied" // the sandbox tried what it may not
	Ran    = "ran"    // a program was run: what it was, and how it ended
	Asked  = "asked"  // the sandbox asked for a command of the host's

	Progress = "progress" // how far a step is: bytes done, of total
	Returned = "returned" // the terminal is the person's again
)

// Event is one entry of the stream that progress, trace and audit read.
type Event struct {
	Run    string            `json:"run"`
	Step   string            `json:"step,omitempty"`
	Kind   string            `json:"kind"`
	Err    string            `json:"err,omitempty"`
	Micros int64             `json:"micros,omitempty"` // how long it took
	Attr   map[string]string `json:"attr,omitempty"`
}
