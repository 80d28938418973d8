package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"lazaret/gitshadow"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

// GitHost is what a launch knows of the workspace's repository.
type GitHost struct {
	Program string // git; "" where there is nothing to ask it
	Repo    gitshadow.Repo
	Person  gitshadow.Person
	// Unknown is why hooks that lie in the workspace are not kept from a sandbox
	// that has no git.
	Unknown error
}

// gitStores is where the git directories of runs lie, below data_root.
const gitStores = ".lazaret/git"

// probeGit looks at the workspace's repository.
func (h *Host) probeGit(mode string, e Env) error {
	if mode == "none" {
		// What is there is covered, whatever it is.
		h.Git.Repo = gitshadow.ProbeNested(h.Workspace, h.UID)
		repo, err := gitshadow.Probe(h.Workspace, h.UID)
		if err != nil {
			h.Git.Unknown = err
			return nil
		}
		h.findHooks(repo, e)
		return nil
	}
	var err error
	if h.Git.Repo, err = probeRepo(h.Workspace, h.UID); err != nil {
		return err
	}
	if k := h.Git.Repo.Kind; k == gitshadow.None || k == gitshadow.Above {
		h.findHooks(h.Git.Repo, e)
		return nil
	}
	if h.Git.Program, err = gitshadow.FindGit(e.Getenv("PATH"), h.Workspace, h.DataRoot); err != nil {
		return err
	}
	g := gitshadow.Git{
		Program: h.Git.Program, GitDir: h.Git.Repo.GitDir, Home: h.Home, ConfigHome: e.Getenv("XDG_CONFIG_HOME"),
	}
	h.Git.Person, err = h.Git.Repo.Settings(context.Background(), g)
	return gitRefusal(err)
}

func probeRepo(workspace string, uid int) (gitshadow.Repo, error) {
	repo, err := gitshadow.Probe(workspace, uid)
	return repo, gitRefusal(err)
}

// gitRefusal gives what looking at a repository came to the form that launch's
// own refusals have.
func gitRefusal(err error) error {
	var re *gitshadow.RefusedError
	if errors.As(err, &re) {
		return refuse(re.Do, "git in the workspace: %s", re.What)
	}
	if err != nil {
		return fmt.Errorf("looking at git in the workspace: %w", err)
	}
	return nil
}

// checkGitReach refuses a writable mount that leads past what covers the
// repositories' directories.
func (h Host) checkGitReach(needs lock.Needs) error {
	var dirs []string
	for _, r := range append([]gitshadow.Repo{h.Git.Repo}, h.Git.Repo.Nested...) {
		if r.Path != "" {
			dirs = append(dirs, filepath.Join(r.Workspace, ".git"))
		}
		if r.Kind != gitshadow.None && r.Kind != gitshadow.Above {
			dirs = append(dirs, r.GitDir, r.CommonDir)
		}
	}
	for _, n := range needs.Paths {
		s, ok := h.Sources[n.Target]
		name, itself := strings.CutPrefix(n.Target+"/", "/workspace/")
		if !ok || !n.Writable || itself && s.Path == filepath.Join(h.Workspace, name) {
			continue
		}
		for _, dir := range dirs {
			if touch(s.Path, dir) {
				return refuse("mount it read-only, or a narrower directory",
					"mounting %s at %s: it leads to %s, whose hooks and config no sandbox may write", config.Show(n.Source), config.Show(n.Target), config.Show(dir))
			}
		}
	}
	return nil
}

// gitSources adds where the repository's directories lead to those of the
// mounts, so that a change of them is asked about.
func gitSources(sources map[string]Source, repo gitshadow.Repo) {
	for target, path := range repo.Sources() {
		sources[target] = Source{Path: path, Exists: true, Dir: true}
	}
}

// git plans what the sandbox has of the repository. Services that bring home
// what it writes are added after it: they find the store in r.shadow.
func (r *resolver) git() error {
	g, repo := r.profile.Git, r.Host.Git.Repo
	if r.Host.Git.Unknown != nil {
		r.notice("hooks of git's that lie in the workspace can be written by the sandbox: " + r.Host.Git.Unknown.Error())
	}
	if g.Mode == "none" {
		return nil
	}
	if repo.Kind == gitshadow.Above {
		r.notice("the workspace is a directory of a larger repository, which the sandbox does not have: no git inside; work at its top to have it")
	}
	if repo.Unseen {
		r.notice("there are too many directories, or repositories in them, to cover the git directory of each: the agent can write to those of some")
	}
	if repo.Kind == gitshadow.None || repo.Kind == gitshadow.Above {
		return nil
	}
	size, err := bytesOf(r.profile.Mounts["/workspace/.git"].Size)
	if err != nil {
		return err
	}
	s, err := gitshadow.Plan(repo, gitshadow.Wish{
		Profile: r.Record.Profile, Mode: g.Mode, Branch: g.Branch, Size: size, Covered: r.covered(), Tree: r.treeDir(), Points: r.masks(),
	}, filepath.Join(r.Host.DataRoot, gitStores, r.Record.ID), filepath.Join(r.dir, mountsDir, "git"))
	if err != nil {
		return gitRefusal(err)
	}
	r.shadow = &s
	if r.Host.Git.Person.Signs {
		r.notice("commits in the sandbox are not signed: your keys are not there")
	}
	if r.Host.Git.Person.Name == "" || r.Host.Git.Person.Email == "" {
		r.notice("git does not know your name and address (user.name, user.email): the agent must set its own before it can commit")
	}
	r.step(step.Step{
		Name: "git.store", Op: GitStore{Program: r.Host.Git.Program, DataRoot: r.Host.DataRoot, Shadow: s, voice: r.voice()},
		Undo: []step.Undo{{Kind: undoGitStore, Base: baseData, Name: filepath.Join(gitStores, r.Record.ID)}},
	})
	r.step(step.Step{Name: "git.shadow", Where: step.Podman, Needs: []string{"helper", "git.store"}, Op: GitShadow{s}})
	r.brokers(s)
	return nil
}

