package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/gitshadow"
	"lazaret/internal/step"
)

// GitHome is what came home of one repository, and what did not.
type GitHome struct {
	Path  string // of a nested repository: where in the workspace it is; else ""
	Notes []gitshadow.Note
	Kept  string // the store, where something in it could not be brought home
	// Changed are the refs that are not what they were, where the sandbox wrote
	// to the host's own.
	Changed []gitshadow.RefChange
	OwnTree bool // the sandbox worked in files of its own, not in the workspace's
}

// gitBrokers bring home what a sandbox commits while it runs.
type gitBrokers struct {
	program string
	shadow  gitshadow.Shadow
	live    live

	mu      sync.Mutex
	brokers []*gitshadow.Broker
	checked []GitHome // by the undo: of refs that the sandbox wrote to itself
	watch   context.CancelFunc
	ended   sync.WaitGroup
}

// brokers adds what brings home what is written to the store.
func (r *resolver) brokers(s gitshadow.Shadow) {
	r.gits = &gitBrokers{program: r.Host.Git.Program, shadow: s}
	r.services = append(r.services, r.gits)
	r.step(step.Step{Name: "git.broker", Needs: []string{"git.shadow"}, Op: GitBroker{Run: r.Record.ID, Shadow: s, brokers: r.gits}})
}

func (g *gitBrokers) begin(l live) { g.live = l }

// homeTime bounds what is brought home after the sandbox has ended, before its
// teardown. What takes longer is tried again by the undo of the store.
const homeTime = 5 * time.Minute

// finish brings home what is new at the end, while the sandbox's memory is
// still there to be read.
func (g *gitBrokers) finish(ctx context.Context) {
	g.mu.Lock()
	watch, brokers := g.watch, g.brokers
	g.mu.Unlock()
	if watch == nil {
		return
	}
	watch()
	g.ended.Wait()
	if len(brokers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, homeTime)
	defer cancel()
	if g.live.session == nil {
		// A person who waits is told what for.
		g.live.emit(step.Event{Step: "git.home", Kind: step.Begin})
		defer g.live.emit(step.Event{Step: "git.home", Kind: step.Done})
	}
	for _, b := range brokers {
		b.Last(ctx) // what fails is in its notes, and tried again by the undo
	}
}

