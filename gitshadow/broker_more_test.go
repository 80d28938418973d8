package gitshadow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWatch: a commit is on the host a moment later, and stays within about a
// second however much there is to hear.
func TestWatch(t *testing.T) {
	w := newBench(t, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { w.b.Watch(ctx) })
	defer ended.Wait()
	defer cancel()
	time.Sleep(200 * time.Millisecond)
	var took []time.Duration
	for i := range 5 {
		id := w.inside(fmt.Sprintf("echo %d >>a; git commit -qam c%d; git rev-parse HEAD", i, i))
		start := time.Now()
		for w.hostRef(agentRef) != id {
			if time.Since(start) > time.Minute {
				t.Fatalf("commit %d does not come: %s", i, w.said())
			}
			time.Sleep(10 * time.Millisecond)
		}
		took = append(took, time.Since(start))
	}
	t.Logf("from commit to host: %v", took)
	// Whoever hears nothing looks every three seconds. A busy machine takes that
	// long, too, but not each time.
	if d := slices.Min(took[1:]); d > idle-time.Second {
		t.Errorf("it took %v and more: nothing was heard", d)
	}
	// In a directory that was not there before, and in packed-refs only.
	id := w.inside("git checkout -q -b lazaret/claude/deep/er/x; echo x >>a; git commit -qam x; git pack-refs --all; git rev-parse HEAD")
	for start := time.Now(); w.hostRef("refs/heads/lazaret/claude/deep/er/x") != id; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("the branch does not come: %s", w.said())
		}
	}
}

// TestBesideTheHost: both commit, and the host packs, collects and rebases, all
// at the same time. Nothing is lost on either side.
func TestBesideTheHost(t *testing.T) {
	w := newBench(t, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { w.b.Watch(ctx) })
	errs := make(chan string, 2)
	var both sync.WaitGroup
	for _, s := range []struct{ dir, script string }{
		{w.work, w.env() + `for i in $(seq 40); do echo $i >>b; git commit -qam agent$i; done`},
		{w.host, `git stash -q; for i in $(seq 25); do echo $i >>a; git commit -qam host$i; case $((i%5)) in 0) git gc -q --prune=now;; 1) git pack-refs --all;; 2) git repack -adq;; 3) git rebase -q --force-rebase HEAD~1;; esac; done; git stash pop -q`},
	} {
		both.Go(func() {
			if out, err := trySh(s.dir, s.script); err != nil {
				errs <- out
			}
		})
	}
	both.Wait()
	cancel()
	ended.Wait()
	close(errs)
	for e := range errs {
		t.Error(e)
	}
	if err := w.b.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.hostRef(agentRef), w.inside("git rev-parse HEAD"); got != want {
		t.Errorf("the host has %s, want %s: %s", got, want, w.said())
	}
	if marks, _ := filepath.Glob(w.host + "/.git/objects/pack/*.keep"); len(marks) > 0 {
		t.Errorf("marks are left: %q", marks)
	}
	if n := w.onHost("git rev-list --count main"); n != "26" {
		t.Errorf("main has %s commits", n)
	}
	if n := w.onHost("git rev-list --count " + agentRef); n != "41" {
		t.Errorf("the agent's branch has %s commits", n)
	}
	if out, err := trySh(w.host, "git fsck --full --strict 2>&1; git diff --cached --stat; cat c"); err != nil || strings.Contains(out, "missing") || !strings.Contains(out, "c unstaged") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestKindsOfHost: what the host's repository is does not matter.
func TestKindsOfHost(t *testing.T) {
	const origin = `git init -q --bare ../o; git push -q ../o main; `
	for _, tt := range []struct{ name, options, setup string }{
		{"shallow", "", `for i in 1 2 3; do git commit -q --allow-empty -m $i; done; ` + origin + `mkdir ../h2; git clone -q --depth 2 "file://$PWD/../o" ../h2/host 2>&1; cp -a .git/hooks/pre-commit ../h2/host/.git/hooks; cp c d u ../h2/host; git -C ../h2/host add d; rm -rf .git a b c d u; cp -a ../h2/host/. .`},
		{"partial", "", origin + `git -C ../o config uploadpack.allowFilter true; git clone -q --filter=blob:none --no-checkout "file://$PWD/../o" ../h2 2>&1; git -C ../h2 read-tree HEAD; cp c d u ../h2; echo "a one" >../h2/a; echo "b one" >../h2/b; cp .git/hooks/pre-commit ../h2/.git/hooks; rm -rf .git a b c d u; cp -a ../h2/. .`},
		{"borrowed objects", "", `git clone -q -s . ../h2; cp c d u ../h2; git -C ../h2 add d; cp .git/hooks/pre-commit ../h2/.git/hooks; mv .git ../objects-of; sed -i "s,.*,$PWD/../objects-of/objects," ../h2/.git/objects/info/alternates; rm -f a b c d u; cp -a ../h2/. .; cat .git/objects/info/alternates`},
		{"packed", "", `git gc -q`},
		{"unusual settings", "", `git config core.logAllRefUpdates false; git config core.hooksPath /nothing; git config receive.denyCurrentBranch refuse; git config transfer.hideRefs refs/heads; git config core.sharedRepository group; git config gc.pruneExpire now`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newBench(t, tt.options, tt.setup)
			id := w.inside("git checkout -q HEAD -- a; echo x >>a; git commit -qm x a; git tag -a -m t t1; git rev-parse HEAD")
			if err := w.pass2(tt.name == "partial"); err != nil || w.hostRef(agentRef) != id {
				t.Errorf("%v, %s", err, w.said())
			}
			if out := w.onHost("git for-each-ref --format='%(objecttype)' refs/lazaret"); out != "tag" {
				t.Errorf("kept %q: %s", out, w.said())
			}
		})
	}
}

