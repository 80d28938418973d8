package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
)

// gitAttack is something an agent does to a repository, and how the host
// notices.
type gitAttack struct {
	name  string
	agent string // a script, in /workspace, as root of the sandbox
	host  string // what a person then does in the workspace; PWN is a file that must not come to be
	harm  string // a command of the host's that succeeds where harm was done; "" for PWN
	told  string // what lazaret says of it, where it can be done and is told
}

var gitAttacks = []gitAttack{
	{name: "a hook", agent: `printf '#!/bin/sh\ntouch PWN\n' >.git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout`, host: `git checkout -q -b x; git checkout -q main; git branch -D x`},
	{name: "a hook of a submodule", agent: `d=$(git -C vendor/lib rev-parse --git-dir); mkdir -p $d/hooks; printf '#!/bin/sh\ntouch PWN\n' >$d/hooks/post-checkout; chmod 755 $d/hooks/post-checkout`, host: `git -C vendor/lib checkout -q -b x; git -C vendor/lib checkout -q -`},
	{name: "its directory's parent moved away", agent: `mv vendor gone && mkdir -p vendor/lib && cp -r gone/lib/f vendor/lib/ && git init -q vendor/lib && git -C vendor/lib config core.fsmonitor 'touch PWN; true'`, host: `git status`},
	{name: "core.fsmonitor", agent: `git config core.fsmonitor 'touch PWN; true'`, host: `git status`},
	{name: "diff.external", agent: `git config diff.external 'touch PWN; true'`, host: `git diff`},
	{name: "a filter", agent: `git config filter.p.clean 'touch PWN; cat'; echo '* filter=p' >.gitattributes`, host: `git status; git diff`},
	{name: "core.sshCommand", agent: `git config core.sshCommand 'touch PWN;'; git config remote.o.url ssh://h.invalid/x`, host: `git fetch o`},
	{name: "core.pager", agent: `git config core.pager 'touch PWN; cat'`, host: `script -qec 'git log' /dev/null`},
	{name: "include.path", agent: `printf '[core]\nfsmonitor = "touch PWN; true"\n' >inc; git config include.path ../inc`, host: `git status`},
	{name: "config.worktree", agent: `git config extensions.worktreeConfig true; printf '[core]\nfsmonitor = "touch PWN; true"\n' >.git/config.worktree`, host: `git status`},
	{name: "core.hooksPath", agent: `git config core.hooksPath hk; mkdir hk; printf '#!/bin/sh\ntouch PWN\n' >hk/post-checkout; chmod 755 hk/post-checkout`, host: `git checkout -q -b x; git checkout -q main; git branch -D x`},
	{name: "a link in logs", agent: `rm -f .git/logs/refs/heads/main; ln -s ../../../../../bashrc .git/logs/refs/heads/main; true`, host: `git commit -q --allow-empty -m more; git update-ref refs/heads/main HEAD~1`, harm: `grep more ../bashrc`},
	{name: "a link in refs", agent: `rm -f .git/refs/heads/loot; ln -s ../../../../secret .git/refs/heads/loot; true`, host: `true`, harm: `test -L .git/refs/heads/loot`},
	{name: "refs/replace", agent: `f=$(git commit-tree -m forged HEAD^{tree}); git replace -f HEAD $f`, host: `true`, harm: `git log --format=%s main | grep forged`},
	{name: "alternates", agent: `mkdir -p .git/objects/info; echo /elsewhere/objects >.git/objects/info/alternates`, host: `true`, harm: `grep elsewhere .git/objects/info/alternates`},
	{name: "rm -rf .git", agent: `rm -rf .git/objects .git/refs .git/logs .git`, host: `true`, harm: `! git log -1`},
	{name: "gc --prune=now", agent: `git reset -q; git reflog expire --expire=now --all; git gc -q --prune=now`, host: `true`, harm: `! git cat-file -e "$STAGED"`},
	{name: "pack-refs --all", agent: `git pack-refs --all; git branch -D side`, host: `true`, harm: `! git rev-parse -q --verify side`},
	{name: "worktree prune", agent: `git worktree prune --expire=now`, host: `true`, harm: `! git worktree list | grep linked`},
	{name: "locks left behind", agent: `touch .git/index.lock .git/refs/heads/main.lock; true`, host: `true`, harm: `! git commit -q --allow-empty -m x`},
	{name: "main rewound", agent: `git update-ref refs/heads/main main~1`, host: `true`, harm: `test "$(git log -1 --format=%s main)" = first`},
	{name: "a branch called ;x$(y)", agent: `git branch ';x$(y)'`, host: `true`, harm: `git for-each-ref | grep -F ';x$(y)'`},
	{name: "git init below", agent: `git init -q sub; git -C sub config core.fsmonitor 'touch PWN; true'`, host: `git -C sub status`, told: `danger: git setting in sub/.git/config: core.fsmonitor`},
	{name: "a directory that is a repository", agent: `git init -q --bare docs; git -C docs config core.bare false; git -C docs config core.worktree .; git -C docs config core.fsmonitor 'touch PWN; true'`, host: `git -C docs status`, told: `danger: git setting in docs/config: core.fsmonitor`},
}

