package gitshadow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// apart is git with a directory and a configuration of lazaret's own, which
// reads and writes a repository's objects.
func apart(g Git, r Repo) (Git, func(), error) {
	place, err := os.MkdirTemp("", "lazaret-git-")
	if err != nil {
		return g, nil, err
	}
	done := func() { os.RemoveAll(place) }
	s, err := newStaging(filepath.Join(place, "s"), g.Program, r)
	if err != nil {
		done()
		return g, nil, err
	}
	p := s.host()
	p.Env = g.Env
	return p, done, nil
}

// Apply does what was planned, if everything is still as it was then: it makes
// the merge, and moves the index and then the branch. person is their Identity;
// without one, no merge can be made.
func (a *Adoption) Apply(ctx context.Context, program string, person []string) error {
	g := hostGit(program, a.Repo)
	lock := filepath.Join(a.Repo.GitDir, "index.lock")
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return refuse("wait for it, or remove "+show(lock)+" if there is none", "another git is at work here: the index is locked")
	}
	if err != nil {
		return err
	}
	f.Close()
	defer os.Remove(lock)
	empty, err := os.MkdirTemp("", "lazaret-empty-")
	if err != nil {
		return err
	}
	defer os.Remove(empty)
	// No file of the working tree is looked at: it could name a filter.
	g.WorkTree = empty
	index := filepath.Join(a.Repo.GitDir, indexFile)
	made, kept := index+".lazaret-new", index+".lazaret-old"
	for _, name := range []string{made, kept} {
		defer os.Remove(name)
		os.Remove(name)
		if err := copyFile(index, name); err != nil && !isNotExist(err) {
			return err
		}
	}
	g.Index = made
	if err := a.check(ctx, g); err != nil {
		return err
	}
	if err := a.fillIndex(ctx, g); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	to := a.From
	if a.Merge {
		if to, err = a.commit(ctx, g, person); err != nil {
			return fmt.Errorf("committing the merge: %w", err)
		}
	}
	if fi, err := os.Stat(index); err == nil {
		if err := os.Chmod(made, fi.Mode().Perm()); err != nil {
			return err
		}
	}
	// The index first: should this be the end, the commits show as staged, and
	// nothing of anybody's is lost.
	if err := os.Rename(made, index); err != nil {
		return err
	}
	g.Index = ""
	if len(person) > 0 {
		g.Env = person
	}
	old := a.Old
	if old == "" {
		old = a.Repo.Zero()
	}
	why := "lazaret merge: " + strings.TrimPrefix(a.Source, "refs/heads/")
	if _, err := g.Feed(ctx, []byte("start\nupdate HEAD "+to+" "+old+"\nprepare\ncommit\n"), "update-ref", "-m", why, "--stdin"); err != nil {
		var back error
		if exists(kept) {
			back = os.Rename(kept, index)
		} else {
			back = os.Remove(index)
		}
		return errors.Join(fmt.Errorf("moving %s: %w", strings.TrimPrefix(a.Branch, "refs/heads/"), err), back)
	}
	return nil
}

// fillIndex puts what the commits change into an index.
func (a *Adoption) fillIndex(ctx context.Context, g Git) error {
	if len(a.Changes) == 0 {
		return nil
	}
	hidden, err := a.hidden(ctx, g)
	if err != nil {
		return err
	}
	was, _ := os.Stat(g.Index)
	var gone, come, skip bytes.Buffer
	for _, c := range a.Changes {
		if c.Mode == "" {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", a.Repo.Zero(), c.Path)
			continue
		}
		fmt.Fprintf(&come, "%s %s 0\t%s\x00", c.Mode, c.ID, c.Path)
		if hidden(c.Path) {
			skip.WriteString(c.Path + "\x00")
		}
	}
	if _, err := g.Feed(ctx, append(gone.Bytes(), come.Bytes()...), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	if skip.Len() > 0 {
		if _, err := g.Feed(ctx, skip.Bytes(), "update-index", "--skip-worktree", "-z", "--stdin"); err != nil {
			return err
		}
	}
	return retime(g.Index, was)
}

// hidden tells of which paths the working tree is not to have a file.
func (a *Adoption) hidden(ctx context.Context, g Git) (func(string) bool, error) {
	out, err := g.Output(ctx, "ls-files", "-z", "-t")
	if err != nil {
		return nil, err
	}
	skipped := map[string]bool{}
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		if tag, path, ok := strings.Cut(string(entry), " "); ok && strings.EqualFold(tag, "S") {
			skipped[path] = true
		}
	}
	return func(path string) bool {
		return skipped[path] || a.Repo.Sparse && !exists(filepath.Join(a.Repo.Workspace, path))
	}, nil
}

// commit makes the commit of a merge.
func (a *Adoption) commit(ctx context.Context, g Git, person []string) (string, error) {
	p, done, err := apart(g, a.Repo)
	if err != nil {
		return "", err
	}
	defer done()
	p.Env = person
	what := "commit '" + a.From + "'"
	if name, ok := strings.CutPrefix(a.Source, "refs/heads/"); ok {
		what = "branch '" + name + "'"
	}
	return p.Line(ctx, "commit-tree", "-p", a.Old, "-p", a.From, "-m", "Merge "+what, a.Tree)
}

// Identity is the environment that makes commits the person's: g is for the
// repository, with the person's home.
func Identity(ctx context.Context, g Git) ([]string, error) {
	var out []string
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		line, err := g.Line(ctx, "var", "GIT_"+who+"_IDENT")
		if err != nil {
			return nil, refuse("\"git config user.name\" and \"git config user.email\" tell it", "git does not know whose commits these are")
		}
		// NAME <EMAIL> TIME ZONE
		name, rest, _ := strings.Cut(line, " <")
		email, _, ok := strings.Cut(rest, "> ")
		if !ok {
			return nil, errors.New("git does not say whose commits these are")
		}
		out = append(out, "GIT_"+who+"_NAME="+name, "GIT_"+who+"_EMAIL="+email)
	}
	return out, nil
}
