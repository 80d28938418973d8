package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lazaret/gitshadow/guard"
	"lazaret/launch"
)

type guardOptions struct {
	fix, accept, yes bool
	all, asJSON      bool
	profiles         []string
	lock             string
	user             bool
}

func newGuardCmd(d *deps) *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:   "guard [flags]",
		Short: "Find what a sandbox left that this machine's tools would run",
		Long: `Guard looks at the current directory, and at the volumes that the last sandbox
could write to, for what git, editors, shells and build tools of this machine
would run or obey: repositories and hooks that were not there before the
sandbox, links that lead out, setuid files, tasks, settings and the like. It
follows no link and runs nothing. Without a sandbox before it tells of
everything there is.

It exits 0 where there is nothing but notes, 4 where something was found or not
everything could be looked at. A launch does the same at its end.

--fix renames what was found to NAME` + guard.AsideSuffix + ` and takes setuid bits off,
asking for each; it removes nothing, and is refused while a sandbox runs here. --accept says that what is there is yours,
and is not told again.`,
		Example: `  lazaret guard
  lazaret guard --fix
  lazaret guard --accept
  lazaret guard --all --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGuard(cmd, d, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.fix, "fix", false, "put out of the way what can be")
	f.BoolVar(&o.accept, "accept", false, "what is there is mine: tell of it no more")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	f.BoolVar(&o.all, "all", false, "tell of everything, also of what was there before")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	f.StringArrayVar(&o.profiles, "profile", nil, "look at the volumes of this `profile` too (repeatable)")
	f.StringVar(&o.lock, "lock", "", "the lock `file` that has the profiles, in place of lazaret.lock")
	f.BoolVar(&o.user, "user", false, "use your own lock although a parent directory has a config")
	cmd.MarkFlagsMutuallyExclusive("fix", "accept")
	cmd.MarkFlagsMutuallyExclusive("fix", "json")
	cmd.MarkFlagsMutuallyExclusive("accept", "json")
	return cmd
}

func runGuard(cmd *cobra.Command, d *deps, o guardOptions) error {
	ctx := cmd.Context()
	look, err := d.look(ctx, o)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case o.asJSON:
		if err := look.json(out); err != nil {
			return err
		}
		return look.status()
	case o.fix:
		if look, err = d.fixAll(cmd, look, o); err != nil {
			return err
		}
		return look.status()
	}
	look.tell(out, o.all)
	if o.accept {
		return d.acceptAll(cmd, look, o)
	}
	return look.status()
}

// look is one look at a workspace.
type look struct {
	ws     string
	record *guard.Record // what was there before; nil: nothing is known
	now    guard.Snapshot
	found  []guard.Finding
}

// guardStore is where the records of what was there lie.
func (d *deps) guardStore() (guard.Store, error) {
	if d.stateDir() == "" {
		return guard.Store{}, hinted{errors.New("there is no home directory to keep records of the workspace in"), "set HOME"}
	}
	return guard.Store{Dir: d.stateDir() + "/guard"}, nil
}

// look looks at the workspace, and at what else the last sandboxes had.
func (d *deps) look(ctx context.Context, o guardOptions) (look, error) {
	store, err := d.guardStore()
	if err != nil {
		return look{}, err
	}
	l := look{ws: d.cwd}
	if l.record, err = store.Get(d.cwd); err != nil {
		return look{}, err
	}
	roots := []string{d.cwd}
	if l.record != nil {
		for _, r := range l.record.Base.Roots {
			if _, err := os.Lstat(string(r)); err == nil {
				roots = append(roots, string(r))
			}
		}
	}
	more, err := d.guardVolumes(o)
	if err != nil {
		return look{}, err
	}
	roots = append(roots, more...)
	slices.Sort(roots)
	return d.lookAt(ctx, l.record, slices.Compact(roots), o.all), nil
}

// lookAt looks at roots and compares. What was told before and is not settled
// is told again.
func (d *deps) lookAt(ctx context.Context, r *guard.Record, roots []string, all bool) look {
	l := look{ws: d.cwd, record: r, now: guard.Scan(ctx, guard.Options{Roots: roots, Now: time.Now()})}
	var base *guard.Snapshot
	if r != nil && !all {
		base = &r.Base
	}
	l.found = guard.Compare(base, l.now)
	return l
}

// guardVolumes are the writable volumes of the profiles that were asked for.
func (d *deps) guardVolumes(o guardOptions) (out []string, err error) {
	if len(o.profiles) == 0 {
		return nil, nil
	}
	locked, err := d.openLock(trustOptions{lock: o.lock, user: o.user})
	if err != nil {
		return nil, err
	}
	env, err := d.launchEnv()
	if err != nil {
		return nil, err
	}
	for _, p := range o.profiles {
		roots, err := launch.WritableOf(locked.file, p, env)
		if err != nil {
			return nil, err
		}
		out = append(out, roots...)
	}
	return out, nil
}

// status is the exit status of a look.
func (l look) status() error {
	if len(l.now.Gaps) > 0 || slices.ContainsFunc(l.found, func(f guard.Finding) bool { return f.Severity > guard.Note }) {
		return &exitStatus{Status: exitFindings}
	}
	return nil
}
