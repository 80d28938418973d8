package gitshadow

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lazaret/internal/proc"
)

// settings asks for what holds of some settings: one process for all of them.
// What is not set is not in the answer.
func (g Git) settings(ctx context.Context, keys ...string) (settings, error) {
	var quoted []string
	for _, key := range keys {
		quoted = append(quoted, regexp.QuoteMeta(strings.ToLower(key)))
	}
	out, err := g.Output(ctx, "config", "--includes", "-z", "--get-regexp", "^("+strings.Join(quoted, "|")+")$")
	if proc.ExitStatus(err) == 1 {
		return nil, nil // none is set
	}
	if err != nil {
		return nil, err
	}
	values := map[string][]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		values[key] = append(values[key], value)
	}
	found := settings{}
	for _, key := range keys {
		v := values[strings.ToLower(key)]
		for _, pin := range pins {
			if name, _, _ := strings.Cut(pin, "="); name == key && len(v) > 0 {
				v = v[:len(v)-1] // g's own comes last
			}
		}
		if len(v) > 0 {
			found[key] = v[len(v)-1]
		}
	}
	return found, nil
}

// hooksPath is where hooks are that the settings name; "" where they do not.
func (g Git) hooksPath(ctx context.Context) (string, error) {
	found, err := g.settings(ctx, hooksKey)
	return found[hooksKey], err
}

const hooksKey = "core.hooksPath"

// FindHooks finds where git looks for hooks in a workspace that the sandbox has
// without git, and in repositories nested in it: there too, git on the host
// would run what lies there. g needs the program and the person's home. Where
// some cannot be kept from the agent, all others are found all the same.
func (r *Repo) FindHooks(ctx context.Context, g Git) error {
	switch r.Kind {
	case None:
	case Above:
		return cmp.Or(r.hooksAbove(ctx, g), r.nestedHooks(ctx, g))
	default:
		g.GitDir = r.GitDir
		_, err := r.Settings(ctx, g)
		return err
	}
	return r.nestedHooks(ctx, g)
}

// hooksAbove finds those of the repository that the workspace is a directory of.
// It is asked from outside of the workspace, where no sandbox wrote anything.
func (r *Repo) hooksAbove(ctx context.Context, g Git) error {
	g.GitDir, g.Dir = "", filepath.Dir(r.Workspace)
	var top string
	hooks, err := g.hooksPath(ctx)
	if err == nil {
		top, err = g.Line(ctx, "rev-parse", "--show-toplevel")
	}
	if err != nil {
		return refuse("\"git config --list\" says what is wrong"+withoutGit, "asking git where hooks are: "+err.Error())
	}
	above := Repo{Workspace: top}
	if above.CommonDir, err = g.Line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return err
	}
	err = above.hooksIn(r.Workspace, hooks, g.Home)
	r.HooksPath, r.Hookless, r.HookFiles, r.HookGone = above.HooksPath, above.Hookless, above.HookFiles, above.HookGone
	return err
}

// nestedHooks finds the hooks of nested repositories: by the settings of each, or
// else by the person's. Git is not asked in them: a sandbox may have made them.
func (r *Repo) nestedHooks(ctx context.Context, g Git) (refused error) {
	if len(r.Nested) == 0 {
		return nil
	}
	g.GitDir = ""
	persons, err := g.hooksPath(ctx)
	if err != nil {
		return refuse("\"git config --global --list\" says what is wrong"+withoutGit, "asking git where hooks are: "+err.Error())
	}
	for i := range r.Nested {
		n := &r.Nested[i]
		hooks, left := []string{persons}, includesMost
		for _, path := range []string{filepath.Join(n.CommonDir, "config"), filepath.Join(n.GitDir, "config.worktree")} {
			if n.Kind == None || n.Kind == Above {
				break
			}
			own, sure := g.hooksSet(path, &left)
			if sure {
				hooks = nil
			}
			hooks = append(hooks, own...)
		}
		err := n.hooksAmong(r.Workspace, hooks, g.Home)
		if left < 0 {
			err = refuse("have core.hooksPath in its config itself"+withoutGit,
				"the config of the nested repository "+show(n.Path)+" includes more than a hundred files: where its hooks are cannot be said")
		}
		refused = cmp.Or(refused, err)
	}
	return refused
}

// includesMost is how many files of settings are read of one repository.
const includesMost = 100