// attacked is where the attacks happen: a workspace with a repository of
// everything that matters, made anew for each.
type attacked struct {
	*sandboxed
	image string // podman's id of what the sandbox runs
	home  string
}

func newAttacked(t *testing.T, more string) *attacked {
	s := newSandboxed(t)
	config := strings.Replace(shellConfig(filepath.Join(filepath.Dir(s.ws), "data")), "builtin:shell", "oci:"+os.Getenv("LAZARET_DEBIAN"), 1) + more
	if err := os.WriteFile(filepath.Join(s.ws, "lazaret.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("lock", "--platform", "linux/amd64")
	s.must("trust", "--yes")
	lock, err := os.ReadFile(filepath.Join(s.ws, "lazaret.lock"))
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`(?s)platforms.linux-amd64\].*?config = "sha256:([0-9a-f]{64})"`).FindSubmatch(lock)
	if id == nil {
		t.Fatalf("no image id in\n%s", lock)
	}
	a := &attacked{sandboxed: s, image: string(id[1]), home: t.TempDir()}
	s.must("launch", "shell", "--", "true")
	return a
}

// sh runs a script on the host, in the workspace, as the person would.
func (a *attacked) sh(script string) (string, error) {
	c := exec.Command("bash", "-c", script)
	c.Dir = a.ws
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "TERM=xterm",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// anew makes the repository: two commits, a branch, a tag, a submodule, a linked
// worktree, and changes that are staged, and that are not.
func (a *attacked) anew() {
	a.t.Helper()
	out, err := a.sh(`set -e
chmod -R u+rwX . ; find . -mindepth 1 -maxdepth 1 ! -name 'lazaret.*' -exec rm -rf {} +
rm -rf ../linked ../lib ../bashrc ../secret; echo mine >../bashrc; echo 0000000000000000000000000000000000000000 >../secret
git init -q -b main ../lib; (cd ../lib; echo f >f; git add f; git commit -qm lib)
git init -q -b main; git config user.name Dev; git config user.email dev@example.com; printf 'one\n' >f; printf 'two\n' >g; git add f g; git commit -qm first
git -c protocol.file.allow=always submodule -q add ../lib vendor/lib; git config -f .gitmodules submodule.vendor/lib.url https://example.com/lib
git add .gitmodules; git commit -qm second; git branch side main~1; git tag v1
git worktree add -q --detach ../linked main
printf 'staged\n' >f; git add f; printf 'unstaged\n' >g; printf 'hello\n' >new`)
	if err != nil {
		a.t.Fatalf("making the repository: %v\n%s", err, out)
	}
}

// state is what no sandbox may change: refs but for what policy lets through,
// what is staged, HEAD, configuration and hooks, and that all of it holds
// together.
func (a *attacked) state() string {
	out, _ := a.sh(`git fsck --full 2>&1 | grep -v '^dangling'; git for-each-ref | grep -v 'refs/\(heads/\)\?lazaret/'; cat .git/HEAD
git ls-files -s f g; git diff --cached -- f; git worktree list --porcelain | grep -v '^worktree'
cd .git && find config hooks info packed-refs modules/*/config modules/*/hooks modules/*/*/config modules/*/*/hooks -type f 2>/dev/null | sort | xargs sha256sum; find . -name '*.lock'; find . -type l`)
	return out
}

// raw gives the script to plain podman, as many people do.
func (a *attacked) raw(script string) {
	a.t.Helper()
	c := exec.Command("podman", "--runtime", ordinary(a.t), "run", "--rm", "--network", "none", "--pull", "never", "-v", a.ws+":/workspace", "-w", "/workspace",
		"-e", "GIT_AUTHOR_NAME=agent", "-e", "GIT_AUTHOR_EMAIL=x@example.com", "-e", "GIT_COMMITTER_NAME=agent", "-e", "GIT_COMMITTER_EMAIL=x@example.com", a.image, "bash", "-c", script)
	if out, err := c.CombinedOutput(); err != nil {
		a.t.Logf("podman: %v\n%s", err, out)
	}
}

// harmed plays the host's part, and tells whether harm was done.
func (a *attacked) harmed(k gitAttack, pwn string) bool {
	os.Remove(pwn)
	staged, _ := a.sh(`printf 'staged\n' | git hash-object --stdin`)
	a.sh("export STAGED=" + strings.TrimSpace(staged) + "\n" + strings.ReplaceAll(k.host, "PWN", pwn))
	if k.harm == "" {
		_, err := os.Stat(pwn)
		return err == nil
	}
	_, err := a.sh("export STAGED=" + strings.TrimSpace(staged) + "\n" + k.harm)
	return err == nil
}

// TestEndToEndGitAttacks: each attack does harm where the agent is given the
// repository by plain podman, and none from a sandbox of lazaret's; what an agent
// can do to its own files is told before the person comes upon it.
func TestEndToEndGitAttacks(t *testing.T) {
	needE2E(t)
	a := newAttacked(t, "")
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTACK\tPLAIN PODMAN\tLAZARET")
	for i, k := range gitAttacks {
		pwn := filepath.Join(filepath.Dir(a.ws), fmt.Sprintf("pwned%d", i))
		agent := "touch ran\n" + strings.ReplaceAll(k.agent, "PWN", pwn)

		a.anew()
		a.raw(agent)
		without := "harmless"
		if a.harmed(k, pwn) {
			without = "harm"
		} else {
			t.Errorf("%s: does no harm even without lazaret, so it shows nothing", k.name)
		}

		a.anew()
		before := a.state()
		c, said := a.cmd(nil, "launch", "shell", "--", "bash", "-c", agent)
		c.Run() // the attack may well fail
		with := "none"
		if _, err := os.Stat(filepath.Join(a.ws, "ran")); err != nil {
			t.Errorf("%s: the agent did not get to it\n%s", k.name, said)
		}
		if after := a.state(); after != before {
			with = "changed"
			t.Errorf("%s: the repository was\n%s\nand is\n%s\n%s", k.name, before, after, said)
		}
		if k.told != "" {
			c, out := a.cmd(nil, "guard")
			if err := c.Run(); err == nil || !strings.Contains(out.String(), k.told) {
				t.Errorf("%s: lazaret guard says\n%s", k.name, out)
			}
			with = "told; out of the way with --fix"
			c, out = a.cmd(nil, "guard", "--fix", "--yes")
			if err := c.Run(); err != nil {
				t.Errorf("%s: lazaret guard --fix: %v\n%s", k.name, err, out)
			}
		}
		if a.harmed(k, pwn) {
			with = "HARM"
			t.Errorf("%s: does harm\n%s", k.name, said)
		}
		a.must("guard", "--accept", "--yes")
		fmt.Fprintf(w, "%s\t%s\t%s\n", k.name, without, with)
	}
	w.Flush()
	t.Logf("\n%s", table.String())
}

// TestEndToEndWritebackTold: where the sandbox writes to the repository's own
// refs and logs, what it leaves there is told before git comes upon it.
func TestEndToEndWritebackTold(t *testing.T) {
	needE2E(t)
	a := newAttacked(t, "git = \"writeback\"\n")
	a.anew()
	a.must("launch", "shell", "--", "true")
	c, said := a.cmd(nil, "launch", "shell", "--", "bash", "-c", `ln -s ../../../../secret .git/refs/heads/loot
rm -f .git/logs/refs/heads/side; ln -s ../../../../../bashrc .git/logs/refs/heads/side
git branch ';x$(y)'
touch .git/refs/heads/main.lock
git update-ref refs/replace/$(git rev-parse HEAD) HEAD~1
echo done`)
	if err := c.Run(); err != nil {
		t.Errorf("the sandbox: %v", err)
	}
	t.Logf("%s", said)
	c, told := a.cmd(nil, "guard")
	c.Run()
	for _, want := range []string{
		"danger: link .git/refs/heads/loot: ../../../../secret (new)",
		"danger: link .git/logs/refs/heads/side: ../../../../../bashrc (new)",
		"warning: ref .git/refs/heads/;x$(y): refs/heads/;x$(y) (new)",
		"warning: git's lock file .git/refs/heads/main.lock (new)",
		"warning: ref .git/refs/replace/",
	} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("not told: %s\n%s", want, told)
		}
	}
}
