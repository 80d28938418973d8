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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// refsPerRun bounds how many refs one run may bring or have kept.
const refsPerRun = 500

// Broker brings home what a sandbox wrote to its store: it copies what is new
// into a repository of lazaret's own, has git check it there, writes it to the
// host's objects and moves what the policy lets it move, by compare and swap.
// Everything else waits under refs/lazaret/held/ for a yes.
type Broker struct {
	Store   Store
	Program string // git
	// Live, when set, opens the git directory that the sandbox has in memory:
	// after "git gc" or "git pack-refs" its refs are only there. Head is where
	// in it HEAD is; "" is HEAD.
	Live func() (*os.File, error)
	Head string
	// Tell, when set, hears of each Note as it happens.
	Tell func(Note)

	mu     sync.Mutex
	origin Origin
	given  map[string]string
	done   map[string]Decision // by ref: what became of its latest value
	moved  map[string]string   // by the host's ref: what it was last moved to
	home   map[string]bool     // objects that the host was given
	// brought is what refs of the host's were made to lead to, and unsure says
	// that it was not looked at again.
	brought map[string]string
	unsure  bool
	packs   []string // that were written to the host's objects
	packed  packedRefs
	failed  map[string]failure // by ref: what could not be brought home
	notes   map[string]Note    // by ref and verdict: the latest
	order   []string
	odd     map[string]bool // told already
}

// What copies and checks may take: a blob of zeros is a thousand times as large
// as its file, and a sandbox can make many.
var (
	copyTime = bringTime        // of what one ref leads to
	lastTime = 15 * time.Minute // of all refs, at the end
)

var errTooLong = errors.New("reading what it leads to takes longer than lazaret waits")

// failure is a ref's value that could not be brought home, and how often that
// was tried.
type failure struct {
	id    string
	times int
}

// triesMost is how often something is tried while the sandbox runs: it costs
// the host a copy each time.
const triesMost = 3

// Note is what became of one ref, or of none where Ref is "".
type Note struct {
	Decision
	Was     string // where the host's ref Target was; "" where there was none
	Commits int    // beyond what the host had
	Err     string // it could not be brought home
}

func (b *Broker) begin() error {
	if b.done != nil {
		return nil
	}
	o, err := b.Store.Origin()
	if err != nil {
		return err
	}
	if b.given, err = b.Store.given(o.Repo.ObjectFormat); err != nil {
		return err
	}
	// It may have been made something else since.
	for _, path := range []string{o.Repo.GitDir, o.Repo.CommonDir} {
		dir, err := openBeneath(path)
		if err != nil {
			return fmt.Errorf("the repository is not there any more: %w", err)
		}
		dir.close()
	}
	if err := o.Repo.followed(); err != nil {
		return b.never(err)
	}
	b.origin = o
	b.brought = map[string]string{}
	b.done, b.moved, b.home = map[string]Decision{}, map[string]string{}, map[string]bool{}
	b.notes, b.odd, b.failed = map[string]Note{}, map[string]bool{}, map[string]failure{}
	return nil
}

// Pass brings home what is new. An error means that something is not home
// that may be later; Notes say what.
func (b *Broker) Pass(ctx context.Context) error { return b.pass(ctx, false) }

// Last is the pass after the sandbox has ended. An error means that something
// in the store is not home.
func (b *Broker) Last(ctx context.Context) error { return b.pass(ctx, true) }