// pass2 is pass; fsck minds what a partial clone has yet to fetch from a
// remote that a test may not use.
func (w *bench) pass2(partial bool) error {
	if !partial {
		return w.pass()
	}
	return w.b.Pass(w.t.Context())
}

// TestLinkedWorktree: the host's working tree is one of several.
func TestLinkedWorktree(t *testing.T) {
	w := newBench(t, "", "")
	w.onHost("git worktree add -q ../wt -b side")
	w.inside("git update-ref refs/heads/side HEAD")
	w.inside("echo x >>a; git commit -qam x; git update-ref refs/heads/side HEAD")
	repo, err := Probe(filepath.Join(w.dir, "wt"), os.Getuid())
	if err != nil || repo.Kind != Worktree {
		t.Fatal(repo.Kind, err)
	}
	o, err := w.store.Origin()
	if err != nil {
		t.Fatal(err)
	}
	o.Repo = repo
	if err := w.store.Begin(o); err != nil {
		t.Fatal(err)
	}
	w.before = w.state()
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if said := w.said(); !strings.Contains(said, `hold "refs/heads/side": the branch is checked out here`) || !strings.Contains(said, `arrive "`+agentRef+`"`) {
		t.Error(said)
	}
}

func TestPolicy(t *testing.T) {
	p := Policy{
		Profile: "claude", Run: testRun,
		Given: map[string]string{"refs/heads/main": "1", "refs/heads/lazaret/agent-claude": "1", "refs/heads/stale": "1"},
		Host: HostRefs{
			Refs:       map[string]string{"refs/heads/main": "1", "refs/heads/stale": "2", "refs/tags/v1": "1", "refs/remotes/up/x": "1", "refs/heads/lazaret/agent-codex": "1"},
			CheckedOut: []string{"refs/heads/main"}, Remotes: []string{"origin", "up"},
		},
	}
	for _, tt := range []struct {
		ref, id string
		want    Verdict
		target  string
	}{
		{"refs/heads/main", "1", Nothing, ""},
		{"refs/heads/stale", "1", Nothing, ""}, // the host moved it, the sandbox did not
		{"refs/heads/stale", "2", Nothing, ""},
		{"refs/heads/stale", "3", Hold, "refs/heads/stale"},
		{"refs/heads/main", "3", Hold, "refs/heads/main"},
		{"refs/heads/lazaret/agent-claude", "1", Nothing, ""},
		{"refs/heads/lazaret/agent-claude", "3", Arrive, "refs/heads/lazaret/agent-claude"},
		{"refs/heads/lazaret/claude/x", "3", Arrive, "refs/heads/lazaret/claude/x"},
		{"refs/heads/lazaret/claude", "3", Hold, "refs/heads/lazaret/claude"},
		{"refs/heads/lazaret/claudette/x", "3", Hold, "refs/heads/lazaret/claudette/x"},
		{"refs/heads/lazaret/agent-codex", "3", Hold, "refs/heads/lazaret/agent-codex"},
		{"refs/heads/lazaret/agent-claude-2", "3", Hold, "refs/heads/lazaret/agent-claude-2"},
		{"refs/heads/feature/x", "3", Hold, "refs/heads/feature/x"},
		{"refs/tags/v2", "3", Hold, "refs/tags/v2"},
		{"refs/tags/main", "3", Hold, "refs/heads/lazaret/claude/main"},
		{"refs/heads/v1", "3", Hold, "refs/heads/lazaret/claude/v1"},
		{"refs/heads/origin/x", "3", Hold, "refs/heads/lazaret/claude/origin/x"},
		{"refs/heads/up/x", "3", Hold, "refs/heads/lazaret/claude/up/x"},
		{"refs/heads/origin", "3", Hold, "refs/heads/lazaret/claude/origin"},
		{"refs/heads/abcd", "3", Hold, "refs/heads/lazaret/claude/abcd"},
		{"refs/heads/v1-2-gabcdef0", "3", Hold, "refs/heads/lazaret/claude/v1-2-gabcdef0"},
		{"refs/heads/FETCH_HEAD", "3", Hold, "refs/heads/lazaret/claude/FETCH_HEAD"},
		{"refs/heads/x/HEAD", "3", Hold, "refs/heads/lazaret/claude/x/HEAD"},
		{"refs/heads/@", "3", Hold, "refs/heads/lazaret/claude/" + hashName("refs/heads/@")},
		{"refs/heads/-f", "3", Hold, "refs/heads/lazaret/claude/" + hashName("refs/heads/-f")},
		{"refs/heads/lazaret/claude/$(x)", "3", Hold, "refs/heads/lazaret/claude/" + hashName("refs/heads/lazaret/claude/$(x)")},
		{"refs/heads/a;b", "3", Hold, "refs/heads/lazaret/claude/" + hashName("refs/heads/a;b")},
		{"refs/heads/caf\u00e9", "3", Hold, "refs/heads/lazaret/claude/" + hashName("refs/heads/caf\u00e9")},
		{"refs/stash", "3", Hold, ""}, {"HEAD", "3", Hold, ""},
		{"refs/replace/1", "3", Never, ""}, {"refs/notes/commits", "3", Never, ""}, {"refs/lazaret/held/x", "3", Never, ""}, {"refs/x", "3", Never, ""},
		{"refs/remotes/origin/main", "3", Nothing, ""}, {"refs/bisect/bad", "3", Nothing, ""},
	} {
		d := p.Decide(tt.ref, tt.id)
		if d.Verdict != tt.want || d.Target != tt.target {
			t.Errorf("%s: %v %q, want %v %q", tt.ref, d.Verdict, d.Target, tt.want, tt.target)
		}
	}
}

