package gitshadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckRefs: a sandbox that writes to the host's own refs, and what is told
// of it.
func TestCheckRefs(t *testing.T) {
	dir := newRepo(t, "")
	sh(t, dir, `git commit -q --allow-empty -m two; for b in gone back on own; do git branch $b; done; git branch lazaret/agent-claude; git tag v1`)
	store := Store{filepath.Join(t.TempDir(), "store")}
	if err := os.Mkdir(store.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	repo, err := Probe(dir, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.Dir, "packed-refs"), []byte(sh(t, dir, `git for-each-ref --format='%(objectname) %(refname)'`)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Begin(Origin{Run: testRun, Profile: "claude", Mode: Writeback, Branch: agentRef, Repo: repo}); err != nil {
		t.Fatal(err)
	}
	if got, err := CheckRefs(t.Context(), realGit(t), store); err != nil || len(got) > 0 {
		t.Fatalf("nothing was done, and %v, %v", got, err)
	}
	before := sh(t, dir, "git for-each-ref | grep -v agent-claude")
	sh(t, dir, `git checkout -q lazaret/agent-claude; git commit -q --allow-empty -m mine; git checkout -q main
git branch -D gone; git update-ref refs/heads/back HEAD~1; git update-ref refs/heads/on lazaret/agent-claude; git update-ref 'refs/heads/;x$(y)' HEAD; git tag v2; git replace HEAD~1 HEAD
touch .git/refs/heads/main.lock; mkdir -p .git/logs/refs/heads; ln -sf /etc/passwd .git/logs/refs/heads/on`)
	got, err := CheckRefs(t.Context(), realGit(t), store)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, c := range got {
		said.WriteString(c.Ref + ": " + c.Why + "\n")
	}
	for _, want := range []string{
		"refs/heads/gone: it is gone", "refs/heads/back: it was moved back, or aside", "refs/heads/on: it was moved forward",
		"refs/heads/;x$(y): it is new, and its name could be more", "refs/tags/v2: it is new", ": it makes git show another object",
		"refs/heads/main.lock: a lock", "logs/refs/heads/on: it is no file of git's",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("want %q in\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "agent-claude") {
		t.Errorf("told of what it may do:\n%s", said.String())
	}
	// Git is not let near what it would read without end.
	sh(t, dir, "ln -s /dev/zero .git/refs/heads/z")
	if got, err := CheckRefs(t.Context(), realGit(t), store); err != nil || len(got) != 4 || got[0].Ref != "refs/heads/main.lock" && got[1].Ref != "refs/heads/main.lock" {
		t.Errorf("%v, %v", got, err)
	}
	// The commands make it what it was.
	sh(t, dir, "rm .git/refs/heads/main.lock .git/refs/heads/z .git/logs/refs/heads/on")
	for _, c := range got {
		if words := c.Restore(); words != nil {
			sh(t, dir, "git '"+strings.Join(words, "' '")+"'")
		}
	}
	if now := sh(t, dir, "git for-each-ref | grep -v agent-claude"); now != before {
		t.Errorf("restored:\n%s\nwas:\n%s", now, before)
	}
}
