package gitshadow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realGit is the git of this machine.
func realGit(t *testing.T) string {
	t.Helper()
	p, err := FindGit(os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newRepo makes a repository with a commit on main.
func newRepo(t *testing.T, options string) string {
	t.Helper()
	dir := filepath.Join(tree(t), "ws")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "git init -q -b main "+options+" . && echo one >a && echo two >b && git add -A && git commit -qm first")
	return dir
}

// TestConfigRunsNothing: each setting runs a program with git as it comes, and
// none with Git.
func TestConfigRunsNothing(t *testing.T) {
	for _, tt := range []struct{ name, setup, plain, args string }{
		{"hooks", `mkdir h; printf '#!/bin/sh\ntouch $FLAG\n' >h/reference-transaction; chmod +x h/*; git config core.hooksPath "$PWD/h"`,
			"git update-ref refs/heads/x HEAD", "update-ref refs/heads/y HEAD"},
		{"hooks in place", `printf '#!/bin/sh\ntouch $FLAG\n' >.git/hooks/reference-transaction; chmod +x .git/hooks/*`,
			"git update-ref refs/heads/x HEAD", "update-ref refs/heads/y HEAD"},
		{"fsmonitor", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config core.fsmonitor "$PWD/m"`,
			"git ls-files -m", "ls-files -m"},
		{"fsmonitor, writing", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config core.fsmonitor "$PWD/m"`,
			"git read-tree -m HEAD", "read-tree -m HEAD"},
		{"included", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; printf "[core]\nfsmonitor=$PWD/m\n" >inc; git config include.path "$PWD/inc"`,
			"git ls-files -m", "ls-files -m"},
		{"config.worktree", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$PWD/m"`,
			"git ls-files -m", "ls-files -m"},
		{"external diff", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config diff.external "$PWD/m"; echo x >>a; git add a`,
			"git diff --cached", "diff-index -p HEAD"},
		{"textconv", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config diff.d.textconv "$PWD/m"; echo '* diff=d' >.gitattributes; echo x >>a; git add a`,
			"git diff --cached", "diff-index -p HEAD"},
		{"signature", `printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config gpg.program "$PWD/m"; git config log.showSignature true; printf 'tree %s\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\nm\n' $(git rev-parse HEAD:) | git hash-object -t commit -w --stdin >c; git update-ref HEAD $(cat c)`,
			"git log -1 || :", "rev-list -1 --pretty=%G? HEAD"},
		{"signing", `printf '#!/bin/sh\ntouch $FLAG\nexit 1\n' >m; chmod +x m; git config gpg.program "$PWD/m"; git config commit.gpgSign true`,
			"git commit --allow-empty -m x || :", "commit-tree HEAD^{tree} -m x"},
		{"lazy fetch", `git init -q --bare ../o; git config remote.origin.url "$PWD/../o"; printf '#!/bin/sh\ntouch $FLAG\n' >m; chmod +x m; git config remote.origin.uploadpack "$PWD/m"; git config remote.origin.promisor true; git config core.repositoryformatversion 1; git config extensions.partialClone origin`,
			"git cat-file -t 1111111111111111111111111111111111111111 || :", "cat-file -t 1111111111111111111111111111111111111111"},
		{"filter in a submodule", `git init -q sub; cd sub; echo f >f; git add f; git commit -qm s; printf '#!/bin/sh\ntouch $FLAG\ncat\n' >m; chmod +x m; git config filter.p.clean "$PWD/m"; echo '* filter=p' >.gitattributes; cd ..; git add sub; git commit -qm sub; sleep 1; touch sub/f; echo g >sub/f`,
			"git diff --stat", "diff-index HEAD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newRepo(t, "")
			flag := filepath.Join(t.TempDir(), "ran")
			sh(t, dir, "FLAG="+flag+"\n"+strings.ReplaceAll(tt.setup, "$FLAG", flag))
			os.Remove(flag)
			sh(t, dir, tt.plain)
			if _, err := os.Stat(flag); err != nil {
				t.Fatalf("the attack does not work where nothing is in its way: %s", tt.plain)
			}
			os.Remove(flag)
			g := Git{Program: realGit(t), GitDir: filepath.Join(dir, ".git"), WorkTree: dir, Env: []string{"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a"}}
			_, err := g.Output(t.Context(), strings.Fields(tt.args)...)
			if _, ferr := os.Stat(flag); ferr == nil {
				t.Errorf("%s ran the program", tt.args)
			}
			if err != nil && tt.name != "lazy fetch" {
				t.Error(err)
			}
		})
	}
}