// open opens what the helper has at a path of its mount namespace.
func (g *gitBrokers) open(path string) (*os.File, error) {
	h := g.live.helper()
	if h == nil {
		return nil, errHelperGone
	}
	path = filepath.Join("/proc", strconv.Itoa(h.pid), "root", path)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// GitBroker begins to bring home what the sandbox will write.
type GitBroker struct {
	Run    string
	Shadow gitshadow.Shadow

	brokers *gitBrokers
}

// Do writes down whose the stores are and watches them until the run ends.
func (o GitBroker) Do(context.Context, step.Values) (step.Values, error) {
	g := o.brokers
	ctx, cancel := context.WithCancel(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = cancel
	for _, p := range o.Shadow.Places {
		store := gitshadow.Store{Dir: o.Shadow.Store(p)}
		if err := store.Begin(gitshadow.Origin{Run: o.Run, Profile: o.Shadow.Profile, Mode: o.Shadow.Mode, Branch: p.Branch, Repo: p.Repo}); err != nil {
			return nil, err
		}
		if o.Shadow.Mode == gitshadow.Writeback {
			continue // it writes to the host's own: what became of that is looked at in the end
		}
		b := &gitshadow.Broker{
			Store: store, Program: g.program,
			Live: func() (*os.File, error) { return g.open(o.Shadow.Live(p)) },
		}
		if p.Linked() {
			b.Head = "worktrees/this/HEAD"
		}
		g.brokers = append(g.brokers, b)
		g.ended.Go(func() { b.Watch(ctx) })
	}
	return nil, nil
}

// Show tells what is watched.
func (o GitBroker) Show() (lines []string) {
	for _, p := range o.Shadow.Places {
		if o.Shadow.Mode == gitshadow.Writeback {
			lines = append(lines, "look at the refs of "+shown(p.Repo.CommonDir)+" in the end")
			continue
		}
		lines = append(lines, "bring home commits from "+shown(o.Shadow.Store(p))+" to "+shown(p.Repo.CommonDir))
	}
	return lines
}

// GitHome tells, after Run, what came home of the sandbox's commits.
func (p *Plan) GitHome() (out []GitHome) {
	if p.gits == nil {
		return nil
	}
	for i, b := range p.gits.brokers {
		out = append(out, GitHome{Path: p.gits.shadow.Places[i].Repo.Path, Notes: b.Notes(), Kept: p.gits.kept(), OwnTree: p.gits.shadow.Tree != ""})
	}
	return append(out, p.gits.checked...)
}

// take keeps what an undo found in refs that the sandbox wrote to itself; what
// came home of a store was told by its broker.
func (g *gitBrokers) take(home GitHome) {
	if g == nil {
		return
	}
	// What came home by another try only is told, too.
	home.Notes = slices.DeleteFunc(home.Notes, func(n gitshadow.Note) bool { return n.Err != "" || n.Verdict != gitshadow.Arrive })
	if home.Changed != nil || len(home.Notes) > 0 {
		home.OwnTree = g.shadow.Tree != ""
		g.checked = append(g.checked, home)
	}
}

// kept is where the run's store is after its undo, if it still is.
func (g *gitBrokers) kept() string {
	if path := keptStore(g.shadow.Dir); exists(path) {
		return path
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// keptStore is where a store is put aside that holds something unfit to be
// brought home.
func keptStore(dir string) string { return dir + ".kept" }

// bringHome is the undo of a store: what is new in it comes home, and then it
// is removed. What cannot come now keeps the store, so that it is tried again;
// what never can is put aside with it.
func (u *undoer) bringHome(ctx context.Context, name string) error {
	brought := u.brought
	var homes []GitHome
	if brought != nil {
		u.brought = func(h GitHome) { homes = append(homes, h) }
		defer func() {
			u.brought = brought
			for _, h := range homes {
				brought(h)
			}
		}()
	}
	err := u.bringStores(ctx, name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Another user of the sandbox wrote there: on the host its files are of a
	// subordinate id.
	if terr := u.takeOver(ctx, name); terr != nil {
		return errors.Join(err, terr)
	}
	homes = nil
	return u.bringStores(ctx, name)
}

func (u *undoer) bringStores(ctx context.Context, name string) error {
	stores, err := gitshadow.Stores(u.record.DataRoot, u.record.ID)
	if err != nil {
		return err
	}
	var unfit, later []error
	for _, s := range stores {
		o, err := s.Origin()
		if err == nil && (o.Run != u.record.ID || o.Profile != u.record.Profile) {
			err = fmt.Errorf("the store %s is of another run", s.Dir)
		}
		if err != nil {
			return err
		}
		if o.Mode == gitshadow.Writeback {
			if err := u.checkRefs(ctx, s, o); err != nil && exists(o.Repo.CommonDir) {
				later = append(later, err)
			}
			continue
		}
		b := &gitshadow.Broker{Store: s, Program: u.git}
		err = b.Last(ctx)
		if u.brought != nil {
			u.brought(GitHome{Path: o.Repo.Path, Notes: b.Notes()})
		}
		switch {
		case err == nil:
		case onlyUnfit(err), !exists(o.Repo.CommonDir):
			unfit = append(unfit, err)
		default:
			later = append(later, err)
		}
	}
	dir := filepath.Join(u.record.DataRoot, name)
	if err := errors.Join(later...); err != nil {
		return fmt.Errorf("bringing home what was committed, which is in %s: %w", dir, err)
	}
	if len(unfit) > 0 && exists(dir) {
		return os.Rename(dir, keptStore(dir))
	}
	return removeStore(u.record.DataRoot, name)
}

// checkRefs looks at what became of refs that a sandbox wrote to itself.
func (u *undoer) checkRefs(ctx context.Context, s gitshadow.Store, o gitshadow.Origin) error {
	changed, err := gitshadow.CheckRefs(ctx, u.git, s)
	if u.brought != nil && (len(changed) > 0 || err != nil) {
		u.brought(GitHome{Path: o.Repo.Path, Changed: changed})
	}
	return err
}

// onlyUnfit tells whether each of some joined errors is of what is unfit.
func onlyUnfit(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if !onlyUnfit(e) {
				return false
			}
		}
		return true
	}
	var unfit *gitshadow.UnfitError
	return errors.As(err, &unfit)
}
