package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bring copies, checks and delivers what a ref leads to, and moves a ref of the
// host's to it.
func (b *Broker) bring(ctx context.Context, g Git, dir *beneath, p Policy, n *Note) error {
	if err := b.deliver(ctx, g, dir, p.Host, n.ID); err != nil {
		return err
	}
	if kind, err := g.Line(ctx, "cat-file", "-t", n.ID); err != nil || kind != "commit" && !strings.HasPrefix(n.Ref, "refs/tags/") {
		return &UnfitError{fmt.Errorf("%s is no commit", n.ID)}
	}
	if n.Ref == detached {
		out, err := g.Feed(ctx, []byte(revisions(n.ID, p.Host.have(false))), "rev-list", "--max-count=1", "--stdin")
		if err == nil && len(out) == 0 {
			n.Verdict = Nothing // the host has it
			return nil
		}
	}
	was := p.Host
	was.Refs = maps.Clone(was.Refs)
	if err := b.point(ctx, g, p, n); err != nil {
		return err
	}
	// The host may have cleaned up between the objects' coming and the ref's.
	return b.deliver(ctx, g, dir, was, n.ID)
}

// patience is how often objects are brought again that the host throws away
// before a ref leads to them.
const patience = 5

// deliver brings the objects of one commit or tag to the host, unless it has
// all of them.
func (b *Broker) deliver(ctx context.Context, g Git, dir *beneath, host HostRefs, id string) error {
	var err error
	for i := range patience {
		doubt := i > 0
		have := host.have(doubt)
		if doubt {
			clear(b.home)
		}
		if !b.home[id] {
			if err = b.copy(ctx, dir, have, id); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if doubt || errors.Is(err, errTooLong) {
					return err
				}
				continue
			}
		}
		if err = b.whole(ctx, g, id, have); err == nil {
			return nil
		}
	}
	return err
}

// whole tells whether the host has everything that a commit or tag leads to
// beyond some commits.
func (b *Broker) whole(ctx context.Context, g Git, id string, have []string) error {
	args := []string{"rev-list", "--objects", "--quiet", "--stdin"}
	if b.origin.Repo.Partial {
		args = append(args, "--exclude-promisor-objects")
	}
	_, err := g.Feed(ctx, []byte(revisions(id, have)), args...)
	return err
}

// recheck looks again at what was brought: a cleaning up on the host that had
// begun before can have thrown it away after.
func (b *Broker) recheck(ctx context.Context, g Git, dir *beneath) error {
	host, err := readHost(ctx, g)
	if err != nil {
		return err
	}
	var errs []error
	for _, ref := range slices.Sorted(maps.Keys(b.brought)) {
		if id := b.brought[ref]; host.Refs[ref] == id && b.whole(ctx, g, id, host.have(true)) != nil {
			clear(b.home)
			errs = append(errs, b.deliver(ctx, g, dir, host, id))
		}
	}
	b.unmark()
	b.unsure = false
	return errors.Join(errs...)
}

// point makes a ref of the host's lead to what was delivered.
func (b *Broker) point(ctx context.Context, g Git, p Policy, n *Note) error {
	zero := p.zero(n.ID)
	if n.Verdict == Arrive {
		why, err := b.arrive(ctx, g, p, n, zero)
		if err != nil || why == "" {
			return err
		}
		n.Decision = p.hold(n.Decision, n.Target, strings.TrimPrefix(n.Ref, "refs/"), why)
	}
	if way := inTheWay(p.Host.Refs, n.Kept); way != "" {
		n.Kept = heldPrefix(p.Profile) + p.Run + "/odd/" + hashName(n.Ref)
	}
	n.Was = p.Host.Refs[n.Target]
	old := p.Host.Refs[n.Kept]
	if old == n.ID {
		return nil
	}
	if old == "" {
		old = zero
	}
	n.Commits = b.count(ctx, g, p, n.ID)
	if err := move(ctx, g, "lazaret: kept for a yes", n.Kept, n.ID, old); err != nil {
		return err
	}
	p.Host.Refs[n.Kept] = n.ID
	b.brought[n.Kept], b.unsure = n.ID, true
	return nil
}

// arrive moves a branch of the profile's own. It says why that has to wait
// where somebody else has moved it, too.
func (b *Broker) arrive(ctx context.Context, g Git, p Policy, n *Note, zero string) (why string, err error) {
	now := p.Host.Refs[n.Target]
	if way := inTheWay(p.Host.Refs, n.Target); way != "" {
		n.Target = ""
		return "the name " + show(strings.TrimPrefix(way, "refs/heads/")) + " is in its way", nil
	}
	last, known := b.moved[n.Target]
	if !known {
		last = b.given[n.Target]
	}
	if now != "" && now != last {
		ff, err := leads(ctx, g, now, n.ID)
		if err != nil {
			return "", err
		}
		if !ff {
			return "it was moved here meanwhile", nil
		}
	}
	old := now
	if old == "" {
		old = zero
	}
	n.Was, n.Commits = now, b.count(ctx, g, p, n.ID)
	if err := move(ctx, g, "lazaret: from the sandbox", n.Target, n.ID, old); err != nil {
		return "", err
	}
	b.moved[n.Target], p.Host.Refs[n.Target] = n.ID, n.ID
	b.brought[n.Target], b.unsure = n.ID, true
	return "", nil
}

// count tells how many commits are beyond what the host has; 0 where it cannot.
func (b *Broker) count(ctx context.Context, g Git, p Policy, id string) int {
	out, err := g.Feed(ctx, []byte(revisions(id, p.Host.have(false))), "rev-list", "--count", "--stdin")
	if err != nil {
		return 0
	}
	n := 0
	fmt.Sscan(string(out), &n)
	return n
}

func (p Policy) zero(id string) string { return strings.Repeat("0", len(id)) }

// copy copies, checks and delivers what a commit or tag leads to.
func (b *Broker) copy(ctx context.Context, dir *beneath, have []string, id string) (err error) {
	place, err := os.MkdirTemp(b.Store.Dir, "staging-")
	if err != nil {
		return err
	}
	s, err := newStaging(filepath.Join(place, "s"), b.Program, b.origin.Repo)
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	err = s.collect(within, dir, id, have, b.home)
	var name string
	if err == nil {
		name, err = s.deliver(within, id, have, b.mark())
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return &UnfitError{errTooLong}
	}
	if err != nil {
		return unfit(err)
	}
	if name != "" && !slices.Contains(b.packs, name) {
		b.packs = append(b.packs, name)
	}
	maps.Copy(b.home, s.seen)
	return nil
}
