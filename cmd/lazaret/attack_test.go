package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/testdata/attacks"
)

// attackAreas are what the catalogue has to be about.
var attackAreas = []string{"environment", "escalation", "files", "git", "image", "network", "next", "proc", "repository", "resources", "sidecar", "terminal", "trust"}

func loadAttacks(t *testing.T) []attacks.Attack {
	t.Helper()
	all, err := attacks.Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAttackCatalogue: what an entry names is there, and nothing that was found
// when lazaret was designed is left out.
func TestAttackCatalogue(t *testing.T) {
	all := loadAttacks(t)
	runnable, areas, cases := 0, map[string]int{}, map[string]bool{}
	tests := testNames(t)
	for _, a := range all {
		areas[a.Area]++
		for _, c := range a.Cases {
			cases[c] = true
		}
		if a.Runnable() {
			runnable++
		}
		if a.Host != "" && attackChecks[a.Host] == nil {
			t.Errorf("%s: the harness has no check %q", a.ID, a.Host)
		}
		for _, name := range []string{a.Test, a.Control} {
			if _, loose := a.Loose(); name == "" || name == a.Control && loose {
				continue
			}
			if !tests[name] {
				t.Errorf("%s: there is no test %s", a.ID, name)
			}
		}
		for _, w := range a.Where {
			file, fun, ok := strings.Cut(w, ":")
			b, err := os.ReadFile(filepath.Join("../..", file))
			if !ok || err != nil {
				t.Errorf("%s: %s: %v", a.ID, w, err)
				continue
			}
			if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?)?` + fun + `\(`).Match(b) {
				t.Errorf("%s: %s has no function %s", a.ID, file, fun)
			}
		}
	}
	if len(all) < 100 || runnable < 80 {
		t.Errorf("%d attacks, %d of them for everybody to try: some are gone", len(all), runnable)
	}
	for _, area := range attackAreas {
		if areas[area] < 4 {
			t.Errorf("area %s has %d attacks", area, areas[area])
		}
	}
	if len(areas) != len(attackAreas) {
		t.Errorf("areas %v", areas)
	}
	for i := 1; i <= 24; i++ {
		if id := fmt.Sprintf("H%d", i); !cases[id] {
			t.Errorf("no attack stems from %s", id)
		}
	}
}

// testNames are the tests of the module, and the scripts as TEST/script.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob("../../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("../../*/*/*_test.go")
	for _, name := range append(files, more...) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(b, -1) {
			out[string(m[1])] = true
		}
	}
	scripts, _ := filepath.Glob("../../testdata/script/*.txtar")
	for _, s := range scripts {
		name := strings.TrimSuffix(filepath.Base(s), ".txtar")
		if strings.HasPrefix(name, "e2e_") {
			out["TestEndToEnd/"+name] = true
		} else {
			out["TestScript/"+name] = true
		}
	}
	return out
}

// TestAttackJudge: only what was tried is held.
func TestAttackJudge(t *testing.T) {
	plain, later, known := attacks.Attack{}, attacks.Attack{Later: "x"}, attacks.Attack{Known: "so it is"}
	for _, tt := range []struct {
		attack attacks.Attack
		trial  trial
		want   string
	}{
		{plain, trial{output: "noise\nheld: no\n"}, verdictHeld},
		{plain, trial{output: "held: no\r\n"}, verdictHeld},
		{plain, trial{output: "held: no\nwon: after all\n"}, verdictLost},
		{plain, trial{output: "won: yes\nheld: no\n"}, verdictLost},
		{plain, trial{output: "held: no\n", found: []string{"it arrived"}}, verdictLost},
		{plain, trial{output: "won: yes\n", lost: "the sandbox ended"}, verdictLost},
		{plain, trial{found: []string{"it arrived"}, lost: "the sandbox ended"}, verdictLost},
		{known, trial{output: "won: yes\n"}, verdictKnown},
		{known, trial{output: "held: no\n"}, verdictHeld},
		{plain, trial{output: "held: no\n", lost: "the sandbox ended"}, verdictNone},
		{plain, trial{output: "cannot: no tool\n"}, verdictNone},
		{plain, trial{output: "sh: syntax error\n"}, verdictNone},
		{plain, trial{}, verdictNone},
		{plain, trial{output: "it is held: no\n"}, verdictNone},
		{later, trial{output: "held: planted\n"}, verdictNone},
		{later, trial{output: "held: planted\n", later: "held: gone\n"}, verdictHeld},
		{later, trial{output: "held: planted\n", later: "won: there\n"}, verdictLost},
		{later, trial{output: "cannot: plant\n", later: "held: gone\n"}, verdictNone},
	} {
		if got, why := tt.trial.judge(tt.attack); got != tt.want {
			t.Errorf("%+v: %s (%s), want %s", tt.trial, got, why, tt.want)
		}
	}
}

// TestAttackReport: an attack that succeeded is said and ends with an error; one
// that was not tried is neither.
func TestAttackReport(t *testing.T) {
	list := []attacks.Attack{{ID: "a-one", Goal: "x"}, {ID: "a-two", Goal: "y"}, {ID: "a-three", Goal: "z", Test: "TestX"}}
	for _, tt := range []struct {
		one, two trial
		want     string // of the table
		err      string
	}{
		{trial{output: "held: no\n"}, trial{output: "held: no\n"}, "2 withstood, 0 succeeded, 0 known to succeed, 1 not tried", ""},
		{trial{output: "held: no\n"}, trial{output: "won: \x1b[2J\n"}, `a-two    y     FAIL     \x1b[2J`, "1 attack succeeded against this sandbox"},
		{trial{output: "held: no\n"}, trial{output: "cannot: no tool\n"}, "a-two    y     skipped  no tool", ""},
		{trial{}, trial{}, "0 withstood, 0 succeeded, 0 known to succeed, 3 not tried", "no attack could be tried in this sandbox"},
	} {
		var out strings.Builder
		r := attackReport{attacks: list, lazaret: map[string]trial{"a-one": tt.one, "a-two": tt.two}}
		err := r.tell(&out, false)
		if !strings.Contains(out.String(), tt.want) || strings.Contains(out.String(), "\x1b") {
			t.Errorf("no %q in\n%s", tt.want, out.String())
		}
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("it ends with %v, want %q", err, tt.err)
		}
	}
}

// TestAttackKeep: what an attack changes is found, and put back.
func TestAttackKeep(t *testing.T) {
	a := &arena{dir: t.TempDir(), self: os.Args[0]}
	a.ws = filepath.Join(a.dir, "workspace")
	for name, text := range map[string]string{
		"outside/secret": "s", "workspace/lazaret.lock": "l", "workspace/.vscode/settings.json": "{}", "workspace/src/main.c": "m", "data/x": "",
	} {
		if err := writeBelow(a.dir, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeRepository(filepath.Join(a.ws, ".git"), map[string]string{"README": "r\n"}); err != nil {
		t.Fatal(err)
	}
	k := keep{root: a.dir}
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(a.dir, name) }
	put := func(name string) func() {
		return func() { writeBelow(a.dir, name, []byte("evil"), 0o644) }
	}
	for _, tt := range []struct {
		do   func()
		want string // "" for nothing
	}{
		{put("workspace/src/main.c"), ""},
		{put("workspace/new"), ""},
		{put("data/y"), ""},
		{put("workspace/.git/objects/aa/bb"), ""},
		{put("workspace/.git/refs/heads/lazaret/agent-x"), ""},
		{func() { os.RemoveAll(at("workspace/.git/objects")) }, "workspace/.git/objects/info/packs is gone"},
		{func() { os.MkdirAll(at("workspace/.idea"), 0o755) }, ""},
		{func() { put("workspace/su")(); os.Chmod(at("workspace/su"), fs.ModeSetuid|0o755) }, "workspace/su is new"},
		{put("outside/secret"), "outside/secret is changed"},
		{put("outside/pwned"), "outside/pwned is new"},
		{put("beside"), "beside is new"},
		{put("workspace/lazaret.lock"), "workspace/lazaret.lock is changed"},
		{func() { os.Chmod(at("workspace/lazaret.lock"), 0o666) }, "workspace/lazaret.lock is changed"},
		{func() {
			os.Remove(at("workspace/lazaret.lock"))
			os.Symlink("/etc/passwd", at("workspace/lazaret.lock"))
		}, "workspace/lazaret.lock is changed"},
		{put("workspace/.idea/x.xml"), "workspace/.idea/x.xml is new"},
		{put("workspace/.git/hooks/pre-commit"), "workspace/.git/hooks/pre-commit is changed"},
		{put("workspace/.git/objects/info/alternates"), "workspace/.git/objects/info/alternates is new"},
		{put("workspace/.git/refs/heads/origin/main"), "workspace/.git/refs/heads/origin/main is new"},
		{func() { os.RemoveAll(at("workspace/.vscode")); os.Symlink("../outside", at("workspace/.vscode")) }, "workspace/.vscode/settings.json is gone"},
		{func() { os.Remove(at("workspace/.git/HEAD")) }, "workspace/.git/HEAD is gone"},
		{func() { os.RemoveAll(at("workspace/.git")) }, "workspace/.git/HEAD is gone"},
	} {
		tt.do()
		got := k.changed()
		if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
			t.Errorf("found %q, want %q", got, tt.want)
		}
		if again := k.changed(); len(again) > 0 {
			t.Fatalf("after %q, this was not put back: %q", tt.want, again)
		}
	}
	if b, _ := os.ReadFile(at("outside/secret")); string(b) != "s" {
		t.Errorf("outside/secret holds %q", b)
	}
}

// TestAttackKeepPipes: what takes a file's place while it is looked at, and would
// have whoever opens it wait, keeps nobody.
func TestAttackKeepPipes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("outside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(at("outside/f"), []byte("x"), 0o644), syscall.Mkfifo(at("pipe"), 0o644)); err != nil {
		t.Fatal(err)
	}
	k := keep{root: dir}
	looked := make(chan error)
	go func() {
		var err error
		for range 2000 {
			_, e := k.look()
			err = errors.Join(err, e)
		}
		looked <- err
	}()
	late := time.After(time.Minute)
	for {
		select {
		case err := <-looked:
			if err != nil {
				t.Error(err)
			}
			return
		case <-late:
			t.Fatal("it waits for a pipe")
		default:
			unix.Renameat2(unix.AT_FDCWD, at("pipe"), unix.AT_FDCWD, at("outside/f"), unix.RENAME_EXCHANGE)
		}
	}
}

// TestAttackPrelude: scripts are made for any shell that a sandbox may have.
func TestAttackPrelude(t *testing.T) {
	a := attacks.Attack{Needs: []string{"no-such-program"}}
	text := a.Script("X=1\n", "won \"$X\"\n")
	for _, probes := range []string{"probe tcp x", "case $(probe raw '') in works) ;; esac", "x | grep -q y"} {
		c := exec.Command("/bin/sh", "-c", attacks.Attack{}.Script("probe() { :; }\nPATH=/nowhere\n", probes+"\nheld denied\n"))
		if out, err := c.Output(); err != nil || !strings.HasPrefix(string(out), "\ncannot: ") || strings.Contains(string(out), "held: ") {
			t.Errorf("%s, where nothing runs: %q, %v", probes, out, err)
		}
	}
	if !strings.Contains(text, "cannot 'the image has no no-such-program'") || !strings.HasSuffix(text, "X=1\ncommand -v no-such-program >/dev/null 2>&1 || cannot 'the image has no no-such-program'\nwon \"$X\"\n") {
		t.Errorf("the script is\n%s", text)
	}
}
