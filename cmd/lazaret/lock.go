package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/image"
	"lazaret/lock"
	"lazaret/lock/config"
)

// lockOptions are the flags of lock. A nil pointer is a flag that was not
// given: what the lock says that is there is then asked again.
type lockOptions struct {
	check     bool
	update    bool
	profiles  []string // with update: only these
	user      *bool
	config    *string
	platforms []string // nil: not given
	lock      string
	verbose   bool
}

func newLockCmd(d *deps) *cobra.Command {
	var (
		o        lockOptions
		user     bool
		override string
	)
	cmd := &cobra.Command{
		Use:   "lock [flags] [PROFILE...]",
		Short: "Pin every image and write down what each sandbox may touch",
		Long: `Lock reads lazaret.toml, resolves every image to its digests and writes
lazaret.lock, which says all that a sandbox may touch. Pins whose reference did
not change are kept; --update moves them, of the named profiles or of all.
Nothing else on disk changes, and a lock that is up to date is not touched.

Where there is no lazaret.toml, your own ~/.config/lazaret/config.toml is used
and the lock is kept among your records, so that nothing is added to the
workspace. Flags that are not given are taken from the lock that is there:
--config= and --user=false take them back.

With --check nothing is written and no registry is asked: the command lists
what is out of date, and why, and exits with status 3.`,
		Example: `  lazaret lock
  lazaret lock --check
  lazaret lock --update claude`,
		ValidArgsFunction: d.completeProfiles,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && !o.update:
				return usage("profiles are named with --update only: everything is always locked")
			case o.check && o.update:
				return usage("--check changes nothing, so it does not go with --update")
			}
			for _, p := range o.platforms {
				if !slices.Contains(lock.Platforms(), p) {
					return usage("--platform %s: lazaret knows %s", config.Show(p), strings.Join(lock.Platforms(), " and "))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.profiles = args
			if cmd.Flags().Changed("user") {
				o.user = &user
			}
			if cmd.Flags().Changed("config") {
				o.config = &override
			}
			// It lives too briefly for collecting garbage to be worth while.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			if !o.check {
				if err := d.askConfig(cmd, false); err != nil {
					return err
				}
			}
			return runLock(cmd.Context(), d, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.check, "check", false, "change nothing, list what is out of date, exit 3 if anything is")
	f.BoolVar(&o.update, "update", false, "move the pins of the named profiles, or of all")
	f.BoolVar(&user, "user", false, "let your own config take part although the workspace has one")
	f.StringVar(&override, "config", "", "a further config `file`, above all others")
	f.StringArrayVar(&o.platforms, "platform", nil, "lock for this `platform` only; may be repeated")
	f.StringVar(&o.lock, "lock", "", "the lock `file`, in place of lazaret.lock")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also say which allowed ranges lie inside denied ones")
	return cmd
}

// runLock locks, or checks. Results go to out, remarks to talk.
func runLock(ctx context.Context, d *deps, o lockOptions, out, talk io.Writer) error {
	given := layerOptions{user: o.user != nil && *o.user}
	path, shown, err := lockPath(d, given, o.lock)
	if err != nil {
		return err
	}
	old, stale, err := oldLock(path, shown)
	if err != nil {
		return err
	}
	platforms, layered := o.question(old, talk, shown)
	if o.config == nil {
		layered.namedBy = shown
		if err := d.mayOpen(layered.config, path, shown); err != nil {
			return err
		}
	}
	layers, inputs, err := loadLayers(d, layered)
	if err != nil {
		return err
	}
	inputs.Platforms = platforms
	tellLayers(d, talk, inputs, shown)
	cfg, err := config.Load(layers)
	if err != nil {
		return err
	}
	helpers, err := ownHelpers()
	if err != nil {
		return err
	}
	bar := d.newProgress(talk)
	req := lock.Request{
		Config:    cfg,
		Inputs:    inputs,
		Helpers:   helpers,
		Resolver:  image.NewResolver(image.Options{Keychain: image.NewKeychain(d.environ, d.home, d.cwd), Dir: d.cwd, Progress: bar.image}),
		Previous:  old,
		UpdateAll: o.update && len(o.profiles) == 0,
		Update:    o.profiles,
		Resolved:  bar.resolved,
	}
	if o.check {
		list, warnings, err := differences(ctx, req, old, stale)
		bar.clear()
		if err != nil {
			return err
		}
		tellWarnings(talk, warnings)
		return tellStale(out, shown, list)
	}
	file, warnings, err := lock.Build(ctx, req)
	bar.clear()
	if err != nil {
		return err
	}
	tellWarnings(talk, warnings)
	if o.verbose {
		tellExceptions(talk, file)
	}
	if stale != nil && !errors.Is(stale, fs.ErrNotExist) {
		fmt.Fprintf(talk, "lazaret: note: %v: it is made anew\n", stale)
	}
	if o.lock == "" { // a personal lock's directory may be missing
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("making a place for the lock: %w", err)
		}
	}
	write := lock.Write
	if d.live(ctx, d.cwd) {
		write = lock.WriteInPlace
	}
	changed, err := write(path, file.Format())
	if err != nil {
		return err
	}
	if !changed {
		fmt.Fprintf(out, "%s: up to date\n", config.Show(shown))
		return nil
	}
	fmt.Fprintf(out, "%s: %s for %s\n", config.Show(shown), count(len(file.Profiles), "profile"), strings.Join(inputs.Platforms, ", "))
	tellPins(out, old, file)
	if errors.Is(stale, fs.ErrNotExist) && terminalOf(talk) != nil {
		fmt.Fprintln(talk, "next: commit it, and run \"lazaret launch\", which shows what it grants and asks")
	}
	return nil
}

