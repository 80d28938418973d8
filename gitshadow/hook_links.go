package gitshadow

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hooksMost is how many hooks are looked at: git knows about thirty.
const hooksMost = 1000

// linked finds the hooks in a directory that are links to files of the outermost
// workspace: whoever writes those writes the hook. A link in the workspace
// itself cannot be covered: hooks that go by way of one are refused.
func (r *Repo) linked(hooks, workspace string) (refused error) {
	dir, err := os.OpenFile(hooks, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(hooksMost)
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink {
			continue
		}
		to, loose := follow(hooks+"/"+e.Name(), r.kept(workspace))
		if loose != "" {
			rel, _ := filepath.Rel(workspace, loose)
			refused = refuse("make the hook a link to the file itself, or a file"+withoutGit,
				"the hook "+show(e.Name())+" is a link by way of "+show(rel)+" in the workspace: the agent could put a link there that leads to another program")
			continue
		}
		rel, err := filepath.Rel(workspace, to)
		if err != nil || !within(to, workspace) || r.masked(to, workspace) {
			continue
		}
		if fi, err := os.Lstat(to); err == nil && fi.Mode().IsRegular() {
			r.HookFiles = append(r.HookFiles, rel)
		} else {
			r.HookGone = append(r.HookGone, rel)
		}
	}
	return refused
}

// masked tells whether a path is in what a sandbox has something else for.
func (r *Repo) masked(path, workspace string) bool {
	return within(path, filepath.Join(workspace, ".git")) || within(path, filepath.Join(r.Workspace, ".git"))
}

// kept tells of a path whether a sandbox can put nothing else in its place. A
// directory on the way to what is covered is mounted on itself.
func (r *Repo) kept(workspace string) func(string) bool {
	hooks := filepath.Join(workspace, r.HooksPath)
	return func(path string) bool {
		return !within(path, workspace) || r.masked(path, workspace) ||
			within(r.Workspace, path) || within(hooks, path) || r.HooksPath != "" && within(path, hooks)
	}
}

// linksMost is how many links of a path are followed (path_resolution(7)).
const linksMost = 40

// follow goes along a path as the kernel does, and on where there is nothing: a
// sandbox could make it. Loose is the first that is not kept of what decides
// where the path leads: a link, or what ".." leads out of.
func follow(path string, kept func(string) bool) (to, loose string) {
	to = "/"
	rest, links := strings.Split(path, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		decides := to
		switch name {
		case "", ".":
			continue
		case "..":
			to = filepath.Dir(to)
		default:
			decides = filepath.Join(to, name)
			link, err := os.Readlink(decides)
			if err != nil {
				to = decides
				continue
			}
			if links++; links > linksMost {
				return decides, loose // nothing is there
			}
			if filepath.IsAbs(link) {
				to = "/"
			}
			rest = append(strings.Split(link, "/"), rest...)
		}
		if loose == "" && !kept(decides) {
			loose = decides
		}
	}
	return to, loose
}

// HookLinks lists the files in the workspace that hooks of any of its
// repositories are links to, and where such a link leads that there is none.
func (r *Repo) HookLinks() (files, gone []string) {
	for _, repo := range append([]Repo{*r}, r.Nested...) {
		files, gone = append(files, repo.HookFiles...), append(gone, repo.HookGone...)
	}
	slices.Sort(files)
	slices.Sort(gone)
	return slices.Compact(files), slices.Compact(gone)
}
