package gitshadow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func refuse(do, what string) error { return &RefusedError{what, do} }

// withoutGit is the way out of any refusal.
const withoutGit = `, or set git = "none" in lazaret.toml`

// Probe looks at the repository of a working tree, which is absolute and has no
// symlinks in it, for the person with that uid. It runs nothing and believes
// nothing: whoever made the directory wrote every file of it. What it cannot
// vouch for is a *RefusedError.
func Probe(workspace string, uid int) (Repo, error) {
	r := Repo{Workspace: workspace}
	fi, err := os.Lstat(filepath.Join(workspace, ".git"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if isGitDir(workspace) {
			return r, refuse("work in a working tree of it: \"git worktree add\" makes one"+withoutGit,
				"the workspace is itself a git directory: the agent could write its hooks and config")
		}
		r.findNested(uid)
		return above(r), nil
	case err != nil:
		return r, err
	}
	if entries, err := os.ReadDir(filepath.Join(workspace, ".git")); fi.IsDir() && err == nil && len(entries) == 0 {
		r.findNested(uid)
		return above(r), nil // an empty directory is what a mask of another sandbox needs
	}
	if err := r.locate(fi); err != nil {
		return r, err
	}
	if r.Kind != Dir && within(r.CommonDir, workspace) {
		return r, refuse("work in another working tree of it"+withoutGit,
			"the repository lies in the workspace, at "+show(r.CommonDir)+": the agent could write its hooks and config")
	}
	if err := r.examine(uid); err != nil {
		return r, err
	}
	r.findNested(uid)
	return r, nil
}

// ProbeNested finds what is nested in a workspace whose own repository is not
// looked at.
func ProbeNested(workspace string, uid int) Repo {
	r := Repo{Workspace: workspace}
	r.findNested(uid)
	return r
}

// above finds the repository that a directory without .git lies in.
func above(r Repo) Repo {
	for dir := filepath.Dir(r.Workspace); ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(filepath.Join(dir, ".git"))
		empty := err == nil && len(entries) == 0 // a mask's, which git passes by
		if exists(filepath.Join(dir, ".git")) && !empty {
			r.Kind = Above
			r.Prefix, _ = filepath.Rel(dir, r.Workspace)
			return r
		}
		if dir == "/" {
			return r
		}
	}
}

// isGitDir tells whether git would take a directory for a repository, and each
// part of it is what it should be.
func isGitDir(dir string) bool {
	fi, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil && fi.Mode().IsRegular() && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
}

// locate finds the git directory and the common directory. A .git that leads
// elsewhere is followed only where git's own links lead back: else a file of 30
// bytes in a downloaded directory names somebody's repository, and the sandbox
// is given that.
func (r *Repo) locate(fi fs.FileInfo) error {
	dotGit := filepath.Join(r.Workspace, ".git")
	switch {
	case fi.IsDir():
		r.Kind, r.GitDir, r.CommonDir = Dir, dotGit, dotGit
		if exists(filepath.Join(dotGit, "commondir")) {
			return refuse("remove .git/commondir if it is a mistake"+withoutGit,
				show(dotGit)+" says that its objects and refs are elsewhere, which no git makes")
		}
		return nil
	case !fi.Mode().IsRegular():
		return refuse("replace it with the real directory"+withoutGit, show(dotGit)+" is neither a directory nor a file")
	}
	text, err := readFile(dotGit, smallFile)
	if err != nil {
		return err
	}
	path, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return refuse("remove it"+withoutGit, show(dotGit)+" is not a file of git's")
	}
	to, err := real(r.Workspace, strings.TrimRight(path, "\r\n"))
	if err != nil {
		return refuse("\"git worktree repair\" in the main working tree mends it"+withoutGit,
			show(dotGit)+" leads to no git directory: "+show(strings.TrimRight(path, "\r\n")))
	}
	r.GitDir = to
	if common, err := readFile(filepath.Join(to, "commondir"), smallFile); err == nil {
		r.Kind = Worktree
		if r.CommonDir, err = real(to, strings.TrimRight(common, "\r\n")); err != nil {
			return refuse("\"git worktree repair\" mends it"+withoutGit, "the working tree's repository is gone: "+show(strings.TrimSpace(common)))
		}
	} else {
		r.Kind, r.CommonDir = Submodule, to
	}
	if !r.linkedBack() {
		return refuse("\"git worktree repair\", or \"git submodule absorbgitdirs\", makes it right if it is yours"+withoutGit,
			show(dotGit)+" leads to "+show(r.GitDir)+", which does not say that this is its working tree")
	}
	return nil
}

// linkedBack tells whether the git directory names this working tree as its own.
func (r *Repo) linkedBack() bool {
	if r.Kind == Worktree {
		text, err := readFile(filepath.Join(r.GitDir, "gitdir"), smallFile)
		if err != nil || filepath.Dir(r.GitDir) != filepath.Join(r.CommonDir, "worktrees") {
			return false
		}
		to, err := real(r.GitDir, strings.TrimRight(text, "\r\n"))
		return err == nil && to == filepath.Join(r.Workspace, ".git")
	}
	s, err := readSettings(filepath.Join(r.GitDir, "config"))
	if err != nil || s["core.worktree"] == "" {
		return false
	}
	to, err := real(r.GitDir, s["core.worktree"])
	return err == nil && to == r.Workspace
}

