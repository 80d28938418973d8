package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lazaret/launch/trust"
	"lazaret/lock"
	"lazaret/lock/config"
)

type trustOptions struct {
	lock   string
	user   bool
	yes    bool
	config bool
}

func (o *trustOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.lock, "lock", "", "the lock `file`, in place of lazaret.lock")
	cmd.Flags().BoolVar(&o.user, "user", false, "your own lock although a parent directory has a config")
}

func newTrustCmd(d *deps) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "trust [flags]",
		Short: "Agree to what lazaret.lock grants here, so that it is launched",
		Long: `Trust shows what lazaret.lock grants, or how it differs from what you agreed to
before, and asks. Whoever can write to the repository, the agent too, can write
to the lock: launch obeys it only after you agreed to just this content, for
just this directory, with its mounts leading where they lead now. It asks by
itself on a terminal; elsewhere it fails until "lazaret trust" was run.

Where lazaret.toml changed or appeared while a sandbox ran, the agent may have
written it, and "lazaret lock" wants to know that it is yours: --config says so.

Your answer is kept in ~/.local/state/lazaret/trust (XDG_STATE_HOME), and
nothing else changes. Where nobody can answer, --yes agrees to what is shown,
and LAZARET_TRUST=sha256:… in the environment of a launch allows one content:
"lazaret trust show" prints it.`,
		Example: `  lazaret trust
  lazaret trust --yes
  lazaret trust --lock other.lock`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTrust(cmd, d, o) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.config, "config", false, "agree that lazaret.toml is yours, after it changed while a sandbox ran")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "show what is agreed to, and do not ask")
	cmd.AddCommand(newTrustShowCmd(d), newTrustRevokeCmd(d), newTrustListCmd(d), newTrustHelperCmd(d))
	return cmd
}

// openLock reads the lock that is to be agreed to.
func (d *deps) openLock(o trustOptions) (lockFile, error) {
	path, shown, err := lockPath(d, layerOptions{user: o.user}, o.lock)
	if err != nil {
		return lockFile{}, err
	}
	file, data, err := readLock(path, shown)
	if errors.Is(err, fs.ErrNotExist) && o.lock == "" && !d.configured() {
		err = hinted{
			fmt.Errorf("there is neither a %s nor a lock here", lock.WorkspacePath),
			d.toBegin(`run "lazaret init" to write a ` + lock.WorkspacePath + `, then "lazaret lock"`),
		}
	}
	return lockFile{path, shown, o.lock, file, data}, err
}

// configured reports whether there is something to lock: a config here, or the
// person's own.
func (d *deps) configured() bool {
	user := d.userConfig()
	return exists(filepath.Join(d.cwd, lock.WorkspacePath)) || user != "" && exists(user)
}

// onlyProfile is the profile that need not be named: the only one of the lock.
func (l lockFile) onlyProfile() (string, error) {
	names := profileNames(l.file)
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", hinted{
			fmt.Errorf("%s has no profile", config.Show(l.shown)),
			"add [profiles.NAME] to " + lock.WorkspacePath + `, then run "lazaret lock"`,
		}
	}
	return "", &exitStatus{exitUsage, hinted{
		fmt.Errorf("which profile? %s has %s", config.Show(l.shown), strings.Join(names, ", ")),
		"name one of them, such as " + names[0],
	}}
}

func runTrust(cmd *cobra.Command, d *deps, o trustOptions) error {
	if o.config {
		err := d.askConfig(cmd, o.yes)
		var changed *changedConfig
		if errors.As(err, &changed) {
			return hinted{changed, `look at it, then "lazaret trust --config --yes" says that it is yours`}
		}
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: yours\n", lock.WorkspacePath)
		}
		return err
	}
	l, err := d.openLock(o)
	if err != nil {
		return err
	}
	in, err := d.inquireAll(l)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if in.empty() {
		fmt.Fprintf(out, "%s: you agreed to it already\n", config.Show(l.shown))
		return nil
	}
	if o.yes {
		in.tell(out, d)
	} else if err := in.ask(cmd, d); err != nil {
		return err
	}
	if err := in.record(d); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: agreed to for %s\n", config.Show(l.shown), config.Show(d.tilde(d.cwd)))
	return nil
}

func newTrustShowCmd(d *deps) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "show [flags]",
		Short: "Show all that lazaret.lock grants, and whether you agreed to it",
		Long: `Show prints the digest of lazaret.lock, whether you agreed to it here, all that
it grants, and what differs from what you agreed to. It changes nothing.`,
		Example: `  lazaret trust show`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := d.openLock(o)
			if err != nil {
				return err
			}
			in, err := d.inquireAll(l)
			if err != nil {
				return err
			}
			return showTrust(cmd.OutOrStdout(), d, in)
		},
	}
	o.flags(cmd)
	return cmd
}