// hooksSet gives what a config file, and all that it includes on whatever
// condition, has for where hooks are. It is sure where the file itself says so:
// nothing that was read before it holds then.
func (g Git) hooksSet(path string, left *int) (found []string, sure bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	s, err := readSettings(path)
	if err != nil {
		return nil, false
	}
	if own := s["core.hookspath"]; own != "" {
		found, sure = append(found, own), true
	}
	for key, value := range s {
		if !included(key) {
			continue
		}
		for to := range strings.SplitSeq(value, "\x00") {
			if strings.HasPrefix(to, "~/") && g.Home != "" {
				to = g.Home + "/" + to[2:]
			}
			if !filepath.IsAbs(to) {
				to = filepath.Dir(path) + "/" + to
			}
			more, _ := g.hooksSet(to, left)
			found = append(found, more...)
		}
	}
	return found, sure
}

// hooksAmong says where hooks are that are in one of several places. Only one of
// them may be one that the agent could write to: the others would stay open.
func (r *Repo) hooksAmong(workspace string, places []string, home string) (refused error) {
	var kept Repo
	for _, place := range slices.Compact(slices.Sorted(slices.Values(places))) {
		refused = cmp.Or(refused, r.hooksIn(workspace, place, home))
		if kept.HooksPath != "" && r.HooksPath != "" && kept.HooksPath != r.HooksPath {
			refused = refuse("have one core.hooksPath in its config, without a condition"+withoutGit,
				"by its settings, hooks of the nested repository "+show(r.Path)+" are in "+show(kept.HooksPath)+" or in "+show(r.HooksPath)+": only one of them can be kept from the agent")
		}
		files, gone := append(kept.HookFiles, r.HookFiles...), append(kept.HookGone, r.HookGone...)
		if r.HooksPath != "" {
			kept = *r
		}
		kept.HookFiles, kept.HookGone = files, gone
	}
	r.HooksPath, r.Hookless, r.HookFiles, r.HookGone = kept.HooksPath, kept.Hookless, kept.HookFiles, kept.HookGone
	return refused
}

// hooksIn says where in the outermost workspace a repository's hooks are, that a
// setting names, or where .git/hooks is a link to them. Hooks that cannot be
// kept from the agent are refused.
func (r *Repo) hooksIn(workspace, hooks, home string) error {
	r.HooksPath, r.Hookless, r.HookFiles, r.HookGone = "", nil, nil, nil
	if hooks == "" {
		if r.CommonDir == "" {
			return nil
		}
		hooks = r.CommonDir + "/hooks"
	}
	if strings.HasPrefix(hooks, "~/") && home != "" {
		hooks = home + "/" + hooks[2:]
	}
	if !filepath.IsAbs(hooks) {
		hooks = r.Workspace + "/" + hooks
	}
	path, loose := follow(hooks, r.kept(workspace))
	if loose != "" {
		rel, _ := filepath.Rel(workspace, loose)
		return refuse("put the hooks into a real directory, or unset core.hooksPath"+withoutGit,
			"git looks for hooks by way of "+show(rel)+" in the workspace: the agent could put a link there that leads to others")
	}
	rel, _ := filepath.Rel(workspace, path)
	switch {
	case !within(path, workspace), r.masked(path, workspace):
		return r.linked(path, workspace)
	case rel == ".":
		return refuse("put the hooks into a directory of their own, or unset core.hooksPath"+withoutGit,
			"git looks for hooks in the workspace itself: the agent could put hooks there")
	}
	r.HooksPath = rel
	if err := r.hookless(workspace); err != nil {
		r.HooksPath, r.Hookless = "", nil // no mount covers what is no directory
		return err
	}
	return r.linked(path, workspace)
}

// hookless finds what is missing on the way to the hooks.
func (r *Repo) hookless(workspace string) error {
	path := ""
	for part := range strings.SplitSeq(r.HooksPath, "/") {
		path = filepath.Join(path, part)
		fi, err := os.Lstat(filepath.Join(workspace, path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Hookless = append(r.Hookless, path)
		case err != nil:
			return err
		case !fi.IsDir():
			return refuse("put the hooks into a real directory, or unset core.hooksPath"+withoutGit,
				"git looks for hooks in "+show(r.HooksPath)+" in the workspace, and "+show(path)+" is no directory: the agent could put hooks there")
		}
	}
	return nil
}

// Hooks lists where in the workspace hooks of any of its repositories are, and
// the directories on the way to them that are not there, outermost first.
func (r *Repo) Hooks() (paths, missing []string) {
	for _, repo := range append([]Repo{*r}, r.Nested...) {
		if repo.HooksPath == "" || slices.Contains(paths, repo.HooksPath) {
			continue
		}
		paths = append(paths, repo.HooksPath)
		for _, m := range repo.Hookless {
			if !slices.Contains(missing, m) {
				missing = append(missing, m)
			}
		}
	}
	return paths, missing
}
