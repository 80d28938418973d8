package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// indexMax bounds an index that is copied, in bytes: some millions of files.
const indexMax = 1 << 30

// Names of what Prepare makes for a place beside objects, refs and logs.
const (
	headFile    = "HEAD"
	indexFile   = "index"
	shallowFile = "shallow"
	packedFile  = "packed-refs" // all refs as they were when the sandbox began
	scratchName = "scratch"     // a git directory of nothing but settings of ours, for work on the index
)

// Prepare makes, on the host, what the places' git directories are filled with,
// and the store that the sandbox writes to. g needs nothing but its program. It
// returns what a person should know of where the sandbox starts.
func (s Shadow) Prepare(ctx context.Context, g Git) (notes []string, err error) {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, err
	}
	for _, p := range s.Places {
		more, err := s.prepare(ctx, g, p)
		if err != nil {
			return nil, fmt.Errorf("preparing git for %s: %w", show(filepath.Join("/workspace", p.Repo.Path)), err)
		}
		notes = append(notes, more...)
	}
	return notes, nil
}

func (s Shadow) prepare(ctx context.Context, g Git, p Place) (notes []string, err error) {
	dir := s.Store(p)
	dirs := []string{scratchName + "/objects", scratchName + "/refs", scratchName + "/empty"}
	if s.Mode == Quarantine {
		dirs = append(dirs, "objects/info", "objects/pack", "refs/heads", "refs/tags", "logs")
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if s.Mode == Quarantine {
		text := strings.Join(append([]string{p.Host + "/objects"}, p.Alternates...), "\n") + "\n"
		if err := writeNew(filepath.Join(dir, "objects/info/alternates"), text); err != nil {
			return nil, err
		}
	} else if err := p.Repo.makeInfo(); err != nil {
		return nil, err
	}
	g, err = p.scratch(g, filepath.Join(dir, scratchName))
	if err != nil {
		return nil, err
	}
	list, peeled, err := p.Repo.refs()
	if err != nil {
		return nil, err
	}
	tip, apart, err := p.tip(ctx, g)
	if err != nil {
		return nil, err
	}
	if apart {
		notes = append(notes, fmt.Sprintf("%s has commits that what is checked out here has not, and the other way round: the sandbox goes on with it", show(strings.TrimPrefix(p.Branch, "refs/heads/"))))
	}
	if p.Branch != "" {
		if err := clashes(list, p.Branch); err != nil {
			return nil, err
		}
	}
	index := filepath.Join(dir, indexFile)
	if s.Tree != "" {
		var more []string
		if tip, more, err = s.prepareTree(ctx, g, p, tip, index); err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	} else if err := p.hostIndex(ctx, g, index, tip); err != nil {
		return nil, err
	}
	if err := p.cover(ctx, g, index); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, g.Program, p, tip); err != nil {
		return nil, err
	}
	head := "ref: " + p.Branch + "\n"
	switch {
	case p.Branch == "":
		head = tip + "\n"
	case tip != "":
		list = put(list, ref{name: p.Branch, id: tip})
	}
	if err := writeNew(filepath.Join(dir, headFile), head); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, packedFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writePacked(f, list, peeled), f.Close()); err != nil {
		return nil, err
	}
	return notes, os.RemoveAll(filepath.Join(dir, scratchName)) // never shown to anybody
}

