package launch

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/gitshadow"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

// findHooks finds where git looks for hooks in a workspace that the sandbox has
// without git; repo is what lies there.
func (h *Host) findHooks(repo gitshadow.Repo, e Env) {
	if repo.Kind == gitshadow.None && len(repo.Nested) == 0 {
		return // nobody commits there
	}
	program, err := gitshadow.FindGit(e.Getenv("PATH"), h.Workspace, h.DataRoot)
	if err != nil {
		h.Git.Unknown = errors.New("no git was found in PATH to ask where it looks for them")
		return
	}
	h.Git.Unknown = repo.FindHooks(context.Background(), gitshadow.Git{
		Program: program, Home: h.Home, ConfigHome: e.Getenv("XDG_CONFIG_HOME"),
	})
	take := func(to *gitshadow.Repo, from gitshadow.Repo) {
		to.HooksPath, to.Hookless, to.HookFiles, to.HookGone = from.HooksPath, from.Hookless, from.HookFiles, from.HookGone
	}
	take(&h.Git.Repo, repo)
	for i, n := range h.Git.Repo.Nested {
		for _, same := range repo.Nested {
			if same.Path == n.Path {
				take(&h.Git.Repo.Nested[i], same)
			}
		}
	}
}

// nestedMounts covers what a repository has at a deeper place: the .git of
// nested ones, and hooks that lie in the working tree. A mount does not keep the
// directories above it from being renamed, which would leave the bare thing
// under the old name: so each of them is mounted on itself.
func (r *resolver) nestedMounts() (out []podman.Mount) {
	taken, after := maps.Clone(r.profile.Mounts), map[string]string{}
	repo := r.Host.Git.Repo
	hooks, missing := repo.Hooks()
	itself := func(path string) {
		target := filepath.Join("/workspace", path)
		if _, ok := taken[target]; ok {
			return
		}
		taken[target] = lock.Mount{}
		var needs []string
		if s := after[path]; s != "" {
			needs = append(needs, s)
		}
		mode := "rw,z"
		// A nested repository can be where the hooks are, or lie among them.
		if slices.ContainsFunc(hooks, func(h string) bool { return within(path, h) }) {
			mode = "ro,z"
		}
		out = append(out, r.bindAfter(target, Source{Path: filepath.Join(r.Host.Workspace, path), Exists: true, Dir: true}, mode, needs...))
	}
	around := func(path string) {
		for i, c := range path {
			if c == '/' {
				itself(path[:i])
			}
		}
	}
	if r.treeDir() != "" {
		return nil // the workspace is not there
	}
	for _, n := range repo.Nested {
		around(n.Path + "/")
		if n.Kind == gitshadow.None || r.shadow == nil {
			target := filepath.Join("/workspace", n.Path, ".git")
			if n.GitFile {
				out = append(out, r.itself(target, 0))
			} else {
				out = append(out, podman.Mount{Kind: "tmpfs", Target: target, Size: "1m"})
			}
		}
	}
	// Where there are none yet, the agent must not make any.
	for _, path := range missing {
		r.makeMask(path, undoHooks)
		after[path] = "mask /workspace/" + path
	}
	for _, hooks := range hooks {
		around(hooks)
		itself(hooks)
	}
	for _, path := range r.hookLinks(hooks) {
		if _, there := taken[filepath.Join("/workspace", path)]; !there {
			around(path)
			out = append(out, r.itself(filepath.Join("/workspace", path), 0))
		}
	}
	return out
}

// volumesApart refuses a volume by which the agent could write to what is covered
// for git's sake below /workspace: the hooks, and nested repositories. The covers
// lie over a directory that is mounted at its own place, but not if it is one of
// them, or lies in one.
func (r *resolver) volumesApart() error {
	repo := r.Host.Git.Repo
	covered, _ := repo.Hooks()
	files, _ := repo.HookLinks()
	covered = append(covered, files...)
	for _, n := range repo.Nested {
		covered = append(covered, filepath.Join(n.Path, ".git"))
	}
	for _, target := range slices.Sorted(maps.Keys(r.profile.Mounts)) {
		m := r.profile.Mounts[target]
		if m.Kind != lock.KindBind || !strings.HasPrefix(m.Mode, "rw") {
			continue
		}
		source := r.Host.Sources[target].Path
		name, below := strings.CutPrefix(target+"/", "/workspace/")
		itself := below && source == filepath.Join(r.Host.Workspace, name)
		for _, path := range covered {
			if c := filepath.Join(r.Host.Workspace, path); within(source, c) || !itself && within(c, source) {
				return refuse("mount it read-only, or a narrower directory",
					"mounting %s at %s: the agent could write that way to %s, from which your git runs programs", config.Show(m.From), config.Show(target), config.Show(path))
			}
		}
	}
	return nil
}

// hookLinks lists the files that hooks are links to, which are to be read-only
// too. Those that are not there cannot be, which is said.
func (r *resolver) hookLinks(hooks []string) []string {
	files, gone := r.Host.Git.Repo.HookLinks()
	covered := func(path string) bool {
		return slices.ContainsFunc(hooks, func(h string) bool { return within(path, h) })
	}
	for _, path := range gone {
		if !covered(path) {
			r.notice("a hook is a link to " + config.Show(path) + ", where there is no file: the agent can make it, and your next commit runs it")
		}
	}
	return slices.DeleteFunc(files, covered)
}
