package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
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
