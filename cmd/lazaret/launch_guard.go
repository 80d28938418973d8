package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"lazaret/gitshadow/guard"
	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock/config"
)

// sentry looks at what a sandbox can write to: before it begins, so that what
// is new can be told from what was there; while it runs, for what tools of the
// host act upon at once; and when it has ended.
type sentry struct {
	d      *deps
	talk   io.Writer
	notes  io.Writer // what need not be said
	tell   func(string)
	roots  []string
	reads  bool // the sandbox reads the repository's configuration
	store  guard.Store
	beside bool // another sandbox of the workspace runs

	watcher *guard.Watcher
	deaf    error // why there is none

	ready   chan struct{} // closed when the look before is done
	record  guard.Record
	earlier []guard.Finding // told at the end of an earlier session, and still there

	stop func() // ends the watch

	// Of the watch, and after its end.
	told     map[string]bool
	stripped int
}

// The end of a launch waits this long at most for each look.
var sentryLimits = guard.Limits{Time: 10 * time.Second, Entries: guard.DefaultLimits.Entries, Depth: guard.DefaultLimits.Depth,
	Findings: guard.DefaultLimits.Findings, Bytes: guard.DefaultLimits.Bytes}

// watchWorkspace begins to look at what is there before the sandbox.
func (d *deps) watchWorkspace(ctx context.Context, p *launch.Plan, reads bool, talk io.Writer, tell func(string)) (*sentry, error) {
	store, err := d.guardStore()
	if err != nil {
		return nil, err
	}
	s := &sentry{d: d, talk: talk, tell: tell, roots: p.Writable(), notes: talk, reads: reads, store: store,
		beside: d.live(ctx, d.cwd), ready: make(chan struct{}), told: map[string]bool{}}
	old, err := store.Get(d.cwd)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ready)
		s.before(ctx, old)
	}()
	return s, nil
}

func (s *sentry) before(ctx context.Context, old *guard.Record) {
	w, err := guard.NewWatcher(guard.Options{Roots: s.roots, Limits: sentryLimits})
	var now guard.Snapshot
	if err == nil {
		s.watcher, now = w, w.Look(ctx)
	} else { // the person's bound of watches
		s.deaf, now = err, guard.Scan(ctx, guard.Options{Roots: s.roots, Limits: sentryLimits, Now: time.Now()})
	}
	if old != nil && s.beside {
		s.record = old.Join(now)
	} else {
		s.record = guard.Begin(old, s.d.cwd, now)
	}
	s.earlier = s.record.Told
}

// event joins the look before the sandbox, and watches while it runs.
func (s *sentry) event(e step.Event) {
	switch {
	case e.Step != "sandbox":
	case e.Kind == step.Begin:
		<-s.ready
		s.begin()
	case (e.Kind == step.Done || e.Kind == step.Failed) && s.stop != nil:
		s.stop()
	}
}

