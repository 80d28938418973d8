package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/gitshadow"
	"lazaret/lock/config"
)

type mergeOptions struct {
	dryRun, held, list bool
	profile            string
}

func newMergeCmd(d *deps) *cobra.Command {
	var o mergeOptions
	cmd := &cobra.Command{
		Use:   "merge [flags] [PROFILE]",
		Short: "Take a sandbox's commits into the branch that is checked out",
		Long: `Merge takes what a sandbox committed into your branch: what it has on
lazaret/agent-PROFILE, and what it committed on your branch itself, which waits
for this. The sandbox worked in this directory, so its changes are in the files
already: your branch and the index move, and no file does. What you have changed
or staged yourself stays changed or staged. Where your branch has commits of its
own, a merge is made.

It does nothing where that would lose or stage anything of yours, or where both
sides have changed the same lines, and says why and what to do.

With --held it sets the other branches and tags that the sandbox made or moved,
which wait under refs/lazaret/held/. To forget one of them instead:
git update-ref -d refs/lazaret/held/….`,
		Example: `  lazaret merge --list
  lazaret merge --dry-run claude
  lazaret merge claude`,
		ValidArgsFunction: d.completeProfile,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage("one profile at a time")
			case o.held && o.list:
				return usage("--list changes nothing, --held does")
			case len(args) == 1:
				o.profile = args[0]
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := d.openMerge(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			switch {
			case o.list:
				return m.list(cmd.Context())
			case o.held:
				return m.apply(cmd.Context())
			}
			return m.adopt(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and do nothing")
	f.BoolVar(&o.held, "held", false, "set the branches and tags that wait for a yes")
	f.BoolVar(&o.list, "list", false, "list what there is to take in, and what waits for a yes")
	return cmd
}

// merge is one look at the repository that the workspace is.
type merge struct {
	*deps
	mergeOptions
	out, talk io.Writer
	program   string
	repo      gitshadow.Repo
	git       gitshadow.Git
	host      gitshadow.HostRefs
	branch    string // full name of what is checked out; "" for none
}

func (d *deps) openMerge(ctx context.Context, o mergeOptions, out, talk io.Writer) (*merge, error) {
	m := &merge{deps: d, mergeOptions: o, out: out, talk: talk}
	var err error
	if m.program, err = gitshadow.FindGit(d.env("PATH"), d.cwd); err != nil {
		return nil, err
	}
	if m.repo, err = gitshadow.Probe(d.cwd, os.Getuid()); err != nil {
		return nil, err
	}
	if k := m.repo.Kind; k == gitshadow.None || k == gitshadow.Above {
		return nil, hinted{errors.New("this directory is not the top of a git repository"), "change to the workspace that the sandbox was launched in"}
	}
	return m, m.look(ctx)
}

// look reads the refs as they are now.
func (m *merge) look(ctx context.Context) (err error) {
	if m.git, m.host, err = gitshadow.Host(ctx, m.program, m.repo); err != nil {
		return err
	}
	m.branch = m.repo.Head
	return nil
}

// sources lists what can be taken into the branch: the profiles' own branches
// and what they committed on this one. Those with nothing new are left out.
func (m *merge) sources(ctx context.Context) (out []source, err error) {
	add := func(s source) error {
		news, err := gitshadow.HasNews(ctx, m.git, m.host.Refs[s.ref], m.host.Refs[m.branch])
		if err == nil && news {
			out = append(out, s)
		}
		return err
	}
	for ref := range m.host.Refs {
		profile, ok := strings.CutPrefix(ref, gitshadow.OwnBranch(""))
		// Any other name is not of lazaret's making, and would be shown as a word of it.
		if !ok || !gitshadow.IsProfile(profile) || m.profile != "" && profile != m.profile || ref == m.branch {
			continue
		}
		if err := add(source{profile: profile, ref: ref}); err != nil {
			return nil, err
		}
	}
	for _, h := range gitshadow.HeldRefs(m.host, m.profile) {
		if h.Target == m.branch && m.branch != "" {
			if err := add(source{profile: h.Profile, ref: h.Kept, held: &h}); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b source) int { return strings.Compare(a.ref, b.ref) })
	return out, nil
}

// source is one ref that can be taken in.
type source struct {
	profile, ref string
	held         *gitshadow.Held
}

func (m *merge) adopt(ctx context.Context) error {
	all, err := m.sources(ctx)
	if err != nil {
		return err
	}
	var profiles []string
	for _, s := range all {
		if !slices.Contains(profiles, s.profile) {
			profiles = append(profiles, s.profile)
		}
	}
	switch {
	case len(all) == 0 && m.profile != "" && m.host.Refs[gitshadow.OwnBranch(m.profile)] == "":
		return hinted{fmt.Errorf("there are no commits of profile %s here", config.Show(m.profile)), "lazaret merge --list says what there is"}
	case len(all) == 0:
		fmt.Fprintln(m.talk, "lazaret: note: there is nothing that your branch does not have")
		return m.forget(ctx)
	case len(profiles) > 1:
		return hinted{fmt.Errorf("more than one profile has commits for you: %s", strings.Join(profiles, ", ")), "lazaret merge PROFILE, one after the other"}
	}
	if m.ownTree(profiles[0]) {
		return hinted{
			fmt.Errorf("profile %s has a working tree of its own: its changes are not in these files", profiles[0]),
			"git merge " + strings.TrimPrefix(all[0].ref, "refs/heads/"),
		}
	}
	for i, s := range all {
		if i > 0 {
			if m.dryRun {
				fmt.Fprintf(m.out, "then the same with %s\n", config.Show(s.ref))
				continue
			}
			if err := m.look(ctx); err != nil {
				return err
			}
		}
		if err := m.one(ctx, s); err != nil {
			return err
		}
	}
	return m.forget(ctx)
}

// forget lets go of what waited and is in the branch it waited for by now.
func (m *merge) forget(ctx context.Context) error {
	if m.dryRun {
		return nil
	}
	if err := m.look(ctx); err != nil {
		return err
	}
	for _, h := range gitshadow.HeldRefs(m.host, m.profile) {
		done, err := h.Settled(ctx, m.git)
		if err == nil && done {
			err = h.Drop(ctx, m.git)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) one(ctx context.Context, s source) error {
	a, err := gitshadow.PlanAdoption(ctx, m.program, m.repo, m.host, s.ref)
	var nothing *gitshadow.NothingError
	if errors.As(err, &nothing) {
		return nil // by what was taken in before it
	}
	if err != nil {
		return err
	}
	if !m.dryRun {
		who, err := gitshadow.Identity(ctx, m.person())
		if err != nil && a.Merge {
			return err
		}
		if err := a.Apply(ctx, m.program, who); err != nil {
			return err
		}
		if s.held != nil {
			if err := s.held.Drop(ctx, m.git); err != nil {
				return err
			}
		}
	}
	m.tell(a)
	return nil
}

// person is git with what says whose commits are made.
func (m *merge) person() gitshadow.Git {
	g := m.git
	g.Home, g.ConfigHome, g.Env = m.home, m.env("XDG_CONFIG_HOME"), nil
	for _, k := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		if v := m.env(k); v != "" {
			g.Env = append(g.Env, k+"="+v)
		}
	}
	return g
}

// commitsShown is how many commits are named.
const commitsShown = 30

func (m *merge) tell(a *gitshadow.Adoption) {
	how := "moved forward to"
	switch {
	case a.Merge && m.dryRun:
		how = "would be merged with"
	case a.Merge:
		how = "merged with"
	case m.dryRun:
		how = "would be moved forward to"
	}
	fmt.Fprintf(m.out, "%s %s %s: %s, %s\n", config.Show(strings.TrimPrefix(a.Branch, "refs/heads/")), how,
		config.Show(strings.TrimPrefix(a.Source, "refs/heads/")), plural(len(a.Commits), "commit"), plural(len(a.Changes), "path"))
	for i, c := range a.Commits {
		if i == commitsShown {
			fmt.Fprintf(m.out, "  and %d more\n", len(a.Commits)-i)
			break
		}
		fmt.Fprintf(m.out, "  %s\n", config.Show(c))
	}
	if len(a.Stale) > 0 {
		fmt.Fprintf(m.talk, "lazaret: note: %d files here are as they were before these commits, such as %s: \"git diff\" shows them changed back, \"git restore -- PATH\" takes the sandbox's\n",
			len(a.Stale), config.Show(a.Stale[0]))
	}
}

// ownTree tells whether the lock gives a profile a working tree of its own.
func (m *merge) ownTree(profile string) bool {
	path, shown, err := lockPath(m.deps, layerOptions{}, "")
	if err != nil {
		return false
	}
	f, _, err := readLock(path, shown)
	return err == nil && f.Profiles[profile].Git.Tree == "worktree"
}
