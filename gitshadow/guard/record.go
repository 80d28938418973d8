package guard

import (
	"slices"
	"time"
)

// Record is what is known of a workspace.
type Record struct {
	Version   int       `json:"version"`
	Workspace Name      `json:"workspace"`
	Since     time.Time `json:"since"` // when what is in Base was there
	// Open says that a sandbox began to run since, and nobody looked at what it
	// left.
	Open bool     `json:"open,omitempty"`
	Base Snapshot `json:"base"`
	// Told are the findings that were told and neither repaired nor accepted.
	Told []Finding `json:"told,omitempty"`
}

// Begin is the record for a sandbox that begins now, with now being what is
// there. What was told before and is still there stays to be told, and where
// the last sandbox's lazaret was killed, everything that came since.
func Begin(old *Record, workspace string, now Snapshot) Record {
	r := Record{Version: 1, Workspace: Name(workspace), Since: now.Taken, Open: true, Base: now}
	if old == nil {
		return r
	}
	left := old.Told
	if old.Open {
		left = append(Compare(&old.Base, now), left...)
	}
	r.Base = known(old.Base, now, left)
	r.Told = stillThere(left, now)
	return r
}

// known gives what counts as known: what is there now, but for the files that
// something unsettled is about, of which what was known before still is.
func known(old, now Snapshot, left []Finding) Snapshot {
	open := map[place]bool{}
	for _, f := range left {
		open[f.place()] = true
	}
	now.Findings = slices.DeleteFunc(slices.Clone(now.Findings), func(f Finding) bool { return open[f.place()] })
	for _, f := range old.Findings {
		if open[f.place()] {
			now.Findings = append(now.Findings, f)
		}
	}
	return now
}

// Join is the record for a sandbox that begins beside another that runs:
// what that one did since is not taken for the person's. Only directories that
// the other does not have are new.
func (r Record) Join(now Snapshot) Record {
	r.Open = true
	known := map[Name]bool{}
	for _, root := range r.Base.Roots {
		known[root] = true
	}
	for _, root := range now.Roots {
		if known[root] {
			continue
		}
		r.Base.Roots = append(r.Base.Roots, root)
		for _, f := range now.Findings {
			if f.Root == root {
				r.Base.Findings = append(r.Base.Findings, f)
			}
		}
	}
	return r
}

// End is the record after a look at what a sandbox left.
func (r Record) End(now Snapshot) (Record, []Finding) {
	found := Compare(&r.Base, now)
	r.Told, r.Open = found, false
	return r, found
}

// Accept is the record after the person has said that what is there is theirs.
func (r Record) Accept(now Snapshot) Record {
	r.Since, r.Base, r.Told = now.Taken, now, nil
	return r
}

func stillThere(told []Finding, now Snapshot) (out []Finding) {
	there := map[key]string{}
	for _, f := range now.Findings {
		there[f.key()] = f.Digest
	}
	seen := map[key]bool{}
	for _, f := range told {
		if d, ok := there[f.key()]; ok && d == f.Digest && !seen[f.key()] {
			seen[f.key()] = true
			out = append(out, f)
		}
	}
	return out
}