// differences lists how the lock that is there is not what it should be.
func differences(ctx context.Context, req lock.Request, old *lock.File, stale error) (list []string, warnings []lock.Warning, err error) {
	if stale != nil {
		list = append(list, stale.Error())
	}
	if old == nil {
		return list, nil, nil
	}
	found, warnings, err := lock.Check(ctx, req, old)
	for _, d := range found {
		list = append(list, d.String())
	}
	return list, warnings, err
}

// oldLock reads the lock that is there. What makes it no lock to launch from
// is stale; old is what it can still be used for, or nil. A lock made by a
// newer lazaret, or something that is no file, is an error: it is not ours to
// replace.
func oldLock(path, shown string) (old *lock.File, stale, err error) {
	data, err := config.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing{shown}, nil
	case errors.Is(err, config.ErrTooLarge):
		return nil, fmt.Errorf("%s: %w", config.Show(shown), config.ErrTooLarge), nil
	case err != nil:
		return nil, nil, err
	}
	if old, err = lock.Parse(data); err == nil {
		return old, nil, nil
	}
	stale = fmt.Errorf("%s: %w", config.Show(shown), err)
	var pe *lock.ParseError
	if errors.As(err, &pe) && pe.Newer {
		return nil, nil, stale
	}
	old, err = lock.Salvage(data)
	if err != nil {
		old = nil
	}
	return old, stale, nil
}

// missing is a lock that is not there.
type missing struct{ shown string }

func (m missing) Error() string        { return "there is no " + config.Show(m.shown) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// question is which platforms and layers the lock is for: what the flags say,
// and where they say nothing what the lock that is there says.
func (o lockOptions) question(old *lock.File, talk io.Writer, shown string) ([]string, layerOptions) {
	platforms := lock.Platforms()
	var layered layerOptions
	if old != nil {
		platforms = old.Inputs.Platforms
		layered.user = old.Inputs.User != nil && old.Inputs.Workspace != nil
		if old.Inputs.Override != nil {
			layered.config = old.Inputs.Override.Path
		}
	}
	if o.platforms != nil {
		platforms = slices.Compact(slices.Sorted(slices.Values(o.platforms)))
	}
	if o.user != nil {
		layered.user = *o.user
	} else if layered.user {
		fmt.Fprintf(talk, "lazaret: note: %s was made with --user, so your own config takes part again\n", config.Show(shown))
	}
	if o.config != nil {
		layered.config = *o.config
	} else if layered.config != "" {
		fmt.Fprintf(talk, "lazaret: note: %s was made with --config %s, which takes part again\n", config.Show(shown), config.Show(layered.config))
	}
	return platforms, layered
}

func ownHelpers() (lock.Helpers, error) {
	sidecars, clients, err := image.Helpers()
	return lock.Helpers{Sidecar: sidecars, Escalate: clients}, err
}