// FuzzPolicy: whatever a sandbox calls a ref, it cannot move one of the host's
// that is not its own, nor be kept outside of what is kept for it.
func FuzzPolicy(f *testing.F) {
	for _, s := range []string{"refs/heads/main", "refs/heads/lazaret/agent-claude", "refs/heads/lazaret/claude/../x", "refs/heads/-x", "refs/tags/v1", "refs/stash", "HEAD", "refs/heads/a b",
		"refs/heads/feature/x", "refs/heads/lazaret/agent-codex", "refs/heads/lazaret/claude/out", "refs/heads/lazaret/claude/x", "refs/heads/abcd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !isRef(name) {
			return
		}
		out := "refs/heads/lazaret/claude/out" // the person looks at it
		p := Policy{Profile: "claude", Run: testRun, Host: HostRefs{Refs: map[string]string{"refs/heads/main": "1", out: "1"}, CheckedOut: []string{"refs/heads/main", out}, Remotes: []string{"origin"}}}
		d := p.Decide(name, "3")
		if d.Verdict == Arrive && (d.Target == out || d.Target != "refs/heads/lazaret/agent-claude" && !strings.HasPrefix(d.Target, "refs/heads/lazaret/claude/")) {
			t.Errorf("%q moves %q", name, d.Target)
		}
		if d.Verdict == Hold && (!strings.HasPrefix(d.Kept, "refs/lazaret/held/claude/"+testRun+"/") || !isRef(d.Kept)) && len(name) < 180 {
			t.Errorf("%q is kept as %q", name, d.Kept)
		}
		for _, out := range []string{d.Target, d.Kept} {
			if d.Verdict != Nothing && d.Verdict != Never && out != "" && !safeName.MatchString(out) {
				t.Errorf("%q becomes %q", name, out)
			}
		}
	})
}

func FuzzPackedRefs(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add([]byte("# pack-refs with: peeled fully-peeled sorted \n" + id + " refs/heads/main\n^" + id + "\n"))
	f.Add([]byte(id + " refs/heads/../x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		refs, _, err := parsePacked(text, "sha1", 100)
		if err != nil {
			return
		}
		for name, id := range refs {
			if !isRef(name) || !isID(id, "sha1") || strings.ContainsAny(name+id, " \n\x00") {
				t.Errorf("%q %q", name, id)
			}
		}
	})
}

func FuzzObject(f *testing.F) {
	f.Add([]byte("x\x9c"), []byte("tree "+strings.Repeat("a", 40)+"\nparent x\n"))
	f.Fuzz(func(t *testing.T, packed, body []byte) {
		readObject(strings.NewReader(string(packed)), strings.Repeat("a", 40), "sha1")
		for _, kind := range []string{"tree", "commit", "tag", "blob", "x"} {
			links, _ := objectLinks(kind, body, "sha1")
			for _, l := range links {
				if !isID(l, "sha1") {
					t.Errorf("%q", l)
				}
			}
		}
	})
}
