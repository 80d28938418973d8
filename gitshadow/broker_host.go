package gitshadow

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"lazaret/internal/proc"
)

// hostGit is git for a repository of the host's.
func hostGit(program string, r Repo) Git {
	g := Git{Program: program, GitDir: r.GitDir, WorkTree: r.Workspace, Memory: gitMemory}
	// Who moved a ref is written to its log.
	g.Env = []string{"GIT_COMMITTER_NAME=lazaret", "GIT_COMMITTER_EMAIL=lazaret@localhost"}
	return g
}

// readHost reads the refs of the host's repository as they are now.
func readHost(ctx context.Context, g Git) (HostRefs, error) {
	h := HostRefs{Refs: map[string]string{}}
	out, err := g.Output(ctx, "for-each-ref", "--format=%(objectname) %(refname)")
	if err != nil {
		return h, fmt.Errorf("listing the host's refs: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			continue
		}
		h.Refs[name] = id
		if rest, ok := strings.CutPrefix(name, "refs/remotes/"); ok {
			remote, _, _ := strings.Cut(rest, "/")
			h.remote(remote)
		}
	}
	out, err = g.Output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return h, fmt.Errorf("listing the host's working trees: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		switch word, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); {
		case word == "branch":
			h.CheckedOut = append(h.CheckedOut, value)
		case word == "HEAD" && strings.Trim(value, "0") != "":
			h.Heads = append(h.Heads, value)
		}
	}
	// A repository whose name for its branch is not born has it checked out too.
	if name, err := g.Line(ctx, "symbolic-ref", "-q", "HEAD"); err == nil && !slices.Contains(h.CheckedOut, name) {
		h.CheckedOut = append(h.CheckedOut, name)
	}
	out, err = g.Output(ctx, "config", "-z", "--name-only", "--get-regexp", `^remote\.`)
	if err != nil && proc.ExitStatus(err) != 1 {
		return h, fmt.Errorf("listing the host's remotes: %w", err)
	}
	for key := range bytes.SplitSeq(out, []byte{0}) {
		if i := bytes.LastIndexByte(key, '.'); i > len("remote.") {
			name := string(key[len("remote."):i])
			first, _, _ := strings.Cut(name, "/")
			h.remote(name)
			h.remote(first)
		}
	}
	return h, nil
}

func (h *HostRefs) remote(name string) {
	if name != "" && !slices.Contains(h.Remotes, name) {
		h.Remotes = append(h.Remotes, name)
	}
}

// haveMost bounds how many of the host's commits git is told of: each that it
// does not know makes it look at more, but no result wrong.
const haveMost = 500

// have lists commits that the host has with all that they lead to. In doubt
// those do not count that lazaret itself brought: the host may have thrown away
// what they lead to, as "git gc --prune=now" does with what came a moment ago.
func (h HostRefs) have(doubt bool) (ids []string) {
	add := func(id string) {
		if id != "" && len(ids) < haveMost && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range h.Heads {
		add(id)
	}
	for _, prefix := range []string{"refs/heads/", "refs/lazaret/", "refs/remotes/", "refs/tags/"} {
		for name, id := range h.Refs {
			ours := strings.HasPrefix(name, "refs/heads/lazaret/") || strings.HasPrefix(name, "refs/lazaret/")
			if strings.HasPrefix(name, prefix) && !(doubt && ours) {
				add(id)
			}
		}
	}
	return ids
}

// move sets one ref of the host's, if it still has the old value. Zeros are the
// value of a ref that is not there.
func move(ctx context.Context, g Git, why, ref, id, old string) error {
	_, err := g.Feed(ctx, []byte("start\nupdate "+ref+" "+id+" "+old+"\nprepare\ncommit\n"), "update-ref", "--create-reflog", "-m", why, "--stdin")
	return err
}

// leads tells whether the history of one commit holds another.
func leads(ctx context.Context, g Git, from, to string) (bool, error) {
	_, err := g.Output(ctx, "merge-base", "--is-ancestor", from, to)
	switch proc.ExitStatus(err) {
	case 0:
		return true, nil
	case 1:
		return false, nil
	}
	return false, err
}