func (s *sentry) begin() {
	// Not before: a launch that fails on its way has changed nothing.
	if err := s.store.Put(s.record); err != nil {
		s.tell(fmt.Sprintf("what the sandbox leaves will not be looked at: %s", onScreen(err.Error())))
		return
	}
	if n := worth(s.earlier); n > 0 {
		fmt.Fprintf(s.notes, "lazaret: note: %s of an earlier sandbox's leavings: lazaret guard\n", count(n, "finding"))
	}
	for _, f := range s.record.Base.Findings {
		if f.Kind == guard.Credentials && s.reads && f.Path == ".git/config" && string(f.Root) == s.d.cwd {
			fmt.Fprintf(s.notes, "lazaret: note: the sandbox reads .git/config, and %s there holds credentials\n", config.Show(string(f.What)))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.stop = sync.OnceFunc(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		if s.deaf == nil {
			s.watcher.Run(ctx, s.live)
			return
		}
		s.tell(fmt.Sprintf("what tools of this machine act upon is looked for at the end only: %v", s.deaf))
	}()
}

// liveMost is how many findings are told while the sandbox runs.
const liveMost = 10

// live tells of what acts at once, and ends what must not wait.
func (s *sentry) live(now guard.Snapshot) {
	found := guard.Compare(&s.record.Base, now)
	s.strip(found)
	l := look{ws: s.d.cwd}
	for _, f := range s.fresh(found) {
		if !f.Live || f.Severity < guard.Warning || f.Kind == guard.Setuid {
			continue
		}
		line := l.line(f)
		n, known := len(s.told), s.told[line]
		if !known && n <= liveMost {
			s.told[line] = true
		}
		switch {
		case known || n > liveMost:
		case n == liveMost:
			s.tell(`the sandbox writes more that tools of this machine act upon: "lazaret guard" shows it`)
		default:
			s.tell(line + ": " + config.Show(f.Why))
		}
	}
}

// fresh are the findings that no earlier sandbox left.
func (s *sentry) fresh(found []guard.Finding) []guard.Finding {
	type same struct {
		kind             guard.Kind
		root, path, what guard.Name
		digest           string
		files            int
	}
	of := func(f guard.Finding) same { return same{f.Kind, f.Root, f.Path, f.What, f.Digest, f.Files} }
	earlier := map[same]bool{}
	for _, f := range guard.Collapse(s.earlier) {
		earlier[of(f)] = true
	}
	return slices.DeleteFunc(guard.Collapse(found), func(f guard.Finding) bool { return earlier[of(f)] })
}

// strip takes the setuid bits off what a sandbox made a setuid file, and says
// which: until somebody does, every user of the machine may be able to run it as
// the person. Where not all was looked at before, the bits may be the person's.
func (s *sentry) strip(found []guard.Finding) (done []guard.Finding) {
	if len(s.record.Base.Gaps) > 0 {
		return nil
	}
	for _, f := range found {
		if f.Kind != guard.Setuid || f.Repair != guard.Strip {
			continue
		}
		if _, err := f.Do(); err != nil {
			continue // told at the end
		}
		done = append(done, f)
		switch s.stripped++; {
		case s.stripped < liveMost:
			s.tell(look{ws: s.d.cwd}.line(f) + ": the bits are taken off")
		case s.stripped == liveMost:
			s.tell("the sandbox makes more setuid files: the bits are taken off each")
		}
	}
	return done
}

// worth counts what is more than a note.
func worth(fs []guard.Finding) (n int) {
	for _, f := range guard.Collapse(fs) {
		if f.Severity > guard.Note {
			n++
		}
	}
	return n
}

// leftMost is how many findings are told at the end.
const leftMost = 5

// end looks at what the sandbox left, and tells the worst of it.
func (s *sentry) end(ctx context.Context, e *ending) {
	<-s.ready
	if s.watcher != nil {
		defer s.watcher.Close()
	}
	if s.stop == nil {
		return // no sandbox ran
	}
	s.stop()
	now := guard.Scan(ctx, guard.Options{Roots: s.roots, Limits: sentryLimits, Now: time.Now()})
	now = now.Without(s.strip(guard.Compare(&s.record.Base, now)))
	record, found := s.record.End(now)
	record.Open = s.beside || s.d.live(ctx, s.d.cwd)
	s.put(record)
	s.summary(e, found, now.Gaps)
}

func (s *sentry) put(r guard.Record) {
	if err := s.store.Put(r); err != nil {
		fmt.Fprintf(s.talk, "lazaret: warning: %s\n", onScreen(err.Error()))
	}
}

func (s *sentry) summary(e *ending, found []guard.Finding, gaps []guard.Gap) {
	all := worth(found)
	found = slices.DeleteFunc(s.fresh(found), func(f guard.Finding) bool { return f.Severity == guard.Note })
	old := all - len(found)
	l := look{ws: s.d.cwd}
	if len(gaps) > 0 {
		fmt.Fprintf(s.talk, "lazaret: warning: what the sandbox left could not all be looked at: %s: %s\n", config.Show(l.path(gaps[0].Root, gaps[0].Path)), config.Show(gaps[0].Why))
	}
	if s.stripped > 0 {
		// Said before, where a screen of the sandbox may have covered it.
		fmt.Fprintf(s.talk, "lazaret: note: setuid bits were taken off %s that the sandbox had set them on\n", count(s.stripped, "file"))
	}
	if len(found) == 0 {
		return
	}
	var items []item
	for i, f := range found {
		if i == leftMost {
			items = append(items, item{text: fmt.Sprintf("and %d more", len(found)-i)})
			break
		}
		items = append(items, item{text: fmt.Sprintf("%s: %s: %s", f.Severity, l.line(f), config.Show(f.Why))})
	}
	if old > 0 {
		items = append(items, item{text: fmt.Sprintf("and %s of earlier sandboxes", count(old, "finding"))})
	}
	const hint = `"lazaret guard" shows all of it, --fix puts it out of the way, --accept says that it is yours`
	if e.look != nil {
		e.list(markAlarm, "guard", "", items)
		for _, next := range []string{"lazaret guard", "lazaret guard --fix, or --accept what is yours"} {
			e.row(line{name: "guard", next: next})
		}
		return
	}
	e.list(markAlarm, "guard", "warning: the sandbox left what tools of this machine would run or obey:", items)
	fmt.Fprintln(e.w, "lazaret: hint: "+hint)
}