func (b *Broker) pass(ctx context.Context, last bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.begin(); err != nil {
		return err
	}
	dir, err := openBeneath(b.Store.Dir)
	if err != nil {
		return fmt.Errorf("reading the git store: %w", err)
	}
	defer dir.close()
	refs, written, err := b.refs(dir)
	if errors.Is(err, errTooManyRefs) {
		return b.never(err)
	}
	if err != nil {
		return fmt.Errorf("reading the sandbox's refs: %w", err)
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		was := b.given[name]
		if d, known := b.done[name]; known {
			was = d.ID
		}
		switch f := b.failed[name]; {
		case was == refs[name], refs[name] == b.given[name] && !written[name]:
			// In packed-refs it has the value it was given with: a newer one
			// was in a file that is gone, which is a deletion and moves nothing.
		case !last && (name == stash || name == detached):
		case !last && f.id == refs[name] && f.times >= triesMost:
		default:
			changed = append(changed, name)
		}
	}
	g := hostGit(b.Program, b.origin.Repo)
	var errs []error
	if len(changed) == 0 {
		return b.settle(ctx, g, dir, last)
	}
	host, err := readHost(ctx, g)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, name := range changed {
		if last && time.Since(began) > lastTime {
			errs = append(errs, b.never(errTooLong))
			break
		}
		if len(b.done) >= refsPerRun && b.done[name].ID == "" {
			b.oddity("more than "+fmt.Sprint(refsPerRun)+" branches and tags", "")
			errs = append(errs, &UnfitError{errTooManyRefs})
			break
		}
		p := Policy{Profile: b.origin.Profile, Run: b.origin.Run, Given: b.given, Host: host}
		if err := b.one(ctx, g, dir, p, p.Decide(name, refs[name])); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if last || len(b.packs) >= packsApart {
		errs = append(errs, b.settle(ctx, g, dir, last))
	}
	return errors.Join(errs...)
}

// settle is what is done when nothing is new, and at the end.
func (b *Broker) settle(ctx context.Context, g Git, dir *beneath, last bool) error {
	var err error
	if b.unsure {
		err = b.recheck(ctx, g, dir)
	}
	if last || len(b.packs) >= packsApart {
		b.joinPacks(ctx)
	}
	return err
}

// never is the error of what can be brought home at no time, and tells of it.
func (b *Broker) never(err error) error {
	if b.notes == nil {
		b.notes, b.odd = map[string]Note{}, map[string]bool{}
	}
	b.oddity("refs", err.Error())
	return &UnfitError{err}
}

// oddity tells once of something in the store that is not what git makes.
func (b *Broker) oddity(name, why string) {
	if len(b.odd) < 100 && !b.odd[name] {
		b.odd[name] = true
		b.note(Note{Decision: Decision{Verdict: Never, Ref: name, Why: why}})
	}
}

func (b *Broker) note(n Note) {
	key := fmt.Sprint(n.Ref, "\x00", n.Verdict, n.Err != "")
	was, known := b.notes[key]
	if !known {
		b.order = append(b.order, key)
	} else {
		if n.Commits += was.Commits; n.Verdict == Arrive {
			n.Was = was.Was
		}
	}
	b.notes[key] = n
	if b.Tell != nil {
		b.Tell(n)
	}
}

// Notes tells what became of everything so far: one note a ref and verdict.
func (b *Broker) Notes() (out []Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.order {
		n := b.notes[key]
		if n.Err != "" && b.done[n.Ref].ID == n.ID && b.done[n.Ref].Verdict != Never {
			continue // it came after all
		}
		out = append(out, n)
	}
	return out
}

// one carries out one decision.
func (b *Broker) one(ctx context.Context, g Git, dir *beneath, p Policy, d Decision) error {
	switch d.Verdict {
	case Nothing:
		b.done[d.Ref] = d
		return nil
	case Hold:
		if p.Host.Refs[d.Kept] == d.ID {
			b.done[d.Ref] = d // by an earlier look at the same store
			b.note(Note{Decision: d, Was: p.Host.Refs[d.Target]})
			return nil
		}
	case Never:
		b.done[d.Ref] = d
		b.note(Note{Decision: d})
		return nil
	}
	n := Note{Decision: d}
	err := b.bring(ctx, g, dir, p, &n)
	b.unmark()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f := failure{n.ID, 1}
		if b.failed[n.Ref].id == n.ID {
			f.times = b.failed[n.Ref].times + 1
		}
		b.failed[n.Ref] = f
		n.Err = err.Error()
		b.note(n)
		return fmt.Errorf("%s: %w", show(d.Ref), err)
	}
	b.done[d.Ref] = n.Decision
	delete(b.failed, d.Ref)
	if n.Verdict != Nothing {
		b.note(n)
	}
	return nil
}

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

// UnfitError is what a sandbox wrote and cannot be brought home, now or later.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }

func (e *UnfitError) Unwrap() error { return e.Err }

// unfit tells what a sandbox is to blame for from what the host is short of.
func unfit(err error) error {
	for _, e := range []error{context.Canceled, context.DeadlineExceeded, unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EACCES, unix.EPERM, unix.EMFILE, unix.ENFILE, unix.EIO} {
		if errors.Is(err, e) {
			return err
		}
	}
	var pe *proc.Error
	if errors.As(err, &pe) {
		if proc.ExitStatus(err) < 0 {
			return err
		}
		for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EACCES} {
			if strings.Contains(strings.ToLower(pe.Stderr), e.Error()) {
				return err
			}
		}
	}
	return &UnfitError{reason(err)}
}

// reason is what git said of what it would not take, rather than that it did
// not: the last line of what it says is seldom the one that tells why.
func reason(err error) error {
	var pe *proc.Error
	if !errors.As(err, &pe) {
		return err
	}
	for line := range strings.Lines(pe.Stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "error: "); ok {
			return fmt.Errorf("git does not take it: %s", show(text))
		}
	}
	return err
}
