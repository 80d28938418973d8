package gitshadow

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bench is a host's repository, a store, and a "sandbox": real git on the same
// machine whose objects, refs and logs are the store's, as in a real one.
type bench struct {
	t                     *testing.T
	dir, host, live, work string
	store                 Store
	b                     *Broker
	before                string // what must not change on the host
}

const testRun = "0123456789ab"

// newBench makes one; setup prepares the host's repository, which has a commit
// with the files a and b on main, a staged and an unstaged change.
func newBench(t *testing.T, options, setup string) *bench {
	t.Helper()
	dir := tree(t)
	w := &bench{t: t, dir: dir, host: filepath.Join(dir, "host"), live: filepath.Join(dir, "live"), work: filepath.Join(dir, "work")}
	w.store = Store{filepath.Join(dir, "data", ".lazaret", "git", testRun)}
	for _, d := range []string{w.host, w.live, filepath.Join(w.store.Dir, "objects/info"), filepath.Join(w.store.Dir, "objects/pack"), filepath.Join(w.store.Dir, "refs/heads"), filepath.Join(w.store.Dir, "logs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, w.host, `git init -q -b main `+options+` .
for f in a b c d; do echo "$f one" >$f; done; git add -A; git commit -qm first
echo "d staged" >d; git add d; echo "c unstaged" >c; echo untracked >u
printf '#!/bin/sh\n' >.git/hooks/pre-commit
`+setup)
	repo, err := Probe(w.host, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	branch := OwnBranch("claude")
	given := sh(t, w.host, `git for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags refs/remotes`)
	if id, err := trySh(w.host, "git rev-parse -q --verify "+branch); err != nil {
		given += "\n" + sh(t, w.host, "git rev-parse HEAD") + " " + branch
		_ = id
	}
	for _, p := range []string{filepath.Join(w.store.Dir, "packed-refs"), filepath.Join(w.live, "packed-refs")} {
		if err := os.WriteFile(p, []byte(given+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.Begin(Origin{Run: testRun, Profile: "claude", Mode: Quarantine, Branch: branch, Repo: repo}); err != nil {
		t.Fatal(err)
	}
	sh(t, w.live, `for d in objects refs logs; do ln -s '`+w.store.Dir+`'/$d .; done; cp '`+repo.CommonDir+`'/config .; echo 'ref: `+branch+`' >HEAD; mkdir '`+w.work+`'
[ ! -e '`+repo.CommonDir+`'/shallow ] || cp '`+repo.CommonDir+`'/shallow .`)
	w.inside("git config --unset core.worktree || :; git reset -q --hard")
	w.b = w.broker()
	w.before = w.state()
	return w
}

func (w *bench) broker() *Broker {
	return &Broker{Store: w.store, Program: realGit(w.t), Live: func() (*os.File, error) { return os.Open(w.live) }}
}

// inside runs a script as the agent.
func (w *bench) inside(script string) string {
	w.t.Helper()
	return sh(w.t, w.work, w.env()+script)
}

func (w *bench) env() string {
	return "export GIT_DIR='" + w.live + "' GIT_WORK_TREE='" + w.work + "' GIT_ALTERNATE_OBJECT_DIRECTORIES='" + filepath.Join(w.host, ".git/objects") + "' S='" + w.store.Dir + "' HOST='" + w.host + "'\n"
}

func (w *bench) onHost(script string) string {
	w.t.Helper()
	return sh(w.t, w.host, script)
}

// state is all of the host that no sandbox may change.
func (w *bench) state() string {
	return sh(w.t, w.host, `git for-each-ref | grep -v refs/heads/lazaret/ | grep -v refs/lazaret/held || :
git symbolic-ref -q HEAD || git rev-parse HEAD
git diff --cached; git diff; git status --porcelain; sha256sum .git/index .git/config .git/hooks/* a b c d u 2>&1
ls .git | grep -v -e '^logs$' -e packed-refs; cat .git/FETCH_HEAD 2>&1 || :; git stash list; ls .git/objects/info`)
}

// pass looks once, and then at whether the host is as it was but for what the
// policy lets happen.
func (w *bench) pass() error {
	w.t.Helper()
	err := w.b.Pass(w.t.Context())
	w.sound()
	return err
}

func (w *bench) sound() {
	w.t.Helper()
	if now := w.state(); now != w.before {
		w.t.Errorf("the host has changed:\n%s\nwas:\n%s", now, w.before)
	}
	if out := w.onHost("git fsck --full --strict 2>&1"); strings.Contains(out, "error") || strings.Contains(out, "missing") || strings.Contains(out, "broken") {
		w.t.Errorf("fsck on the host: %s", out)
	}
	if left, _ := filepath.Glob(w.store.Dir + "/staging-*"); len(left) > 0 {
		w.t.Errorf("left behind: %q", left)
	}
}

func (w *bench) hostRef(name string) string {
	out, err := trySh(w.host, "git rev-parse -q --verify '"+name+"'")
	if err != nil {
		return ""
	}
	return out
}

// said gives the notes as lines.
func (w *bench) said() string {
	var b strings.Builder
	for _, n := range w.b.Notes() {
		b.WriteString(n.text() + "\n")
	}
	return b.String()
}

func (n Note) text() string {
	s := [...]string{"nothing", "arrive", "hold", "never"}[n.Verdict] + " " + show(n.Ref)
	if n.Why != "" {
		s += ": " + n.Why
	}
	if n.Err != "" {
		s += ": failed: " + n.Err
	}
	return s
}

// trySh is sh for what may fail.
func trySh(dir, script string) (string, error) {
	c := exec.Command("sh", "-ec", script)
	c.Dir = dir
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Dev", "GIT_AUTHOR_EMAIL=dev@example.org", "GIT_COMMITTER_NAME=Dev", "GIT_COMMITTER_EMAIL=dev@example.org"}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

const agentRef = "refs/heads/lazaret/agent-claude"

func TestCommitsArrive(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			w := newBench(t, "--object-format="+format, "")
			if err := w.pass(); err != nil || len(w.b.Notes()) > 0 {
				t.Fatalf("nothing was done, and: %v %v", err, w.said())
			}
			id := w.inside("echo x >>a; mkdir -p e/f; echo y >e/f/g; git add -A; git commit -qm one; echo z >>a; git commit -qam two; git rev-parse HEAD")
			if err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := w.hostRef(agentRef); got != id {
				t.Fatalf("the host has %q, want %q: %s", got, id, w.said())
			}
			if n := w.b.Notes(); len(n) != 1 || n[0].Verdict != Arrive || n[0].Commits != 2 {
				t.Errorf("notes %+v", n)
			}
			// Amended, and housekeeping that leaves refs in packed-refs and objects in packs only.
			id = w.inside("git commit -q --amend -m better; echo q >q; git add q; git commit -qm three; git pack-refs --all; git gc -q --prune=now; test ! -e $S/refs/heads/lazaret/agent-claude; git rev-parse HEAD")
			if err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := w.hostRef(agentRef); got != id {
				t.Fatalf("after gc the host has %q, want %q: %s", got, id, w.said())
			}
			// Back to where it was given: that is a value, too.
			id = w.inside("git reset -q --hard main; git rev-parse HEAD")
			if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
				t.Fatalf("after a reset: %q, %v, %s", w.hostRef(agentRef), err, w.said())
			}
		})
	}
}

func TestMuchArrivesAsAPack(t *testing.T) {
	w := newBench(t, "", "")
	id := w.inside("for i in $(seq 300); do echo $i >f$i; done; git add -A; git commit -qm many; git rev-parse HEAD")
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Fatalf("%v, %s", err, w.said())
	}
	// The sum of both: an old pack, and newer files.
	id = w.inside("git repack -qd; echo more >more; git add -A; git commit -qm more; git rev-parse HEAD")
	w.b = w.broker()
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Fatalf("%v, %s", err, w.said())
	}
}

// TestPacksAreJoined: many small deliveries leave one pack.
func TestPacksAreJoined(t *testing.T) {
	w := newBench(t, "", "")
	for range packsApart + 3 {
		w.inside("echo x >>a; git commit -qam x")
		if err := w.b.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.b.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sound()
	if n := w.onHost("ls .git/objects/pack/*.pack | wc -l; ls .git/objects/pack | grep -c keep || :"); n != "1\n0" {
		t.Errorf("packs and marks: %q", n)
	}
	if n := w.onHost("git rev-list --count " + agentRef); n != "24" {
		t.Errorf("%s commits", n)
	}
}