func showTrust(out io.Writer, d *deps, in inquiry) error {
	verdict := "you have not agreed to it here"
	switch {
	case in.empty():
		verdict = "you agreed to it on " + when(in.since)
	case !in.First:
		verdict = "not what you agreed to on " + when(in.since)
	}
	fmt.Fprintf(out, "%s  %s\n%s\n\n", trust.Digest(in.lock.data), config.Show(in.lock.shown), verdict)
	if !in.First && len(in.Changes) > 0 {
		fmt.Fprintf(out, "what differs from what you agreed to\n\n%s\nall of it\n\n", d.lines(out, lock.Text(in.Changes)))
	}
	io.WriteString(out, d.lines(out, lock.Text(lock.Grants(in.lock.file))))
	in.tellHost(out, d)
	return nil
}

func newTrustRevokeCmd(d *deps) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "revoke [flags]",
		Short: "Take back what you agreed to here",
		Long: `Revoke forgets every lock that you agreed to in the current directory, or with
--all everywhere, and every helper program of another lazaret: the next launch
asks again. Sandboxes that run go on.`,
		Example: `  lazaret trust revoke
  lazaret trust revoke --all`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := d.trustStore()
			if err != nil {
				return err
			}
			where := d.cwd
			if all {
				where = ""
			}
			locks, err := store.Revoke(where)
			for _, l := range locks {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: taken back\n", config.Show(d.tilde(l)))
			}
			helpers, herr := store.RevokeHelpers(where)
			for _, h := range helpers {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: taken back\n", config.Show(h))
			}
			err = errors.Join(err, herr)
			if err == nil && len(locks)+len(helpers) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "lazaret: note: there was nothing to take back")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everywhere, not only here")
	return cmd
}

func newTrustListCmd(d *deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the locks that you agreed to",
		Long: `List prints every lock that you agreed to on this machine, and every helper
program of another lazaret. It changes nothing, and does not look whether the locks are still what they were.`,
		Example: `  lazaret trust list`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := d.trustStore()
			if err != nil {
				return err
			}
			list, unreadable, err := store.List()
			if err != nil {
				return err
			}
			helpers, more, err := store.Helpers()
			if err != nil {
				return err
			}
			if unreadable += more; unreadable > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: warning: %s cannot be read and counts for nothing\n", count(unreadable, "record"))
			}
			return listTrust(cmd.OutOrStdout(), d, list, helpers, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func listTrust(out io.Writer, d *deps, list []trust.Record, helpers []trust.Helper, asJSON bool) error {
	if asJSON {
		type entry struct {
			Workspace string    `json:"workspace"`
			Lock      string    `json:"lock,omitempty"`
			Helper    bool      `json:"helper,omitempty"` // the digest is a helper program's
			Digest    string    `json:"digest"`
			Since     time.Time `json:"since"`
		}
		entries := make([]entry, 0, len(list))
		for _, r := range list {
			entries = append(entries, entry{r.Workspace, r.Lock, false, r.Digest, r.Since})
		}
		for _, h := range helpers {
			entries = append(entries, entry{h.Workspace, "", true, h.Digest, h.Since})
		}
		return json.NewEncoder(ascii{out}).Encode(entries)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKSPACE\tLOCK\tCONTENT\tSINCE")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%.19s\t%s\n", config.Show(d.tilde(r.Workspace)), config.Show(d.tilde(r.Lock)), r.Digest, when(r.Since))
	}
	for _, h := range helpers {
		fmt.Fprintf(w, "%s\t%s\t%.19s\t%s\n", config.Show(d.tilde(h.Workspace)), "(a helper program)", config.Show(h.Digest), when(h.Since))
	}
	return w.Flush()
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// trustStore is where the records of trust lie.
func (d *deps) trustStore() (trust.Store, error) {
	if d.stateDir() == "" {
		return trust.Store{}, noHome("records of trust")
	}
	if !utf8.ValidString(d.cwd) {
		return trust.Store{}, hinted{fmt.Errorf("the path of this directory, %s, is not UTF-8, so no yes to it can be recorded", config.Show(d.tilde(d.cwd))), "rename it"}
	}
	return trust.NewStore(d.stateDir() + "/trust"), nil
}

// profileNames lists a lock's profiles, sorted.
func profileNames(f *lock.File) []string { return slices.Sorted(maps.Keys(f.Profiles)) }
