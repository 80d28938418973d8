package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/gitshadow"
	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// helperPatience is how long the helper of a killed lazaret may go on taking
// down its sandbox before Clean ends it.
const helperPatience = 20 * time.Second

// Cleaned says what Clean did about one run.
type Cleaned struct {
	ID     string
	Record Record // zero where it could not be read
	Undone []string
	Git    []GitHome // what it had committed
	Err    error
}

// Clean undoes what killed lazarets left behind, and returns one entry a run.
// Runs whose lazaret lives are not touched.
func Clean(ctx context.Context, e Env) ([]Cleaned, error) {
	dir, err := runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
	if err != nil {
		return nil, err
	}
	runs := filepath.Join(dir, "lazaret")
	ids, err := runIDs(runs)
	if err != nil {
		return nil, err
	}
	var out []Cleaned
	for _, id := range ids {
		c, err := claimDead(ctx, runs, id)
		switch {
		case errors.Is(err, errHeld), errors.Is(err, fs.ErrNotExist):
			continue // alive, or gone meanwhile
		case err != nil:
			out = append(out, Cleaned{ID: id, Err: refuse("look at what is in "+filepath.Join(runs, id)+" and remove it", "%v", err)})
			continue
		}
		done := Cleaned{ID: id, Record: c.Record}
		done.Err = cleanRun(ctx, c, e, &done)
		out = append(out, done)
	}
	return out, cleanUnborn(runs)
}

// holdPatience is how long the lock of a run whose lazaret is gone may be held:
// by that lazaret until the kernel has ended it, or by one that only looks.
const holdPatience = 2 * time.Second

// claimDead is openClaim, and waits for a lock that is about to be free.
func claimDead(ctx context.Context, runs, id string) (*claim, error) {
	dir := filepath.Join(runs, id)
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := openClaim(runs, id)
		switch {
		case !errors.Is(err, errHeld):
			return c, err
		case beingCleaned(dir):
			// Another lazaret takes it down at this moment. What it holds is free
			// only then.
			awaitCleaned(ctx, dir)
			return openClaim(runs, id)
		case !died(dir) || time.Since(start) > holdPatience || ctx.Err() != nil:
			return nil, err
		}
	}
}

// died tells whether the lazaret that wrote its name into a run's lock has ended
// or is ending.
func died(dir string) bool {
	b, err := readRegular(filepath.Join(dir, supervisorLock))
	return err == nil && len(b) > 0 && processEnded(string(b))
}

func cleanRun(ctx context.Context, c *claim, e Env, done *Cleaned) error {
	if err := awaitHelper(ctx, c.dir); err != nil {
		c.close()
		return err
	}
	home := e.Getenv("HOME")
	cache := xdgDir(e.Getenv("XDG_CACHE_HOME"), home, ".cache")
	u := undoer{record: c.Record, runs: filepath.Dir(c.dir), cache: cache, lazaret: e.Lazaret}
	u.brought = func(g GitHome) { done.Git = append(done.Git, g) }
	// Only what was committed needs git; without it, that stays where it is.
	u.git, _ = gitshadow.FindGit(e.Getenv("PATH"), c.Workspace, c.DataRoot)
	if len(c.journal.Pending()) > 0 {
		pod, runsc, err := findTools(cache, e.Getenv("PATH"), c.Workspace)
		if err != nil {
			c.close()
			return err
		}
		u.podman = podman.Engine{Podman: pod.Path, Runsc: runsc.Path, RuntimeFlags: []string{"ignore-cgroups"}}
		// Only a network needs the other runtime; without one, removing what
		// it made fails, and says so.
		runc, _ := routerRuntime(c.Workspace)
		u.router = podman.Engine{Podman: pod.Path, Runsc: runc.Path}
		u.env = hostEnviron(podmanEnviron(e.Getenv), c.dir)
		// The run may have been killed before it wrote its configuration.
		if err := writeConf(filepath.Join(c.dir, confFile)); err != nil {
			c.close()
			return err
		}
	}
	r := step.Runner{Run: c.ID, Journal: c.journal, Now: time.Now, Undo: u.undo, Observe: func(ev step.Event) error {
		if ev.Err == "" {
			done.Undone = append(done.Undone, ev.Attr["undo"])
		}
		return nil
	}}
	if err := r.Down(ctx); err != nil {
		c.close()
		return err
	}
	return c.remove()
}

func writeConf(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(podman.Conf)
	return errors.Join(err, f.Close())
}

// awaitHelper waits for the end of the run's helper, which takes its sandbox
// down by itself when lazaret dies, and ends it if it takes too long.
func awaitHelper(ctx context.Context, dir string) error {
	path := filepath.Join(dir, helperLock)
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		f, err := lockFile(path)
		if err == nil {
			return f.Close()
		}
		if !errors.Is(err, errHeld) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(start) > helperPatience {
			break
		}
	}
	name, err := readRegular(path)
	if err != nil {
		return err
	}
	return killProcess(strings.TrimSpace(string(name)))
}

// cleanUnborn removes what is left of runs that were killed while their record
// was made or removed. One minute is more than either takes; a record that was
// being removed still has its lock, mostly, which says so at once.
func cleanUnborn(runs string) error {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil // there are none
	}
	var errs []error
	for _, e := range entries {
		id := e.Name()[strings.LastIndexByte(e.Name(), '-')+1:]
		if !idPattern.MatchString(id) || e.Name() != newName(id) && e.Name() != goneName(id) {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			continue
		}
		held, unheld := lockOf(filepath.Join(runs, e.Name()))
		dead := e.Name() == goneName(id) && unheld
		// The clock may have been set, in either direction.
		if dead || !held && time.Since(fi.ModTime()).Abs() > time.Minute {
			if err := removeTree(runs, e.Name()); err != nil {
				errs = append(errs, fmt.Errorf("removing %s: %w", e.Name(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// lockOf tells of a record whether its lock is there, and held or not.
func lockOf(dir string) (held, unheld bool) {
	f, err := lockFile(filepath.Join(dir, supervisorLock))
	if err != nil {
		return errors.Is(err, errHeld), false
	}
	f.Close()
	return false, true
}

// cleaning is what a lazaret writes into the lock of a run that it takes down
// for a dead one: whoever finds it held can tell it from one that lives.
const cleaning = "cleaning"

func beingCleaned(dir string) bool {
	b, err := readRegular(filepath.Join(dir, supervisorLock))
	return err == nil && strings.HasPrefix(string(b), cleaning) // over a longer name
}

// awaitCleaned waits until another lazaret has taken a run down, or given up.
func awaitCleaned(ctx context.Context, dir string) {
	for start := time.Now(); time.Since(start) < helperPatience+teardownTime && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		f, err := lockFile(filepath.Join(dir, supervisorLock))
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, errHeld) {
			return
		}
	}
}
