package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lazaret/internal/proc"
	"lazaret/testdata/attacks"
)

// attackChecks are the attacks of those who share this machine, or read what
// lazaret writes: made while a sandbox runs. They print as scripts do.
var attackChecks = map[string]func(*fight, context.Context) string{
	"argv":    (*fight).readArguments,
	"dry-run": (*fight).readPlan,
	"records": (*fight).readRecords,
	"modes":   (*fight).enterDirectories,
}

// check makes the checks while s runs, and starts a sandbox where none does.
func (f *fight) check(ctx context.Context, s *session, profile string, checks []attacks.Attack) (err error) {
	if len(checks) == 0 {
		return nil
	}
	if s == nil {
		if s, err = openSession(ctx, f.engine, f.arena, profile, false); err != nil {
			return err
		}
		defer s.close(ctx)
	}
	for _, a := range checks {
		f.bar.show("attacking: " + a.ID)
		t := f.trials[a.ID]
		t.output = attackChecks[a.Host](f, ctx)
		f.trials[a.ID] = t
	}
	return nil
}

// readArguments looks for secrets where every user of the machine can: in the
// arguments of programs.
func (f *fight) readArguments(context.Context) string {
	if f.arena.getenv == nil || !strings.Contains(strings.Join(f.arena.env, "\n"), f.arena.secret) {
		return "cannot: the profile takes nothing from the environment"
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		return "cannot: there is no /proc"
	}
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil {
			n++
		}
		if bytes.Contains(b, []byte(f.arena.secret)) {
			return "won: " + strings.SplitN(string(b), "\x00", 2)[0] + " has a secret among its arguments"
		}
	}
	return fmt.Sprintf("held: %d programs, no secret among their arguments", n)
}

// readPlan looks for secrets in what people paste into issues.
func (f *fight) readPlan(ctx context.Context) string {
	var all []byte
	for _, args := range [][]string{{"launch", "--dry-run", f.arena.profile}, {"explain"}, {"config", "show"}, {"log"}, {"ps"}} {
		out, err := proc.Output(ctx, f.arena.lazaret(f.arena.ws, args...))
		if err != nil && args[0] == "launch" {
			return "cannot: " + err.Error()
		}
		all = append(all, out...)
	}
	if bytes.Contains(all, []byte(f.arena.secret)) || bytes.Contains(all, []byte(f.arena.leak)) {
		return "won: a secret is printed"
	}
	return fmt.Sprintf("held: no secret in %d bytes", len(all))
}

// readRecords looks for secrets in what lazaret writes down.
func (f *fight) readRecords(context.Context) string {
	n := 0
	for _, dir := range []string{filepath.Join(f.arena.getenv("XDG_RUNTIME_DIR"), "lazaret"), filepath.Join(f.arena.dir, "state"), filepath.Join(f.arena.dir, "data")} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue
		}
		found := ""
		fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if b, err := readRegular(root, path); err == nil {
				n++
				if bytes.Contains(b, []byte(f.arena.secret)) || bytes.Contains(b, []byte(f.arena.leak)) {
					found = filepath.Join(dir, path)
				}
			}
			return nil
		})
		root.Close()
		if found != "" {
			return "won: a secret is in " + found
		}
	}
	if n == 0 {
		return "cannot: nothing is written down"
	}
	return fmt.Sprintf("held: no secret in %d files", n)
}

// enterDirectories looks whether another user of the machine could enter what
// the sandbox keeps, or what asks for it: setuid files lie there, and sockets.
func (f *fight) enterDirectories(context.Context) string {
	var seen int
	for _, dir := range []string{filepath.Join(f.arena.dir, "data"), filepath.Join(f.arena.dir, "state/lazaret"), filepath.Join(f.arena.getenv("XDG_RUNTIME_DIR"), "lazaret")} {
		fi, err := os.Stat(dir)
		if err != nil {
			continue
		}
		seen++
		if fi.Mode().Perm()&0o077 != 0 {
			return fmt.Sprintf("won: %s has mode %o", dir, fi.Mode().Perm())
		}
	}
	if seen == 0 {
		return "cannot: there is no such directory"
	}
	return fmt.Sprintf("held: %d directories, closed to others", seen)
}
