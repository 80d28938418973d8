package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// newStateCmd groups what works on persistent directories.
func newStateCmd(d *deps) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "state",
		Short: "See, compare, reset, move what profiles keep",
		Long: `State works on what the persistent directories of profiles hold: the changes to
their images' directories that outlive a sandbox. They lie in data_root, under
the profile's name, or under PROFILE@WORKSPACE with state = "workspace"; either
can be given. Only reset and import change anything.`,
		Example: "  lazaret state",
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.lock, "lock", "", "the lock `file` that names data_root, in place of lazaret.lock")
	f.BoolVar(&o.user, "user", false, "use your own lock although a parent directory has a config")
	cmd.AddCommand(newStateLsCmd(d, &o), newStateDuCmd(d, &o), newStateDiffCmd(d, &o), newStateResetCmd(d, &o), newStateExportCmd(d, &o), newStateImportCmd(d, &o))
	return cmd
}

// stateIn is where state commands work.
type stateIn struct {
	file *lock.File
	env  launch.Env
	root string
	cwd  string
}

func (d *deps) stateIn(o trustOptions) (stateIn, error) {
	l, err := d.openLock(o)
	if err != nil {
		return stateIn{}, err
	}
	env, err := d.launchEnv()
	if err != nil {
		return stateIn{}, err
	}
	root, err := launch.StateRoot(l.file, env)
	return stateIn{l.file, env, root, d.cwd}, err
}

// one finds the state of a profile, and of it the layers that dirs name: all
// where none is named.
func (s stateIn) one(name string, dirs []string) (launch.Kept, []string, error) {
	k, err := launch.OneKept(s.file, s.root, name, s.cwd)
	if err != nil {
		return k, nil, err
	}
	if len(k.Layers) == 0 && k.Commit == nil {
		return k, nil, hinted{fmt.Errorf("%s keeps nothing in %s", config.Show(name), config.Show(s.root)), `"lazaret state ls" lists what is kept`}
	}
	var names []string
	for _, n := range layerNames(k) {
		if len(dirs) == 0 || slices.Contains(dirs, k.Layers[n].Path) || slices.Contains(dirs, n) {
			names = append(names, n)
		}
	}
	if k.Commit != nil && len(dirs) == 0 {
		// A first set-up that was cut off while it was added.
		for _, n := range k.Commit.Names {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) == 0 {
		return k, nil, hinted{fmt.Errorf("%s does not keep %s", config.Show(name), config.Show(dirs[0])), `"lazaret state ls" lists what is kept`}
	}
	return k, names, nil
}

// layerNames are the names of layers, in the order of their paths.
func layerNames(k launch.Kept) []string {
	var names []string
	for n := range k.Layers {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if k.Layers[a].Path < k.Layers[b].Path {
			return -1
		}
		return 1
	})
	return names
}

// task prepares one for what is kept.
func (s stateIn) task(do string, k launch.Kept, names []string) launch.StateTask {
	id := launch.NewID()
	return launch.StateTask{Do: do, Place: k.Place, Names: names, Run: id, Driver: s.file.Storage.Overlay,
		Holder: overlay.Holder{Run: id, Workspace: s.cwd, Since: time.Now(), Doing: "lazaret state " + do + " " + k.Dir}}
}

// do has a task done. What its process says goes to the person. Where it fails,
// its answer is what it could find out all the same.
func (s stateIn) do(cmd *cobra.Command, t launch.StateTask, in, out *os.File) ([]byte, error) {
	_, _, stderr := files(cmd)
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	answer, err := launch.RunState(ctx, s.env, t, in, out, stderr)
	if err != nil && ctx.Err() != nil {
		return nil, unlessSignalled(ctx, err)
	}
	if err != nil && stderr != nil {
		return answer, &exitStatus{Status: exitError} // it has said why
	}
	return answer, err
}

// newStateTaskCmd is not for people: state commands start it in podman's
// namespace.
func newStateTaskCmd() *cobra.Command {
	return &cobra.Command{
		Use:    launch.StateCommand + " TASK",
		Short:  "Work on what profiles keep, in podman's namespace (started by state)",
		Hidden: true,
		Args:   words(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return launch.ServeState(cmd.Context(), args[0], os.Environ(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func newStateLsCmd(d *deps, o *trustOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List what is kept",
		Example: "  lazaret state ls\n  lazaret state ls --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			all, err := launch.AllKept(s.root)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(ascii{cmd.OutOrStdout()}).Encode(stateJSON(all))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "STATE\tDIRECTORY\tDRIVER\tIMAGE\tLAST USED")
			for _, k := range all {
				for _, n := range layerNames(k) {
					r := k.Layers[n]
					fmt.Fprintf(w, "%s\t%s\t%s\t%s %.12s\t%s\n", config.Show(k.Dir), config.Show(r.Path), config.Show(r.Driver), config.Show(r.Image.Ref), config.Show(trimDigest(r.Image.Config)), when(r.Used))
				}
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

type keptJSON struct {
	State  string                    `json:"state"`
	Layers map[string]overlay.Record `json:"layers"`
	Setup  *overlay.Setup            `json:"setup,omitempty"`
}

func stateJSON(all []launch.Kept) []keptJSON {
	out := []keptJSON{}
	for _, k := range all {
		out = append(out, keptJSON{k.Dir, k.Layers, k.Setup})
	}
	return out
}

func newStateDuCmd(d *deps, o *trustOptions) *cobra.Command {
	return &cobra.Command{
		Use:               "du [PROFILE]",
		Short:             "Say how much room it takes",
		Example:           "  lazaret state du",
		Args:              words(0, 1),
		ValidArgsFunction: d.completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			all, err := launch.AllKept(s.root)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				k, _, err := s.one(args[0], nil)
				if err != nil {
					return err
				}
				all = []launch.Kept{k}
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(w, "SIZE\tFILES\t  STATE")
			var errs []error
			for _, k := range all {
				usage, err := s.usage(cmd, k, layerNames(k))
				if stopped(err) {
					return err
				}
				errs = append(errs, err)
				for _, u := range usage {
					least := ""
					if u.Least {
						least = " (at least: some of it is too deep to be counted)"
					}
					fmt.Fprintf(w, "%s\t%d\t  %s %s%s\n", sizeText(u.Bytes), u.Files, config.Show(k.Dir), config.Show(k.Layers[u.Name].Path), least)
				}
			}
			return errors.Join(append([]error{w.Flush()}, errs...)...)
		},
	}
}

func (s stateIn) usage(cmd *cobra.Command, k launch.Kept, names []string) (out []overlay.Usage, err error) {
	answer, err := s.do(cmd, s.task("usage", k, names), nil, nil)
	if rerr := lines(answer, func(u overlay.Usage) { out = append(out, u) }); err == nil {
		err = rerr
	}
	return out, err
}

func trimDigest(id string) string {
	if len(id) > 7 && id[:7] == "sha256:" {
		return id[7:]
	}
	return id
}

// sizeText is a number of bytes as people say it.
func sizeText(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1024
	}
	return fmt.Sprintf("%.3g %ciB", f, units[i])
}