func readSettings(path string) (settings, error) {
	text, err := readFile(path, smallFile)
	if err != nil {
		return nil, err
	}
	return parseConfig(text)
}

// solid are the parts of a common directory that the sandbox gets, by kind. A
// link among them would be followed by the kernel when it is mounted.
var solid = []struct {
	name string
	dir  bool
	must bool
}{
	{"HEAD", false, true}, {"config", false, true}, {"objects", true, true}, {"refs", true, true},
	{"logs", true, false}, {"packed-refs", false, false}, {"objects/info", true, false}, {"objects/pack", true, false},
}

// examine reads what the repository is.
func (r *Repo) examine(uid int) error {
	for _, dir := range []string{r.GitDir, r.CommonDir} {
		fi, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if owner := int(fi.Sys().(*syscall.Stat_t).Uid); owner != uid {
			return refuse("git itself refuses to work there; \"chown -R\" makes it yours"+withoutGit, show(dir)+" belongs to somebody else")
		}
	}
	for _, part := range solid {
		fi, err := os.Lstat(filepath.Join(r.CommonDir, part.name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && !part.must:
		case err != nil:
			return refuse("remove .git if it is none"+withoutGit, show(r.CommonDir)+" is not a git repository: it has no "+part.name)
		case fi.IsDir() != part.dir || !fi.IsDir() && !fi.Mode().IsRegular():
			return refuse("replace it with what it stands for"+withoutGit, show(filepath.Join(r.CommonDir, part.name))+" is a link or something else that is not git's")
		}
	}
	if err := r.readConfig(); err != nil {
		return err
	}
	if r.RefFormat == "files" {
		if err := r.readHead(); err != nil {
			return err
		}
	}
	r.Shallow = exists(filepath.Join(r.CommonDir, "shallow"))
	if fi, err := os.Lstat(filepath.Join(r.CommonDir, "logs/HEAD")); err == nil {
		r.HeadLog = fi.Mode().IsRegular()
	}
	r.LFS = isDir(filepath.Join(r.CommonDir, "lfs"))
	if err := r.followed(); err != nil {
		return err
	}
	var err error
	r.Alternates, err = alternates(filepath.Join(r.CommonDir, "objects"))
	return err
}

func (r *Repo) readConfig() error {
	config := filepath.Join(r.CommonDir, "config")
	s, err := readSettings(config)
	if err != nil {
		return refuse("\"git config --list\" says what git makes of it"+withoutGit, "reading "+show(config)+": "+err.Error())
	}
	r.ObjectFormat, r.RefFormat = "sha1", "files"
	if v := s["extensions.objectformat"]; v != "" {
		r.ObjectFormat = v
	}
	if v := s["extensions.refstorage"]; v != "" {
		r.RefFormat = v
	}
	for key := range s {
		if strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") && s.on(key) {
			r.Partial = true
		}
	}
	r.WorktreeConfig = s.on("extensions.worktreeconfig")
	r.Sparse = s.on("core.sparsecheckout")
	worktree := s["core.worktree"]
	if r.WorktreeConfig {
		own, err := readSettings(filepath.Join(r.GitDir, "config.worktree"))
		switch {
		case err == nil:
			r.Sparse = r.Sparse || own.on("core.sparsecheckout")
			if v, ok := own["core.worktree"]; ok {
				worktree = v
			}
		case !errors.Is(err, fs.ErrNotExist):
			return refuse("\"git config --worktree --list\" says what git makes of it"+withoutGit, "reading "+show(r.GitDir)+"/config.worktree: "+err.Error())
		}
	}
	// Of a linked working tree git does not ask.
	if worktree == "" || r.Kind == Worktree {
		return nil
	}
	to, err := real(r.GitDir, worktree)
	if err != nil || to != r.Workspace {
		return refuse("\"git config --unset core.worktree\" if it is a mistake"+withoutGit,
			show(config)+" says that the working tree is elsewhere: core.worktree = "+show(worktree))
	}
	if r.Kind == Dir && filepath.IsAbs(worktree) {
		return refuse("\"git config --unset core.worktree\": without it, git takes the directory around .git",
			show(config)+" has core.worktree with an absolute path, which is another one in the sandbox")
	}
	return nil
}

// alternatesDepth is how deep git follows alternates of alternates.
const alternatesDepth = 5

// alternates lists the object directories that one borrows from.
func alternates(objects string) (out []string, err error) {
	seen := map[string]bool{objects: true}
	level := []string{objects}
	for range alternatesDepth {
		var next []string
		for _, dir := range level {
			text, err := readFile(filepath.Join(dir, "info", "alternates"), smallFile)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, refuse("look at it"+withoutGit, show(dir)+"/info/alternates: "+err.Error())
			}
			for line := range strings.Lines(text) {
				line = strings.TrimRight(line, "\r\n")
				if line == "" || line[0] == '#' {
					continue
				}
				to, err := real(dir, line)
				if err != nil || !isDir(to) {
					return nil, refuse("\"git fsck\" says what is missing"+withoutGit,
						show(dir)+" borrows objects from a directory that is not there: "+show(line))
				}
				if !seen[to] {
					seen[to] = true
					out, next = append(out, to), append(next, to)
				}
			}
		}
		level = next
	}
	return out, nil
}