// covered lists the paths of the workspace at which the sandbox sees something
// else than what is there.
func (r *resolver) covered() (out []string) {
	for target, m := range r.profile.Mounts {
		name, below := strings.CutPrefix(target, "/workspace/")
		if below && name != ".git" && !r.leftOut(target) && (m.Kind != lock.KindBind || !strings.HasPrefix(m.Mode, "rw") || m.From != "{workspace_dir}/"+name) {
			out = append(out, name)
		}
	}
	return out
}

// masks lists the directories of the workspace that are masked.
func (r *resolver) masks() (out []string) {
	for target, m := range r.profile.Mounts {
		if name, below := strings.CutPrefix(target, "/workspace/"); below && m.Kind == lock.KindTmpfs {
			out = append(out, name)
		}
	}
	return out
}

// gitMount is what is at /workspace/.git where the sandbox has no git.
func (r *resolver) gitMount(target, size string) []podman.Mount {
	mode, there := r.Host.Masked[target]
	switch {
	case r.shadow != nil:
		return nil // one of gitMounts
	case !there || mode.IsDir():
		return []podman.Mount{r.mask(target, size)}
	}
	return []podman.Mount{r.itself(target, mode)}
}

// gitMounts is what the sandbox has of the repositories in the workspace.
func (r *resolver) gitMounts() (out []podman.Mount) {
	if r.shadow == nil {
		return nil
	}
	// A file system monitor's socket lies in the host's git directory. It is
	// told of with the workspace's.
	r.hideBelow("", filepath.Join(r.dir, mountsDir, "git"), nil, "git.shadow")
	for _, m := range r.shadow.Mounts() {
		p := podman.Mount{Kind: "bind", Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
		if r.Host.SELinux {
			p.Relabel = "z"
		}
		out = append(out, p)
	}
	return out
}

// bytesOf reads a size as podman takes it.
func bytesOf(size string) (int64, error) {
	var n int64
	var unit string
	if _, err := fmt.Sscanf(size, "%d%s", &n, &unit); err != nil && unit != "" || n <= 0 {
		return 0, fmt.Errorf("reading the size %q of git's directory", size)
	}
	shift, ok := map[string]int{"": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(unit)]
	if !ok {
		return 0, fmt.Errorf("reading the size %q of git's directory", size)
	}
	return n << shift, nil
}

// GitStore makes what the sandbox's git directories are filled with, and the
// store that it writes to.
type GitStore struct {
	Program  string
	DataRoot string
	Shadow   gitshadow.Shadow

	voice *gitVoice
}

// Do makes it.
func (o GitStore) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	if err := closedDir(o.DataRoot, gitStores); err != nil {
		return nil, err
	}
	if o.Shadow.Tree != "" {
		if err := o.voice.claim(o.DataRoot, o.Shadow.Tree); err != nil {
			return nil, err
		}
	}
	notes, err := o.Shadow.Prepare(ctx, gitshadow.Git{Program: o.Program})
	for _, n := range notes {
		o.voice.say(n)
	}
	return nil, refusal(err)
}

// Show tells what is made.
func (o GitStore) Show() []string {
	lines := []string{"mkdir " + shown(o.Shadow.Dir)}
	if o.Shadow.Tree != "" {
		lines = append(lines, "a working tree of its own in "+shown(o.Shadow.Tree))
	}
	for _, p := range o.Shadow.Places {
		on := p.Branch
		if on == "" {
			on = p.Repo.HeadID
		}
		lines = append(lines, shown("refs", "and", "index", "of", p.Repo.GitDir)+", on "+shown(on))
	}
	return lines
}

// GitShadow makes the sandbox's git directories, in the helper's mount
// namespace.
type GitShadow struct{ Shadow gitshadow.Shadow }

// Do makes them.
func (o GitShadow) Do(context.Context, step.Values) (step.Values, error) {
	return nil, refusal(o.Shadow.Fill())
}

// Show gives the commands that would do much of the same.
func (o GitShadow) Show() []string {
	lines := []string{"mount -t tmpfs " + shown("lazaret-git", o.Shadow.At)}
	for _, p := range o.Shadow.Places {
		from := o.Shadow.Store(p)
		if o.Shadow.Mode == gitshadow.Writeback {
			from = p.Repo.CommonDir
		}
		for _, name := range []string{"objects", "refs", "logs"} {
			lines = append(lines, "mount --rbind "+shown(filepath.Join(from, name), filepath.Join(o.Shadow.Live(p), name)))
		}
	}
	return lines
}

// refusal gives git's refusals the form that launch's have.
func refusal(err error) error {
	var re *gitshadow.RefusedError
	if errors.As(err, &re) {
		return &RefusedError{err.Error(), re.Do}
	}
	return err
}