func TestGitRunsOnlyWhatItKnows(t *testing.T) {
	g := Git{Program: realGit(t), GitDir: filepath.Join(newRepo(t, ""), ".git")}
	for _, args := range []string{
		"", "status", "diff", "fetch /x", "checkout main", "add .", "commit -m x", "clone a b", "gc", "submodule update", "archive HEAD",
		"config core.pager x", "config --add core.pager x", "config --unset core.pager", "config --get a --edit",
		"read-tree -u -m HEAD", "update-index --refresh", "update-index --add a", "update-index a", "update-index --cacheinfo 1,2,3",
		"cat-file --textconv HEAD:a", "cat-file --filters HEAD:a", "diff-tree --ext-diff HEAD", "worktree add x", "worktree prune", "worktree",
		"rev-list --output=x HEAD", "diff-index --textconv HEAD", "cat-file --no-filters HEAD",
	} {
		if _, err := g.Output(t.Context(), strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "lazaret") && !strings.Contains(err.Error(), "only ever") && !strings.Contains(err.Error(), "no command") {
			t.Errorf("git %s: %v", args, err)
		}
	}
	g.Program = "git"
	if _, err := g.Output(t.Context(), "version"); err == nil {
		t.Error("a program that is looked for in PATH was run")
	}
}

// TestGitLeavesNoLock: one that is broken off in the middle of moving a ref, as
// the broker's is when its sandbox ends, does not leave the ref locked.
func TestGitLeavesNoLock(t *testing.T) {
	dir := newRepo(t, "")
	g := Git{Program: realGit(t), GitDir: filepath.Join(dir, ".git")}
	id, err := g.Line(t.Context(), "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	fmt.Fprintf(feed, "start\nupdate refs/lazaret/held/x %s\nprepare\n", id)
	lock := filepath.Join(dir, ".git/refs/lazaret/held/x.lock")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Pipe(ctx, in, nil, "update-ref", "--stdin") }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(lock); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("git took no lock")
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it was not broken off")
	}
	if _, err := os.Stat(lock); err == nil {
		t.Error("the ref is locked for ever")
	}
	if _, err := g.Feed(t.Context(), fmt.Appendf(nil, "update refs/lazaret/held/x %s\n", id), "update-ref", "--stdin"); err != nil {
		t.Error(err)
	}
}

func TestGitIsItsOwn(t *testing.T) {
	dir := newRepo(t, "")
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("GIT_TRACE", "1")
	g := Git{Program: realGit(t), GitDir: filepath.Join(dir, ".git")}
	if out, err := g.Line(t.Context(), "rev-parse", "--git-dir"); err != nil || out != g.GitDir {
		t.Errorf("git dir %q, %v", out, err)
	}
	out, err := g.Feed(t.Context(), []byte("HEAD\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil || string(out) != "commit\n" {
		t.Errorf("%q, %v", out, err)
	}
	// Discovery goes by the directory.
	g = Git{Program: g.Program, Dir: dir, Home: t.TempDir()}
	if out, err := g.Line(t.Context(), "rev-parse", "--show-toplevel"); err != nil || out != dir {
		t.Errorf("top level %q, %v", out, err)
	}
	// An error names what was asked, not all that was pinned.
	if _, err := g.Output(t.Context(), "rev-parse", "--verify", "nothing"); err == nil || strings.Contains(err.Error(), "hooksPath") {
		t.Errorf("error %v", err)
	}
	// Alternates with odd names.
	odd := filepath.Join(t.TempDir(), "a:b \"c\"\\\nd")
	sh(t, dir, "cp -r .git '"+odd+"'")
	g = Git{Program: g.Program, GitDir: filepath.Join(newRepo(t, ""), ".git"), Alternates: []string{"/nothing", odd + "/objects"}}
	id := sh(t, dir, "git commit -q --allow-empty -m more; rm -rf '"+odd+"'; cp -r .git '"+odd+"'; git rev-parse HEAD")
	if out, err := g.Line(t.Context(), "cat-file", "-t", id); err != nil || out != "commit" {
		t.Errorf("through an alternate: %q, %v", out, err)
	}
}

func TestFindGit(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "git"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := FindGit(ws); err != nil || p != filepath.Join(ws, "git") {
		t.Fatalf("%q, %v", p, err)
	}
	if p, err := FindGit(ws+":.:bin", ws); err == nil {
		t.Errorf("found %q in the workspace", p)
	}
	link := t.TempDir()
	if err := os.Symlink(filepath.Join(ws, "git"), filepath.Join(link, "git")); err != nil {
		t.Fatal(err)
	}
	if p, err := FindGit(link, ws); err == nil {
		t.Errorf("found %q, by way of a link", p)
	}
}
