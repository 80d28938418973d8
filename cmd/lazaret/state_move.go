package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lazaret/launch"
	"lazaret/lock/config"
)

func newStateExportCmd(d *deps, o *trustOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "export PROFILE FILE",
		Short: "Write what is kept to a file",
		Long: `Export writes what a profile keeps in its persistent directories to a tar
archive, which must not be there yet. It holds logins and whatever else an agent
was given: it is readable for you only.`,
		Example:           "  lazaret state export claude claude.tar",
		Args:              words(2, 2),
		ValidArgsFunction: d.completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			k, names, err := s.one(args[0], nil)
			if err != nil {
				return err
			}
			return s.export(cmd, s.task("export", k, names), args[1])
		},
	}
}

// export writes to a file that has its name only when it is whole.
func (s stateIn) export(cmd *cobra.Command, t launch.StateTask, name string) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return hinted{fmt.Errorf("%s is there already", config.Show(name)), "choose another name"}
	}
	f, err := newUnnamed(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = s.do(cmd, t, nil, f.File); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.name(path); err != nil {
		return fmt.Errorf("naming %s: %w", config.Show(name), err)
	}
	fi, err := f.Stat()
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", config.Show(name), sizeText(fi.Size()))
	}
	return err
}

func newStateImportCmd(d *deps, o *trustOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import PROFILE FILE",
		Short: "Take in what was exported",
		Long: `Import fills a profile's persistent directories from an archive of "lazaret state
export". The profile must keep nothing yet. What is in the archive is what the
next sandbox runs: take in only what you trust. The first launch after it asks.`,
		Example:           "  lazaret state import claude claude.tar",
		Args:              words(2, 2),
		ValidArgsFunction: d.completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			k, err := launch.OneKept(s.file, s.root, args[0], s.cwd)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(args[1], os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
				return hinted{fmt.Errorf("%s is not a regular file", config.Show(args[1])), "name an archive that \"lazaret state export\" wrote"}
			}
			// Nobody has agreed to what is in it, also where the directory was used
			// before. Forgotten first: an import that is cut off asks as well.
			if store, err := d.trustStore(); err != nil {
				return err
			} else if len(k.Layers) == 0 {
				if err := store.ForgetUsers(filepath.Join(s.root, k.Dir)); err != nil {
					return err
				}
			}
			if _, err := s.do(cmd, s.task("import", k, nil), f, nil); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: imported\n", config.Show(k.Dir))
			return nil
		},
	}
	return cmd
}
