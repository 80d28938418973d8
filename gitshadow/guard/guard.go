// Package guard finds what the host's own tools would run or obey in a
// directory that a sandbox could write to: repositories nobody made, hooks,
// programs named in git's configuration, links that lead out, setuid files,
// and the files that editors, shells and package managers act upon. It reads
// without following links and starts nothing. What it finds is compared with
// what was there before the sandbox; what is new can be moved aside, never
// removed.
package guard

import (
	"fmt"
	"time"
)

// Severity says how far a finding is from running something on the host.
type Severity int

// From harmless alone to what needs no further step of the person's than
// ordinary work in the directory.
const (
	seen Severity = iota - 1 // not told: it only says that a file was there
	Note
	Warning
	Danger
)

func (s Severity) String() string {
	switch s {
	case Danger:
		return "danger"
	case Warning:
		return "warning"
	case seen:
		return "seen"
	}
	return "note"
}

// MarshalText gives the severity its name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a severity's name.
func (s *Severity) UnmarshalText(b []byte) error {
	for _, v := range []Severity{seen, Note, Warning, Danger} {
		if v.String() == string(b) {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("%q is no severity", b)
}

// Kind is what sort of thing was found.
type Kind string

// The kinds of findings.
const (
	Repository  Kind = "repository"  // a repository of its own
	GitConfig   Kind = "git-config"  // a setting that names a program or leads elsewhere
	Hook        Kind = "hook"        // a program that git runs
	Program     Kind = "program"     // a file of the workspace that a setting of git runs
	Alternates  Kind = "alternates"  // objects borrowed from elsewhere
	Ref         Kind = "ref"         // a ref with an odd name, or that replaces objects
	Todo        Kind = "todo"        // a rebase under way with commands to run
	Lock        Kind = "lock"        // a lock file of git's that was left
	Submodules  Kind = "submodules"  // .gitmodules with odd urls or paths
	Attributes  Kind = "attributes"  // .gitattributes that name drivers
	Link        Kind = "link"        // a symlink out of the directory
	Special     Kind = "special"     // a FIFO, socket or device
	Setuid      Kind = "setuid"      // a program that runs as its owner for everybody
	Tool        Kind = "tool"        // a file that some tool acts upon
	Lazaret     Kind = "lazaret"     // a config or lock of lazaret's own in a sub-directory
	Credentials Kind = "credentials" // secrets in a repository's configuration
)

// Repair is what can be done about a finding.
type Repair string

// Nothing is ever removed.
const (
	NoRepair Repair = ""
	Aside    Repair = "move-aside" // rename it to what no tool looks for
	Strip    Repair = "strip"      // take the setuid and setgid bits off
)

// State says how a finding relates to what was there before.
type State string

// States of a finding.
const (
	Present  State = "present" // nothing is known of before
	Appeared State = "appeared"
	Changed  State = "changed"
)

// Finding is one thing that a tool on the host would run or obey. Path and
// What are as the sandbox chose them: whoever prints one escapes it.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	Root     Name     `json:"root"`           // absolute
	Path     Name     `json:"path"`           // below Root
	What     Name     `json:"what,omitempty"` // the detail: a setting, a link's target
	Why      string   `json:"why"`            // what acts on it, and how
	Digest   string   `json:"digest,omitempty"`
	Live     bool     `json:"live,omitempty"` // tools act on it while the person works elsewhere
	Repair   Repair   `json:"repair,omitempty"`
	Inode    uint64   `json:"inode,omitempty"`
	State    State    `json:"state,omitempty"`
	// Group is the directory of a tool's own that a file lies in, below Root.
	Group Name `json:"group,omitempty"`
	// Files is how many files a finding stands for that is about a directory.
	Files int `json:"files,omitempty"`
}

// Gap is a place that was not looked at.
type Gap struct {
	Root Name   `json:"root"`
	Path Name   `json:"path"`
	Why  string `json:"why"`
}

// Snapshot is everything in a set of directories that tools on the host would
// act upon, sorted.
type Snapshot struct {
	Taken    time.Time `json:"taken"`
	Roots    []Name    `json:"roots"`
	Findings []Finding `json:"findings"`
	Gaps     []Gap     `json:"gaps,omitempty"` // empty: everything was looked at
	Entries  int       `json:"entries"`
}
