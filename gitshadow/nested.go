package gitshadow

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of the search for nested repositories.
const (
	nestedTime = 3 * time.Second // then it ends, and says so
	nestedMost = 64
	// gVisor has no room for more than some 250 mounts in one sandbox, seen.
	nestedMounts = 190
	nestedDeep   = 64
)

// findNested finds the repositories below the working tree. The masks over
// their git directories are as necessary as the outermost: host programs look
// into every directory they pass. One that cannot be shown safely is there with
// Kind None, and masked all the same.
func (r *Repo) findNested(uid int) {
	deadline := time.Now().Add(nestedTime)
	var found []string
	level := []string{""}
	for depth := 0; len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			if depth > nestedDeep || len(found) >= nestedMost || time.Now().After(deadline) {
				r.Unseen = true
				level, next = nil, nil
				break
			}
			git, below := lookInto(filepath.Join(r.Workspace, dir))
			if git && dir != "" {
				found = append(found, dir)
			}
			for _, name := range below {
				next = append(next, filepath.Join(dir, name))
			}
		}
		level = next
	}
	slices.Sort(found)
	mounts, around, copied := 0, map[string]bool{}, int64(0)
	for _, path := range found {
		for dir := path; dir != "."; dir = filepath.Dir(dir) {
			if !around[dir] {
				around[dir] = true
				mounts++
			}
		}
		if mounts += 3; mounts > nestedMounts {
			r.Unseen = true
			return
		}
		n := r.nested(path, uid)
		if n.Kind != None {
			size := n.copied()
			if copied += size; size > copiedMost || copied > copiedAll {
				n = Repo{Workspace: n.Workspace, Path: path, GitFile: n.GitFile}
			}
		}
		r.Nested = append(r.Nested, n)
	}
}

// lookInto tells whether a directory has a .git that is no link, and lists the
// directories in it.
func lookInto(dir string) (git bool, below []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, nil
	}
	for _, e := range entries {
		switch {
		case e.Name() == ".git":
			git = e.Type().IsRegular() || e.IsDir()
		case e.IsDir():
			below = append(below, e.Name())
		}
	}
	return git, below
}

func (r *Repo) nested(path string, uid int) Repo {
	n := Repo{Workspace: filepath.Join(r.Workspace, path), Path: path}
	fi, err := os.Lstat(filepath.Join(n.Workspace, ".git"))
	if err == nil {
		n.GitFile = fi.Mode().IsRegular()
		err = n.locate(fi)
	}
	if err == nil && n.Kind != Dir && within(n.CommonDir, r.Workspace) && !r.masks(n.GitDir) {
		err = fs.ErrInvalid // nothing would keep its hooks from the agent
	}
	if err == nil {
		err = n.examine(uid)
	}
	if err != nil || n.RefFormat != "files" {
		return Repo{Workspace: n.Workspace, Path: path, GitFile: n.GitFile}
	}
	for _, parent := range r.around(path) {
		if rel, ok := strings.CutPrefix(n.GitDir, parent.GitDir+"/modules/"); ok && n.Kind == Submodule {
			n.Name = rel
		}
	}
	return n
}

// masks tells whether a directory lies in one of the git directories that a
// sandbox does not see.
func (r *Repo) masks(dir string) bool {
	for _, outer := range append([]Repo{*r}, r.Nested...) {
		if outer.Kind == Dir && within(dir, outer.GitDir) {
			return true
		}
	}
	return false
}

// around lists the repositories whose working trees contain path, outermost first.
func (r *Repo) around(path string) []Repo {
	out := []Repo{*r}
	for _, n := range r.Nested {
		if within(path, n.Path) {
			out = append(out, n)
		}
	}
	return out
}
