package gitshadow

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// adopted is a repository whose working tree a sandbox shared: what it changed
// there is in the files, and its commits are on a branch of its own.
type adopted struct {
	t   *testing.T
	dir string
	who []string
}

var devs = []string{"GIT_AUTHOR_NAME=Dev", "GIT_AUTHOR_EMAIL=dev@example.org", "GIT_COMMITTER_NAME=Dev", "GIT_COMMITTER_EMAIL=dev@example.org"}

// newAdopted has the person do host, and then the agent do agent in the same
// working tree, with an index and a HEAD of its own, beginning at main.
func newAdopted(t *testing.T, options, host, agent, after string) *adopted {
	t.Helper()
	w := &adopted{t, newRepo(t, options), devs}
	sh(t, w.dir, `mkdir d; for f in c d/e d/f; do for i in 1 2 3 4 5 6 7 8 9; do echo "$f $i"; done >$f; done; git add -A; git commit -qm second`)
	sh(t, w.dir, `git update-ref refs/heads/lazaret/agent-claude HEAD; cp .git/index ../agent-index`)
	sh(t, w.dir, host)
	sh(t, w.dir, `mkdir ../inside; cp -a .git/. ../inside/; cp ../agent-index ../inside/index; export GIT_DIR=$PWD/../inside GIT_WORK_TREE=$PWD; git symbolic-ref HEAD refs/heads/lazaret/agent-claude
`+agent+`
unset GIT_DIR GIT_WORK_TREE; git fetch -q ../inside +refs/heads/lazaret/agent-claude:refs/heads/lazaret/agent-claude; rm -f .git/FETCH_HEAD`)
	sh(t, w.dir, after)
	return w
}

// files is the working tree, byte for byte.
func (w *adopted) files() string {
	return sh(w.t, w.dir, `find . -path ./.git -prune -o -print | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum; find . -path ./.git -prune -o -type f -printf '%T@ %p\0' | sort -z | tr '\0' '\n'`)
}

func (w *adopted) adopt(apply bool) (*Adoption, error) {
	w.t.Helper()
	r, err := Probe(w.dir, os.Getuid())
	if err != nil {
		w.t.Fatal(err)
	}
	_, h, err := Host(w.t.Context(), realGit(w.t), r)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := PlanAdoption(w.t.Context(), realGit(w.t), r, h, agentRef)
	if err != nil || !apply {
		return a, err
	}
	return a, a.Apply(w.t.Context(), realGit(w.t), w.who)
}

