package gitshadow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Apply are the words after "git" of the command that makes of a held ref what
// the sandbox made it; none where that is for a merge to do.
func (d Decision) Apply(host string) []string {
	switch {
	case d.Verdict != Hold:
		return nil
	case d.Ref == stash:
		return []string{"stash", "store", "-m", "from the sandbox", d.ID}
	case d.Target == "":
		name := "lazaret/" + strings.Join(strings.Split(strings.TrimPrefix(d.Kept, "refs/lazaret/held/"), "/"), "-")
		return []string{"branch", "--", name, d.Kept}
	case d.checkedOut():
		return nil
	}
	if host == "" {
		host = strings.Repeat("0", len(d.ID))
	}
	return []string{"update-ref", "--", d.Target, d.ID, host}
}

func (d Decision) checkedOut() bool { return d.Why == whyCheckedOut }

// whyCheckedOut is why a branch waits that a working tree has checked out.
const whyCheckedOut = "the branch is checked out here"

// Held is one ref that waits for a yes.
type Held struct {
	Profile, Run string
	Kept, ID     string // the host's ref that keeps it, and where that leads
	// Target is the ref that it is to become; "" where it has no other name.
	Target string
	Now    string // where Target leads; "" where there is none
	Stash  bool
}

// HeldRefs lists what waits for a yes in a repository.
func HeldRefs(h HostRefs, profile string) (out []Held) {
	for _, name := range slices.Sorted(maps.Keys(h.Refs)) {
		rest, ok := strings.CutPrefix(name, "refs/lazaret/held/")
		if !ok {
			continue
		}
		parts := strings.SplitN(rest, "/", 3)
		if len(parts) < 3 || profile != "" && parts[0] != profile || !profilePattern.MatchString(parts[0]) || !runPattern.MatchString(parts[1]) {
			continue
		}
		x := Held{Profile: parts[0], Run: parts[1], Kept: name, ID: h.Refs[name]}
		switch kind, short, _ := strings.Cut(parts[2], "/"); kind {
		case "heads", "tags":
			x.Target = "refs/" + kind + "/" + short
		case "odd":
			x.Target = "refs/heads/lazaret/" + x.Profile + "/" + short
		case "stash":
			x.Stash = true
		}
		x.Now = h.Refs[x.Target]
		out = append(out, x)
	}
	return out
}

// Settled tells whether the ref that it is to become holds it already.
func (x Held) Settled(ctx context.Context, g Git) (bool, error) {
	if x.Now == "" || x.Now == x.ID || !strings.HasPrefix(x.Target, "refs/heads/") {
		return x.Now == x.ID, nil
	}
	return leads(ctx, g, x.ID, x.Now)
}

// Apply are the words after "git" of the command that applies it; none where
// that is for a merge to do.
func (x Held) Apply(h HostRefs) []string {
	d := Decision{Verdict: Hold, ID: x.ID, Target: x.Target, Kept: x.Kept}
	if x.Stash {
		d.Ref = stash
	}
	if slices.Contains(h.CheckedOut, x.Target) {
		d.Why = whyCheckedOut
	}
	return d.Apply(x.Now)
}

// Host is git for the repository of a working tree on the host, with its refs
// as they are now.
func Host(ctx context.Context, program string, r Repo) (Git, HostRefs, error) {
	g := hostGit(program, r)
	h, err := readHost(ctx, g)
	return g, h, err
}

// Take makes a held ref what the sandbox made it, and lets go of it.
func (x Held) Take(ctx context.Context, g Git, h HostRefs) error {
	if x.Target == "" || slices.Contains(h.CheckedOut, x.Target) {
		return fmt.Errorf("%s is not a ref that can be set", x.Kept)
	}
	if way := inTheWay(h.Refs, x.Target); way != "" {
		return fmt.Errorf("%s is in the way of %s", way, x.Target)
	}
	zero := strings.Repeat("0", len(x.ID))
	old := x.Now
	if old == "" {
		old = zero
	}
	if err := move(ctx, g, "lazaret merge: from profile "+x.Profile, x.Target, x.ID, old); err != nil {
		return err
	}
	return x.Drop(ctx, g)
}

// Drop lets go of a held ref.
func (x Held) Drop(ctx context.Context, g Git) error {
	_, err := g.Feed(ctx, []byte("delete "+x.Kept+" "+x.ID+"\n"), "update-ref", "--stdin")
	return err
}

// HasNews tells whether a commit is not in the history of another, "" being none.
func HasNews(ctx context.Context, g Git, id, of string) (bool, error) {
	n, err := CountNews(ctx, g, id, of)
	return n > 0, err
}

// CountNews tells how many commits the history of one has that another's has not.
func CountNews(ctx context.Context, g Git, id, of string) (n int, err error) {
	out, err := g.Feed(ctx, []byte(revisions(id, have(of))), "rev-list", "--count", "--stdin")
	if err == nil {
		_, err = fmt.Sscan(string(out), &n)
	}
	return n, err
}