// makeInfo makes the directory objects/info of a host's repository that has
// none, as "git init" does: the sandbox has it read-only, and would make its
// own, with alternates in it, where there is nothing to be read-only.
func (r *Repo) makeInfo() error {
	root, err := os.OpenRoot(r.CommonDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir("objects/info", 0o777); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// scratch fits g for work on the index and on history: it reads the host's
// objects, and no configuration but this; where it looks for a working tree,
// there is an empty one, so that no filter that the repository names can run.
func (p Place) scratch(g Git, dir string) (Git, error) {
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = " + p.Repo.ObjectFormat + "\n"
	for name, text := range map[string]string{"config": config, "HEAD": "ref: refs/heads/none\n"} {
		if err := writeNew(filepath.Join(dir, name), text); err != nil {
			return g, err
		}
	}
	shared, err := filepath.Glob(escapeGlob(p.Repo.GitDir) + "/sharedindex.*")
	if err != nil {
		return g, err
	}
	for _, from := range append(shared, filepath.Join(p.Repo.CommonDir, shallowFile)) {
		if err := copyFile(from, filepath.Join(dir, filepath.Base(from))); err != nil && !isNotExist(err) {
			return g, err
		}
	}
	g.GitDir, g.WorkTree, g.Dir = dir, filepath.Join(dir, "empty"), filepath.Join(dir, "empty")
	g.Objects = filepath.Join(p.Repo.CommonDir, "objects")
	return g, nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// copyFile copies a regular file with its time of change: git compares that of
// an index with those of the files in it.
func copyFile(from, to string) error {
	in, err := openSolid(from)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() > indexMax {
		return fmt.Errorf("%s is not a regular file of less than %d bytes", show(from), indexMax)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, fi.Size()))
	return errors.Join(err, out.Close(), os.Chtimes(to, fi.ModTime(), fi.ModTime()))
}

// tip is the commit that the sandbox starts on; "" where there is none yet.
// apart says that the agent's branch and what is checked out have gone different
// ways.
func (p Place) tip(ctx context.Context, g Git) (tip string, apart bool, err error) {
	head := p.Repo.HeadID
	if p.Branch == p.Repo.Head {
		return head, false, nil
	}
	have, err := p.Repo.readRef(p.Branch)
	switch {
	case err != nil:
		return "", false, err
	case have == "":
		return head, false, nil
	case head == "" || !p.Own || have == head:
		return have, false, nil
	}
	// An error is a no: history that is not all there decides nothing.
	before := func(a, b string) bool {
		_, err := g.Output(ctx, "merge-base", "--is-ancestor", a, b)
		return err == nil
	}
	if before(have, head) {
		return head, false, nil
	}
	return have, !before(head, have), nil
}

// clashes refuses a branch that cannot be beside another one.
func clashes(list []ref, branch string) error {
	for _, r := range list {
		if strings.HasPrefix(branch, r.name+"/") || strings.HasPrefix(r.name, branch+"/") {
			return refuse("rename one of them, or choose another branch in lazaret.toml",
				"there cannot be a branch "+show(strings.TrimPrefix(branch, "refs/heads/"))+" beside "+show(strings.TrimPrefix(r.name, "refs/heads/")))
		}
	}
	return nil
}

// begin makes the branch on the host where the sandbox writes to the host's
// own refs: nothing else would.
func (s Shadow) begin(ctx context.Context, program string, p Place, tip string) error {
	if s.Mode != Writeback || p.Branch == "" || p.Branch == p.Repo.Head || tip == "" {
		return nil
	}
	have, err := p.Repo.readRef(p.Branch)
	if err != nil || have == tip {
		return err
	}
	if have == "" {
		have = p.Repo.Zero()
	}
	g := Git{Program: program, GitDir: p.Repo.GitDir, Env: []string{
		"GIT_COMMITTER_NAME=lazaret", "GIT_COMMITTER_EMAIL=lazaret@localhost",
	}}
	_, err = g.Output(ctx, "update-ref", "-m", "lazaret: start of a session", p.Branch, tip, have)
	return err
}

// hostIndex makes the sandbox's own index of the host's, moved to tip where the
// sandbox has a branch of its own: what the person has staged is for a commit of
// theirs, not for the agent's first. It stays in the files, and staged on the host.
func (p Place) hostIndex(ctx context.Context, g Git, to, tip string) error {
	if tip == "" && p.Branch != p.Repo.Head {
		return nil // without a commit, all that the host's has is what is staged
	}
	if err := copyFile(filepath.Join(p.Repo.GitDir, indexFile), to); err != nil && !isNotExist(err) {
		return err
	}
	if tip == p.Repo.HeadID && p.Branch == p.Repo.Head {
		return nil
	}
	g.Index = to
	was, _ := os.Stat(to)
	if _, err := g.Output(ctx, "read-tree", "--reset", tip); err != nil {
		return err
	}
	return retime(to, was)
}

// cover leaves tracked files that the sandbox does not see as they are out of
// every comparison, or the first "commit -a" would delete them.
func (p Place) cover(ctx context.Context, g Git, index string) error {
	was, err := os.Stat(index)
	if isNotExist(err) || p.N > 0 {
		return nil // a nested one's may be an agent's: git on the host reads none of it
	}
	g.Index = index
	var covered []byte
	if len(p.Covered) > 0 {
		if covered, err = g.Output(ctx, append([]string{"ls-files", "-z", "--"}, p.Covered...)...); err != nil {
			return err
		}
	}
	shared, _ := filepath.Glob(escapeGlob(g.GitDir) + "/sharedindex.*")
	if len(covered) == 0 && len(shared) == 0 {
		return nil
	}
	if len(covered) > 0 {
		if err := p.writeSparse(filepath.Join(filepath.Dir(index), sparseFile)); err != nil {
			return err
		}
	}
	if _, err := g.Feed(ctx, covered, "update-index", "--no-split-index", "--skip-worktree", "-z", "--stdin"); err != nil {
		return err
	}
	return retime(index, was)
}

// retime gives an index that was written anew its old time: a file that was
// changed at the same moment is compared by what is in it, not by its time.
func retime(path string, was fs.FileInfo) error {
	if was == nil {
		return nil
	}
	return os.Chtimes(path, was.ModTime(), was.ModTime())
}