func TestAdopt(t *testing.T) {
	for _, tt := range []struct {
		name, options string
		host          string // before the agent begins, and beside it: in the shared working tree
		agent         string // commits
		after         string // by the person, after
		refused       string // why it cannot be done
		status        string // "git status --porcelain" after
		staged        string // "git diff --cached" after, in part
		merge         bool
		stale         string
	}{
		{name: "forward", agent: `echo x >>a; git commit -qam a; echo n >n; git add n; git commit -qm n`},
		{name: "forward, sha256", options: "--object-format=sha256", agent: `echo x >>a; git commit -qam a`},
		{name: "renamed and deleted", agent: `git mv c d/moved; git rm -q b; chmod +x a; ln -s a link; git add -A; git commit -qm m`},
		{name: "uncommitted changes in other files", host: `echo mine >>b; git add b; echo more >>b; echo w >>d/f; echo u >u; echo i >ign; echo ign >.git/info/exclude`,
			agent: `echo x >>a; git commit -qm a a`, status: "MM b\n M d/f\n?? u", staged: "+mine"},
		{name: "uncommitted changes in the same file", host: `sed -i 's/c 1$/c 1 mine/' c`,
			agent: `cp c keep; sed -i 's/c 1 mine/c 1/; s/c 9$/c 9 theirs/' c; git commit -qm c c; sed -i 's/c 9$/c 9 theirs/' keep; cat keep >c; rm keep`, status: " M c"},
		{name: "staged and committed alike", host: `echo same >>a; git add a`, agent: `git commit -qm a a`},
		{name: "staged otherwise", host: `echo mine >>a; git add a`, agent: `echo theirs >>a; git commit -qm a a`, refused: `other changes are staged of "a"`},
		{name: "a staged file that the agent deletes", host: `echo mine >>a; git add a; git show HEAD:a >a`, agent: `git rm -q -f a; git commit -qm a`, refused: `other changes are staged of "a"`},
		{name: "a staged new file where the agent has a directory", host: `echo mine >n; git add n; rm n`, agent: `mkdir n; echo x >n/x; git add n; git commit -qm n`, refused: `staged of "n"`},
		{name: "a staged new directory where the agent has a file", host: `mkdir n; echo mine >n/x; git add n; rm -r n`, agent: `echo x >n; git add n; git commit -qm n`, refused: `staged of "n"`},
		{name: "a staged deletion", host: `git rm -q --cached b`, agent: `echo x >>a; git commit -qm a a`, status: "D  b\n?? b"},
		{name: "an untracked file that the agent has committed", host: `echo mine >n`, agent: `git add n; git commit -qm n; echo more >>n`, status: " M n"},
		{name: "a file the agent deleted and the person has again", agent: `git rm -q b; git commit -qm b`, after: `echo again >b`, status: "?? b"},
		{name: "both sides have committed", host: ``, agent: `echo x >>a; git commit -qam a`, after: `echo h >>b; git commit -qm h b`, merge: true},
		{name: "both sides, in one file", agent: `sed -i 's/c 1$/c 1 theirs/' c; git commit -qam c`, after: `git reset -q; git show HEAD:c >c; sed -i 's/c 9$/c 9 mine/' c; git commit -qm c c; sed -i 's/c 1$/c 1 theirs/' c; echo s >>b; git add b`, merge: true, status: "M  b"},
		{name: "both sides, a rename", agent: `git mv c moved; git commit -qam c`, after: `git show HEAD:c >c; sed -i 's/c 9$/c 9 mine/' c; git add c; git commit -qm c; mv c moved`, merge: true},
		{name: "both sides, the same lines", agent: `sed -i 's/c 1$/c 1 theirs/' c; git commit -qam c`, after: `sed -i 's/c 1 theirs$/c 1 mine/' c; git commit -qm c c`, refused: `the same lines of "c"`},
		{name: "deleted here, changed there", agent: `echo x >>b; git commit -qam b`, after: `git rm -q --cached b; git commit -qm b`, refused: `"b"`},
		{name: "nothing", agent: ``, refused: "there is nothing in lazaret/agent-claude"},
		{name: "behind", agent: ``, after: `git commit -q --allow-empty -m x`, refused: "there is nothing"},
		{name: "a merge under way", agent: `echo x >>a; git commit -qam a`, after: `git branch o HEAD~1; git checkout -q -f o; echo h >>a; git commit -qam h; git merge -q main || :; echo y >a; git commit -qam o2 || :; echo 1 >.git/MERGE_HEAD`, refused: "a merge is under way"},
		{name: "no branch", agent: `echo x >>a; git commit -qam a`, after: `git checkout -q --detach`, refused: "no branch is checked out"},
		{name: "its own branch", agent: `echo x >>a; git commit -qam a`, after: `git symbolic-ref HEAD refs/heads/lazaret/agent-claude`, refused: "the sandbox's own"},
		{name: "another git at work", agent: `echo x >>a; git commit -qam a`, after: `touch .git/index.lock`, refused: "another git is at work"},
		{name: "split index", host: `git update-index --split-index; echo s >>b; git add b`, agent: `echo x >>a; git commit -qm a a`, status: "M  b"},
		{name: "skipped files", host: `git update-index --skip-worktree d/e; rm d/e; git config core.sparseCheckout true`, agent: `git update-index --cacheinfo 100644,$(echo sparse | git hash-object -w --stdin),d/e; git commit -qm e`},
		{name: "odd names", agent: `printf x >"$(printf 'a\nb\t\342\230\203 "q" ;x')"; echo y >-f; git add -A; git commit -qm "$(printf 'su\033[31mbject')"`},
		{name: "put back meanwhile", agent: `echo x >>a; echo n >n; git add n; git commit -qam a`, after: `git show HEAD:a >a; rm n`, status: " M a\n D n", stale: "a,n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newAdopted(t, tt.options, tt.host, tt.agent, tt.after)
			mode := sh(t, w.dir, "stat -c %a .git/index")
			files, git := w.files(), sh(t, w.dir, "git for-each-ref; git symbolic-ref -q HEAD || git rev-parse HEAD; sha256sum .git/index .git/config; ls .git | grep -v -e logs")
			a, err := w.adopt(tt.name == "another git at work")
			if tt.refused != "" {
				var re *RefusedError
				var ne *NothingError
				if err == nil || !strings.Contains(err.Error(), tt.refused) || !errors.As(err, &re) && !errors.As(err, &ne) {
					t.Fatalf("%v, want %q", err, tt.refused)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if now := sh(t, w.dir, "git for-each-ref; git symbolic-ref -q HEAD || git rev-parse HEAD; sha256sum .git/index .git/config; ls .git | grep -v -e logs"); now != git {
				t.Errorf("planning changed\n%s\nto\n%s", git, now)
			}
			if tt.refused != "" {
				return
			}
			if a.Merge != tt.merge || strings.Join(a.Stale, ",") != tt.stale {
				t.Errorf("merge %v, stale %q", a.Merge, a.Stale)
			}
			if err := a.Apply(t.Context(), realGit(t), w.who); err != nil {
				t.Fatal(err)
			}
			if now := sh(t, w.dir, "stat -c %a .git/index"); now != mode {
				t.Errorf("the index has mode %s, had %s", now, mode)
			}
			if now := w.files(); now != files {
				t.Errorf("files changed:\n%s\nto\n%s", files, now)
			}
			if got := sh(t, w.dir, "git status --porcelain"); got != tt.status && "\n"+got != "\n"+strings.TrimLeft(tt.status, " ") && strings.TrimSpace(got) != strings.TrimSpace(tt.status) {
				t.Errorf("status %q, want %q", got, tt.status)
			}
			if got := sh(t, w.dir, "git diff --cached"); !strings.Contains(got, tt.staged) {
				t.Errorf("staged: %s", got)
			}
			if _, err := trySh(w.dir, "git merge-base --is-ancestor "+agentRef+" main && git merge-base --is-ancestor main@{1} main && git fsck --full --strict"); err != nil {
				t.Error("main does not hold both, or is not sound")
			}
			if left := sh(t, w.dir, "ls .git"); strings.Contains(left, "lazaret") || strings.Contains(left, "index.lock") {
				t.Errorf("left behind: %s", left)
			}
			if tt.merge {
				if got := sh(t, w.dir, "git log -1 --format='%an %s' main"); got != "Dev Merge branch 'lazaret/agent-claude'" {
					t.Errorf("the merge is %q", got)
				}
			}
			if _, err := w.adopt(true); err == nil || !strings.Contains(err.Error(), "there is nothing") {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestAdoptRaces: the branch moves between looking and doing.
func TestAdoptRaces(t *testing.T) {
	w := newAdopted(t, "", `echo s >>b; git add b`, `echo x >>a; git commit -qm a a`, "")
	a, err := w.adopt(false)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, w.dir, `git commit -q --allow-empty -m meanwhile -- ; git reset -q --soft HEAD~1; git update-ref refs/heads/main $(git commit-tree -p HEAD -m meanwhile HEAD^{tree})`)
	before := sh(t, w.dir, "sha256sum .git/index; git rev-parse HEAD; git diff --cached")
	if err := a.Apply(t.Context(), realGit(t), w.who); err == nil {
		t.Error("it was done although the branch had moved")
	}
	if now := sh(t, w.dir, "sha256sum .git/index; git rev-parse HEAD; git diff --cached; ls .git | grep lazaret || :"); now != before {
		t.Errorf("%s\nwas\n%s", now, before)
	}
}

// TestAdoptRunsNothing: what the sandbox put into the working tree, and what
// the host's settings name, does not run.
func TestAdoptRunsNothing(t *testing.T) {
	w := newAdopted(t, "", "", `printf '* filter=p merge=p diff=p\n' >.gitattributes; git add .gitattributes; echo x >>a; git commit -qam a`, `
printf '#!/bin/sh\ntouch %s/../RAN\ncat\n' "$PWD" >../p; chmod +x ../p
for k in filter.p.clean filter.p.smudge merge.p.driver diff.p.textconv core.fsmonitor core.editor gpg.program; do git config $k "$PWD/../p"; done; git config commit.gpgSign true
for h in post-merge post-commit pre-commit reference-transaction post-index-change commit-msg; do cp ../p .git/hooks/$h; done
rm -f ../RAN; git -c commit.gpgSign=false commit -q --no-verify --allow-empty -m h; sleep 1; rm -f ../RAN; touch a b c`)
	if _, err := trySh(w.dir, "git update-index -q --refresh; git diff >/dev/null; test -e ../RAN"); err != nil {
		t.Fatal("the settings run nothing where nothing is in their way")
	}
	os.Remove(w.dir + "/../RAN")
	a, err := w.adopt(true)
	if err != nil || !a.Merge {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.dir + "/../RAN"); err == nil {
		t.Error("a program was run")
	}
}

func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(":100644 000000 " + strings.Repeat("a", 40) + " " + strings.Repeat("0", 40) + " D\x00a\x00"))
	f.Fuzz(func(t *testing.T, out []byte) { parseRaw(out) })
}
