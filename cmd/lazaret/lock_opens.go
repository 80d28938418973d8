package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
)

// mayOpen refuses a --config FILE that lies outside of the workspace and that
// only a lock names which nobody here agreed to: a repository that was cloned
// would choose which of the person's files is read, and learn what it is by what
// is said of it. A link in the workspace leads there too; "lazaret lock" records
// no path with one, so that nobody can have agreed to what is behind it.
func (d *deps) mayOpen(file, path, shown string) error {
	if file == "" {
		return nil
	}
	if inWorkspace(file) {
		return nil // readOverride sees to it
	}
	if filepath.Dir(path) == filepath.Join(d.stateDir(), "locks") {
		return nil
	}
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	if r, err := store.Get(d.cwd, path); err == nil && r != nil {
		agreed, err := lock.Salvage([]byte(r.Text))
		if err == nil && agreed.Inputs.Override != nil && agreed.Inputs.Override.Path == file {
			return nil
		}
	}
	return hinted{
		fmt.Errorf("%s was made with --config %s, outside of the workspace, and you have not agreed to it here", config.Show(shown), config.Show(file)),
		`give --config again; after "lazaret trust" it takes part by itself`,
	}
}

// inWorkspace tells whether the file that a lock names is one of the workspace's.
func inWorkspace(file string) bool { return !filepath.IsAbs(file) && !strings.HasPrefix(file, "~/") }

// readOverride reads the --config FILE and says how a lock calls it. Where a lock
// names it as one of the workspace's, none is read that has a link on the way, also
// where that lock was agreed to: a sandbox may have made the link since, or make it
// now.
func (d *deps) readOverride(o layerOptions) (data []byte, recorded string, err error) {
	if o.namedBy == "" || !inWorkspace(o.config) {
		path, recorded, err := d.overridePath(o.config)
		if err != nil {
			return nil, "", err
		}
		data, err := config.ReadFile(path)
		return data, recorded, err
	}
	data, err = config.ReadBeneath(d.cwd, o.config)
	switch {
	case errors.Is(err, config.ErrLeads):
		return nil, "", hinted{
			fmt.Errorf("%s was made with --config %s, and now a link is on the way there", config.Show(o.namedBy), config.Show(o.config)),
			"remove the link, or give --config again",
		}
	case err != nil:
		return nil, "", err
	}
	_, recorded, err = d.overridePath(o.config)
	return data, recorded, err
}
