package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/lock"
	"lazaret/lock/config"
)

type diffOptions struct {
	json     bool
	markdown bool
	exitCode bool
}

func newDiffCmd(d *deps) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff [flags] [OLD [NEW]]",
		Short: "Say in plain words how two locks differ in what they grant",
		Long: `Diff compares what two locks grant and prints the difference in plain words,
grouped by profile, the riskiest first. What grants something of this machine
beyond what every sandbox has is marked "!". Digests are shortened; --json has
every value whole.

OLD and NEW are lock files or git revisions: HEAD~3, main, or main:sub/dir/lazaret.lock
for a lock elsewhere in the repository. OLD is HEAD where none is given, and NEW
is the lock that is here. It changes nothing, and exits 0 unless --exit-code is given.`,
		Example: `  lazaret diff
  lazaret diff main
  lazaret diff HEAD~3 HEAD
  lazaret diff --markdown origin/main`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return usage("diff compares two locks, not %d", len(args))
			case o.json && o.markdown:
				return usage("--json and --markdown are two forms of the same answer")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDiff(cmd.Context(), d, o, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON, with every value whole")
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown, for a comment on a pull request")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit 3 if anything differs")
	return cmd
}

func runDiff(ctx context.Context, d *deps, o diffOptions, args []string, out, talk io.Writer) error {
	older, newer := "HEAD:", ""
	if len(args) > 0 {
		older = args[0]
	}
	if len(args) > 1 {
		newer = args[1]
	}
	was, err := d.someLock(ctx, older, talk)
	if err != nil {
		return err
	}
	is, err := d.someLock(ctx, newer, talk)
	if err != nil {
		return err
	}
	list := lock.Diff(was, is)
	switch {
	case o.json:
		if list == nil {
			list = []lock.Change{}
		}
		enc := json.NewEncoder(ascii{out})
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(list)
	case o.markdown:
		_, err = io.WriteString(out, lock.Markdown(list))
	case len(list) == 0:
		fmt.Fprintln(talk, "lazaret: note: nothing differs")
	default:
		_, err = io.WriteString(out, d.lines(out, lock.Text(list)))
	}
	if err == nil && o.exitCode && len(list) > 0 {
		err = &exitStatus{Status: exitStale}
	}
	return err
}

// someLock reads the lock that an argument of diff names; "" is the one that
// is here. One that was not there yet in a revision is nil.
func (d *deps) someLock(ctx context.Context, arg string, talk io.Writer) (*lock.File, error) {
	if arg == "" {
		path, shown, err := lockPath(d, layerOptions{}, "")
		if err != nil {
			return nil, err
		}
		f, _, err := readLock(path, shown)
		return f, err
	}
	path := arg
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.cwd, path)
	}
	file := false
	if fi, err := os.Lstat(path); err == nil {
		file = !fi.IsDir()
	}
	if file && !strings.ContainsAny(arg, "/.") {
		// What lies in the workspace may have been put there for this moment.
		if _, err := d.git(ctx, "rev-parse", "--quiet", "--verify", arg+"^{commit}"); err == nil {
			return nil, hinted{
				fmt.Errorf("%s is both a file here and a revision", config.Show(arg)),
				fmt.Sprintf("write ./%s for the file, %s: for the revision", config.Show(arg), config.Show(arg)),
			}
		}
	}
	if file {
		f, _, err := readLock(path, arg)
		return f, err
	}
	if strings.HasSuffix(arg, ".lock") && !strings.Contains(arg, ":") {
		return nil, missing{arg}
	}
	data, spec, err := d.lockAt(ctx, arg)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(talk, "lazaret: note: there is no %s\n", config.Show(spec))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := lock.Parse(data)
	if err != nil {
		// An older version of the schema, or a hand's work: it can be compared
		// with as long as its values can be read.
		if f, serr := lock.Salvage(data); serr == nil {
			fmt.Fprintf(talk, "lazaret: warning: %s: %s; its values are compared all the same\n", config.Show(spec), onScreen(err.Error()))
			return f, nil
		}
		return nil, fmt.Errorf("%s: %w", config.Show(spec), err)
	}
	return f, nil
}
