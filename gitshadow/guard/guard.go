// Package guard finds what the host's own tools would run or obey in a
// directory that a sandbox could write to: repositories nobody made, hooks,
// programs named in git's configuration, links that lead out, setuid files,
// and the files that editors, shells and package managers act upon. It reads
// without following links and starts nothing. What it finds is compared with
// what was there before the sandbox; what is new can be moved aside, never
// removed.
package guard

import (
	"cmp"
	"fmt"
	"slices"
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

type key struct {
	kind       Kind
	root, path Name
	what       Name
}

func (f Finding) key() key { return key{f.Kind, f.Root, f.Path, f.What} }

// place is a file, as far as one kind of finding is about it.
type place struct {
	kind       Kind
	root, path Name
}

func (f Finding) place() place { return place{f.Kind, f.Root, f.Path} }

// same tells whether two findings say the same.
func (f Finding) same(g Finding) bool { return f.key() == g.key() && f.Digest == g.Digest }

// Compare gives what is in now and was not in before, worst first. A nil
// before knows nothing, so that everything is given.
func Compare(before *Snapshot, now Snapshot) []Finding {
	known, places, groups := map[key]string{}, map[place]bool{}, map[place]bool{}
	if before != nil {
		for _, f := range before.Findings {
			known[f.key()] = f.Digest
			places[f.place()] = true
			groups[place{"", f.Root, f.Group}] = true
		}
	}
	var out []Finding
	for _, f := range now.Findings {
		digest, there := known[f.key()]
		switch {
		case f.Severity == seen:
			continue
		case before == nil:
			f.State = Present
		case there && digest == f.Digest:
			continue
		case places[f.place()]:
			f.State = Changed
			f.raise()
			if f.Repair == Aside {
				// What was there before would go with it.
				f.Repair = NoRepair
			}
		default:
			f.State = Appeared
			f.raise()
			if f.Group != "" && groups[place{"", f.Root, f.Group}] {
				f.Group = "" // the directory was there before
			}
		}
		out = append(out, f)
	}
	worstFirst(out)
	return out
}

// Collapse makes one finding of the files of a tool's directory that appeared
// as a whole, for people to read.
func Collapse(fs []Finding) (out []Finding) {
	type group struct{ root, path Name }
	of := func(f Finding) group { return group{f.Root, f.Group} }
	files, at := map[group]int{}, map[group]int{}
	for _, f := range fs {
		files[of(f)]++
	}
	for _, f := range fs {
		if f.Group == "" || f.State == Changed || files[of(f)] == 1 {
			out = append(out, f)
			continue
		}
		i, ok := at[of(f)]
		if !ok {
			at[of(f)] = len(out)
			f.Path, f.Inode, f.Digest, f.Files = f.Group, 0, "", files[of(f)]
			out = append(out, f)
			continue
		}
		if f.Severity > out[i].Severity {
			out[i].Severity, out[i].Why = f.Severity, f.Why
		}
		out[i].Live = out[i].Live || f.Live
	}
	worstFirst(out)
	return out
}

// raise makes a warning of what is common in a directory, and remarkable where
// a sandbox made it.
func (f *Finding) raise() {
	if f.Severity == Note && (f.Kind == Repository || f.Kind == Lock) {
		f.Severity = Warning
	}
}

func worstFirst(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), compare(a, b))
	})
}

func compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What), cmp.Compare(a.Digest, b.Digest))
}

// Without gives the snapshot less what is in drop.
func (s Snapshot) Without(drop []Finding) Snapshot {
	gone := map[key]string{}
	for _, f := range drop {
		gone[f.key()] = f.Digest
	}
	s.Findings = slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool {
		d, ok := gone[f.key()]
		return ok && d == f.Digest
	})
	return s
}
