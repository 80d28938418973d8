package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lazaret/gitshadow/guard"
	"lazaret/launch"
	"lazaret/lock/config"
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

// notesMost is how many notes are told without --all.
const notesMost = 5

// tell writes a look for people, worst first.
func (l look) tell(w io.Writer, all bool) {
	list := guard.Collapse(l.found)
	notes, left := 0, 0
	for _, f := range list {
		if f.Severity == guard.Note && !all {
			if notes++; notes > notesMost {
				left++
				continue
			}
		}
		fmt.Fprintf(w, "%s: %s\n", f.Severity, l.line(f))
		fmt.Fprintf(w, "  %s\n", config.Show(f.Why))
	}
	if left > 0 {
		fmt.Fprintf(w, "and %s: lazaret guard --all\n", count(left, "note"))
	}
	for _, g := range l.now.Gaps {
		fmt.Fprintf(w, "incomplete: %s: %s\n", config.Show(l.path(g.Root, g.Path)), config.Show(g.Why))
	}
	switch {
	case len(list) > 0 || len(l.now.Gaps) > 0:
	case l.record == nil:
		fmt.Fprintln(w, "nothing here that this machine's tools would run or obey")
	default:
		fmt.Fprintf(w, "nothing new since %s that this machine's tools would run or obey\n", when(l.record.Since))
	}
}

// path shows where something is: below the workspace, else in full.
func (l look) path(root, path guard.Name) string {
	switch {
	case string(root) != l.ws:
		if path == "" {
			return string(root)
		}
		return string(root) + "/" + string(path)
	case path == "":
		return "."
	}
	return string(path)
}

// line says what was found in one line.
func (l look) line(f guard.Finding) string {
	s := config.Show(short(l.path(f.Root, f.Path)))
	switch {
	case f.Files > 1:
		s += fmt.Sprintf("/ (%s)", count(f.Files, "file"))
	case f.What != "":
		s += ": " + config.Show(short(string(f.What)))
	}
	switch f.State {
	case guard.Appeared:
		s += " (new)"
	case guard.Changed:
		s += " (changed)"
	}
	return kindWords[f.Kind] + " " + s
}

// short cuts what is too long for a line.
func short(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// kindWords say what a finding is before its name.
var kindWords = map[guard.Kind]string{
	guard.Repository: "repository", guard.GitConfig: "git setting in", guard.Hook: "git hook", guard.Program: "program",
	guard.Alternates: "borrowed objects", guard.Ref: "ref", guard.Todo: "rebase command in", guard.Lock: "git's lock file",
	guard.Submodules: "submodules in", guard.Attributes: "attributes in", guard.Link: "link", guard.Special: "special file",
	guard.Setuid: "setuid file", guard.Tool: "file", guard.Lazaret: "lazaret's", guard.Credentials: "credentials in",
}

// json writes a look for programs.
func (l look) json(w io.Writer) error {
	type found struct {
		guard.Finding
		Path string `json:"path"`
		Root string `json:"root"`
		What string `json:"what,omitempty"`
		Why  string `json:"why"`
	}
	type gap struct {
		Root string `json:"root"`
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	v := struct {
		Workspace string     `json:"workspace"`
		Since     *time.Time `json:"since,omitempty"`
		Complete  bool       `json:"complete"`
		Findings  []found    `json:"findings"`
		Gaps      []gap      `json:"gaps,omitempty"`
	}{Workspace: config.Show(l.ws), Complete: len(l.now.Gaps) == 0, Findings: []found{}}
	if l.record != nil {
		v.Since = &l.record.Since
	}
	for _, f := range l.found {
		v.Findings = append(v.Findings, found{f, config.Show(string(f.Path)), config.Show(string(f.Root)), config.Show(string(f.What)), config.Show(f.Why)})
	}
	for _, g := range l.now.Gaps {
		v.Gaps = append(v.Gaps, gap{config.Show(string(g.Root)), config.Show(string(g.Path)), config.Show(g.Why)})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// fixAll repairs what can be, asking for each, and looks again.
func (d *deps) fixAll(cmd *cobra.Command, l look, o guardOptions) (look, error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if d.live(ctx, d.cwd) {
		return look{}, hinted{errors.New("a sandbox of this workspace is running: it could put back what is taken away, while it is"), `end it first; "lazaret ps" lists what runs`}
	}
	list := guard.Collapse(l.found)
	list = slices.DeleteFunc(list, func(f guard.Finding) bool { return f.Severity == guard.Note || f.Repair == guard.NoRepair })
	guard.Order(list)
	if o.yes {
		// Where nothing is known of before, only the person knows what is theirs.
		n := len(list)
		list = slices.DeleteFunc(list, func(f guard.Finding) bool { return f.State == guard.Present && f.Repair == guard.Aside })
		if n > len(list) {
			fmt.Fprintln(out, "not known to be a sandbox's, so left as it is; without --yes you are asked for each")
		}
	}
	stdin, _, _ := files(cmd)
	ask := !o.yes
	if ask && len(list) > 0 && (stdin == nil || !term.IsTerminal(int(stdin.Fd()))) {
		return look{}, hinted{errors.New("nobody can be asked: standard input is not a terminal"), `"lazaret guard --fix --yes" does not ask`}
	}
	done := map[string]bool{}
	for _, f := range list {
		at := l.path(f.Root, f.Path)
		if done[at] {
			continue // two findings, one file
		}
		if ask {
			fmt.Fprintf(out, "%s: %s\n  %s\n", f.Severity, l.line(f), config.Show(f.Why))
			yes, err := confirm(stdin, out, repairWords[f.Repair])
			if err != nil {
				return look{}, err
			}
			if !yes {
				continue
			}
		}
		did, err := f.Do()
		if err != nil {
			fmt.Fprintf(out, "%s: left as it is: %s\n", config.Show(at), config.Show(err.Error()))
			continue
		}
		done[at] = true
		fmt.Fprintf(out, "%s: %s\n", config.Show(at), config.Show(did))
	}
	again := d.lookAt(ctx, l.record, names(l.now.Roots), o.all)
	again.tell(out, o.all)
	for _, f := range guard.Collapse(again.found) {
		if f.Severity > guard.Note && f.Repair == guard.NoRepair {
			fmt.Fprintln(out, `what is left is for you to settle; "lazaret guard --accept" says that it is yours`)
			break
		}
	}
	return again, nil
}

var repairWords = map[guard.Repair]string{
	guard.Aside: "Move it aside?",
	guard.Strip: "Take the setuid bits off?",
}

func names(in []guard.Name) (out []string) {
	for _, n := range in {
		out = append(out, string(n))
	}
	return out
}

// acceptAll makes what is there what was there before.
func (d *deps) acceptAll(cmd *cobra.Command, l look, o guardOptions) error {
	if !o.yes {
		stdin, _, _ := files(cmd)
		if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
			return hinted{errors.New("nobody can be asked: standard input is not a terminal"), `"lazaret guard --accept --yes" does not ask`}
		}
		switch ok, err := confirm(stdin, cmd.OutOrStdout(), "Is all of this yours?"); {
		case err != nil:
			return err
		case !ok:
			return &exitStatus{exitError, errNothingDone}
		}
	}
	store, err := d.guardStore()
	if err != nil {
		return err
	}
	r := guard.Record{Version: 1, Workspace: guard.Name(d.cwd)}
	if l.record != nil {
		r = *l.record
	}
	// What is accepted is what was shown, not what may be there by now.
	if err := store.Put(r.Accept(l.now)); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "yours from now on")
	return nil
}
