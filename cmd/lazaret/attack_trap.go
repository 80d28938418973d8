package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"lazaret/internal/proc"
	"lazaret/testdata/attacks"
)

// spring launches in a trap, after the person agreed to.
func (f *fight) spring(ctx context.Context, a attacks.Attack) error {
	began := time.Now()
	t := f.trials[a.ID]
	dir := filepath.Join(f.arena.traps(), a.ID)
	switch cannot, err := f.arena.setTrap(dir, *a.Trap); {
	case err != nil:
		return fmt.Errorf("making %s: %w", a.ID, err)
	case cannot != "":
		t.later = "cannot: " + cannot
	default:
		f.launchIn(ctx, dir, a, &t)
		t.found = append(t.found, f.seen()...)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// What is left of it goes with the arena.
	if err := f.arena.clear(dir); err != nil && t.lost == "" {
		t.lost = err.Error()
	}
	t.took += time.Since(began)
	f.trials[a.ID] = t
	return nil
}

func (f *fight) launchIn(ctx context.Context, dir string, a attacks.Attack, t *trial) {
	refused := func(err error) bool {
		var pe *proc.Error
		if !errors.As(err, &pe) {
			return false
		}
		if strings.Contains(pe.Stderr, "lazaret-canary-") {
			t.found = append(t.found, "an error quotes what it read")
		}
		for line := range strings.Lines(pe.Stderr) {
			text, ok := strings.CutPrefix(line, "lazaret: error: ")
			switch {
			case !ok:
			case regexp.MustCompile(a.Trap.Refused).MatchString(text):
				t.later = "held: refused: " + text
				return true
			default:
				t.lost = "could not be tried: refused for something else: " + text
			}
		}
		return t.lost != ""
	}
	if _, ok := f.engine.(lazaretEngine); ok && !a.Trap.Unagreed {
		if _, err := proc.Output(ctx, f.arena.lazaret(dir, "trust", "--yes")); err != nil && !refused(err) {
			t.lost = "could not be tried: " + err.Error()
		}
	}
	if t.later != "" || t.lost != "" {
		return
	}
	if err := f.arena.fill(dir, a.Trap.Swapped); err != nil {
		t.lost = "could not be tried: " + err.Error()
		return
	}
	out, err := proc.Output(ctx, f.engine.command(f.arena.profile, dir, false, harnessShell, harnessAt+"/"+a.ID+".later"))
	t.later = string(out)
	if err != nil && t.later == "" && !refused(err) {
		t.lost = "could not be tried: " + err.Error()
	}
}

// traps is where they are made: no sandbox has it, so that nothing a sandbox
// wrote is agreed to, followed or written through.
func (a *arena) traps() string { return filepath.Join(a.dir, "traps") }

// setTrap makes one. Its lock is the arena's own, changed as the catalogue says.
func (a *arena) setTrap(dir string, t attacks.Trap) (cannot string, err error) {
	text := a.lock
	if len(t.Edit) > 0 {
		if text = regexp.MustCompile(t.Edit[0]).ReplaceAllString(text, t.Edit[1]); text == a.lock {
			return "the lock has no such line", nil
		}
	}
	if _, ok := t.Links["{VOLUME}"]; ok && len(a.inside) == 0 {
		return "the profile mounts nothing of the workspace", nil
	}
	if err := os.MkdirAll(a.traps(), 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	files := map[string]string{"lazaret.toml": ownConfig, "lazaret.lock": text + strings.Repeat("#", t.Pad)}
	maps.Copy(files, t.Files)
	for name := range t.Links {
		delete(files, name)
	}
	if err := a.fill(dir, files); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for name, to := range t.Links {
		name, to = a.spell(name), a.spell(to)
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), root.Symlink(to, name)); err != nil {
			return "", err
		}
	}
	return "", volumes(root, a.inside)
}

// spell puts in what the catalogue cannot know.
func (a *arena) spell(s string) string {
	volume, target := "", ""
	if len(a.inside) > 0 {
		volume = a.inside[0]
	}
	for at, m := range a.mounts {
		if m.From == "{workspace_dir}/"+volume {
			target = at
		}
	}
	return strings.NewReplacer("{ARENA}", a.dir, "{VOLUME}", volume, "{TARGET}", target).Replace(s)
}

// fill makes new files below a directory, and directories where a name ends in a
// slash. It writes to nothing that is there already, and follows no link out.
func (a *arena) fill(dir string, files map[string]string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "/") {
			if err := root.MkdirAll(strings.TrimSuffix(name, "/"), 0o700); err != nil {
				return err
			}
			continue
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return err
		}
		_, err = out.WriteString(a.spell(files[name]))
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// volumes makes the directories of a workspace that the profile mounts, where
// nobody has made something there.
func volumes(root *os.Root, inside []string) error {
	for _, rest := range inside {
		if _, err := root.Lstat(rest); err == nil {
			continue
		}
		if err := root.MkdirAll(rest, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// mend has the workspace's own volumes be there as real directories again before
// a sandbox starts: an agent may have made links of them, which plain podman
// would follow to whatever they lead to on this machine.
func (a *arena) mend() error {
	root, err := os.OpenRoot(a.ws)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, rest := range a.inside {
		for at := ""; ; {
			next, _, _ := strings.Cut(strings.TrimPrefix(rest[len(at):], "/"), "/")
			if next == "" {
				break
			}
			at = filepath.Join(at, next)
			if fi, err := root.Lstat(at); err == nil && !fi.IsDir() && !fi.Mode().IsRegular() {
				if err := root.Remove(at); err != nil {
					return err
				}
			}
		}
	}
	return volumes(root, a.inside)
}
