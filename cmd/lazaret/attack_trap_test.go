package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lazaret/internal/proc"
	"lazaret/lock"
	"lazaret/testdata/attacks"
)

// onlooker is an engine that notes what would be launched, and where.
type onlooker struct {
	dirs, locks []string
}

func (o *onlooker) command(_, ws string, _ bool, _ ...string) proc.Cmd {
	o.dirs = append(o.dirs, ws)
	text := ""
	if fi, err := os.Lstat(filepath.Join(ws, "lazaret.lock")); err == nil && fi.Mode().IsRegular() {
		b, _ := os.ReadFile(filepath.Join(ws, "lazaret.lock"))
		text = string(b)
	}
	o.locks = append(o.locks, text)
	return proc.Cmd{Argv: []string{"echo", "held: so"}, Dir: ws}
}

func (o *onlooker) end(context.Context) {}

const trapLock = "runtime = [\"runsc\"]\n\"/workspace/.vscode\" = { kind = \"tmpfs\" }\n"

// hostileArena is an arena in whose workspace an agent did its worst, and a
// directory of the person's.
func hostileArena(t *testing.T) (a *arena, person string) {
	t.Helper()
	person = t.TempDir()
	a = &arena{dir: t.TempDir(), lock: trapLock, inside: []string{"src/deep"}, ears: &ears{}, getenv: os.Getenv,
		mounts: map[string]lock.Mount{"/src": {Kind: lock.KindBind, From: "{workspace_dir}/src/deep"}}}
	a.ws = filepath.Join(a.dir, "workspace")
	a.keep = keep{root: a.dir}
	for dir, files := range map[string]map[string]string{
		person: {"bashrc": "mine\n"},
		a.dir:  {"workspace/lazaret.lock": "evil\n", "outside/secret": "lazaret-canary-outside\n"},
	} {
		for name, text := range files {
			if err := writeBelow(dir, name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.keep.begin(); err != nil {
		t.Fatal(err)
	}
	return a, person
}

func unharmed(t *testing.T, person string) {
	t.Helper()
	entries, err := os.ReadDir(person)
	if b, _ := os.ReadFile(filepath.Join(person, "bashrc")); err != nil || len(entries) != 1 || string(b) != "mine\n" {
		t.Errorf("the person's directory has %v, and bashrc is %q", entries, b)
	}
}

// TestAttackTraps: what is agreed to and launched on this machine is of the
// harness's making, whatever a sandbox has put in the workspace.
func TestAttackTraps(t *testing.T) {
	a, person := hostileArena(t)
	o := &onlooker{}
	f := &fight{arena: a, engine: o, trials: map[string]trial{}}
	var traps []attacks.Attack
	for _, k := range loadAttacks(t) {
		if k.Trap != nil {
			traps = append(traps, k)
			for _, name := range []string{k.ID, "traps", "trap-" + strings.TrimPrefix(k.ID, "repository-")} {
				os.Symlink(person, filepath.Join(a.ws, name))
			}
		}
	}
	for _, k := range traps {
		n := len(o.dirs)
		if err := f.spring(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if v, why := f.trials[k.ID].judge(k); v != verdictHeld || len(o.dirs) != n+1 {
			t.Fatalf("%s: %s: %s", k.ID, v, why)
		}
		want := trapLock + strings.Repeat("#", k.Trap.Pad)
		if len(k.Trap.Edit) > 0 {
			want = regexp.MustCompile(k.Trap.Edit[0]).ReplaceAllString(trapLock, k.Trap.Edit[1])
		}
		if k.Trap.Links["lazaret.lock"] != "" {
			want = ""
		}
		if o.locks[n] != want {
			t.Errorf("%s: the lock is %.200q", k.ID, o.locks[n])
		}
		if rel, err := filepath.Rel(a.ws, o.dirs[n]); err != nil || filepath.IsLocal(rel) {
			t.Errorf("%s: launched in %s", k.ID, o.dirs[n])
		}
		if exists(o.dirs[n]) {
			t.Errorf("%s is left", o.dirs[n])
		}
	}
	if len(traps) < 10 {
		t.Errorf("only %d traps", len(traps))
	}
	unharmed(t, person)
}

// TestAttackTrapTaken: a trap is made in a new directory, and its files are new.
func TestAttackTrapTaken(t *testing.T) {
	a, person := hostileArena(t)
	at := func(name string) string { return filepath.Join(a.dir, name) }
	for link, to := range map[string]string{
		"traps/taken": person, "one/.git/objects/info/alternates": person + "/bashrc", "two/.git": person,
	} {
		os.MkdirAll(filepath.Dir(at(link)), 0o755)
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.setTrap(at("traps/taken"), attacks.Trap{}); err == nil {
		t.Error("a link is taken for a trap")
	}
	for _, dir := range []string{"one", "two"} {
		if err := a.fill(at(dir), map[string]string{".git/objects/info/alternates": "evil\n"}); err == nil {
			t.Errorf("%s: a link is written through", dir)
		}
	}
	unharmed(t, person)
}

// TestAttackMend: an agent's link in the place of a volume is not there for the
// next sandbox.
func TestAttackMend(t *testing.T) {
	for _, link := range []string{"src", "src/deep"} {
		a, person := hostileArena(t)
		at := filepath.Join(a.ws, link)
		os.MkdirAll(filepath.Dir(at), 0o755)
		if err := os.Symlink(person, at); err != nil {
			t.Fatal(err)
		}
		if err := a.mend(); err != nil {
			t.Fatal(err)
		}
		if got, err := filepath.EvalSymlinks(filepath.Join(a.ws, "src/deep")); err != nil || !strings.HasPrefix(got, a.ws) {
			t.Errorf("it leads to %s: %v", got, err)
		}
		unharmed(t, person)
	}
}

// TestAttackSweep: what a killed doctor left is removed, and nothing else.
func TestAttackSweep(t *testing.T) {
	tmp, old := t.TempDir(), time.Now().Add(-time.Hour)
	at := func(name string) string { return filepath.Join(tmp, name) }
	for _, name := range []string{"lazaret-attack-left/closed", "lazaret-attack-held", "lazaret-attack-young", "theirs"} {
		os.MkdirAll(at(name), 0o755)
	}
	os.Symlink(at("theirs"), at("lazaret-attack-link"))
	os.Symlink(at("theirs"), at("lazaret-attack-left/link"))
	os.Chmod(at("lazaret-attack-left/closed"), 0)
	os.WriteFile(at("theirs/file"), nil, 0o644)
	for _, name := range []string{"lazaret-attack-left", "lazaret-attack-held"} {
		os.Chtimes(at(name), old, old)
	}
	held, err := holdDir(at("lazaret-attack-held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	sweepArenas(t.Context(), tmp, "", os.Getenv)
	if exists(at("lazaret-attack-left")) {
		t.Error("it is still there")
	}
	for _, name := range []string{"lazaret-attack-held", "lazaret-attack-young", "lazaret-attack-link", "theirs/file"} {
		if !exists(at(name)) {
			t.Errorf("%s is gone", name)
		}
	}
}
