package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
)

// layerOptions say which config layers take part.
type layerOptions struct {
	user   bool   // the person's own layer joins a workspace's too
	config string // the override, as given on the command line or in a lock; "" for none
	// namedBy is the lock that names config, as it is shown; "": the person did.
	namedBy string
}

// exists reports whether something is at path, whatever it is.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isPersonal reports whether the workspace has no config of its own, so that
// its lock is kept among the person's records. A config in a parent directory
// is an error: the person is most likely in the wrong place.
func isPersonal(d *deps, o layerOptions) (bool, error) {
	if exists(filepath.Join(d.cwd, lock.WorkspacePath)) {
		return false, nil
	}
	for dir := filepath.Dir(d.cwd); !o.user; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, lock.WorkspacePath)) {
			return false, hinted{
				fmt.Errorf("there is no %s here, but %s has one", lock.WorkspacePath, config.Show(d.tilde(dir))),
				`change to that directory, or give --user to use your own config here`,
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return true, nil
}

// loadLayers reads the layers that take part, lowest precedence first, and
// says which they are. Inputs.Platforms is left to the caller.
func loadLayers(d *deps, o layerOptions) ([]config.Layer, lock.Inputs, error) {
	personal, err := isPersonal(d, o)
	if err != nil {
		return nil, lock.Inputs{}, err
	}
	var (
		layers []config.Layer
		in     lock.Inputs
	)
	add := func(kind config.Kind, name string, data []byte, recorded string, into **lock.Input) error {
		l := config.Layer{Kind: kind, Name: name, Data: data}
		canonical, err := l.Canonical()
		if err != nil {
			return err
		}
		layers = append(layers, l)
		*into = &lock.Input{Path: recorded, SHA256: fmt.Sprintf("%x", sha256.Sum256(canonical))}
		return nil
	}
	if path := d.userConfig(); path != "" && exists(path) && (personal || o.user) {
		// The person's own file may be a link to where they keep such files.
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, lock.Inputs{}, fmt.Errorf("reading %s: %w", d.tilde(path), err)
		}
		data, err := config.ReadFile(real)
		if err == nil {
			err = add(config.User, d.tilde(path), data, lock.UserPath, &in.User)
		}
		if err != nil {
			return nil, lock.Inputs{}, err
		}
	}
	if !personal {
		data, err := config.ReadFile(filepath.Join(d.cwd, lock.WorkspacePath))
		if err == nil {
			err = add(config.Workspace, lock.WorkspacePath, data, lock.WorkspacePath, &in.Workspace)
		}
		if err != nil {
			return nil, lock.Inputs{}, err
		}
	}
	if o.config != "" {
		data, recorded, err := d.readOverride(o)
		if err == nil {
			err = add(config.Override, o.config, data, recorded, &in.Override)
		}
		if err != nil {
			return nil, lock.Inputs{}, err
		}
	}
	if len(layers) == 0 {
		return nil, lock.Inputs{}, hinted{
			fmt.Errorf("there is no %s here and no %s", lock.WorkspacePath, d.tilde(d.userConfig())),
			d.toBegin(`run "lazaret init", which writes a lazaret.toml`),
		}
	}
	return layers, in, nil
}

// overridePath finds the --config file, and how the lock calls it so that it
// is found on other machines too: relative to the workspace where it lies in
// it, else below ~, else as the absolute path that was given.
func (d *deps) overridePath(given string) (path, recorded string, err error) {
	path = given
	if rest, ok := strings.CutPrefix(given, "~/"); ok && d.home != "" {
		path = filepath.Join(d.home, rest)
	} else if !filepath.IsAbs(given) {
		path = filepath.Join(d.cwd, given)
	}
	path = filepath.Clean(path)
	real := path
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		real = filepath.Join(dir, filepath.Base(path))
	}
	if rel, err := filepath.Rel(d.cwd, real); err == nil && filepath.IsLocal(rel) {
		if lock.KeptBack(rel) {
			return "", "", hinted{
				fmt.Errorf("--config %s is one of what no sandbox sees, and would be shown to it", config.Show(given)),
				"put the file elsewhere in the workspace, or outside of it",
			}
		}
		return path, rel, nil
	}
	if short := d.tilde(path); strings.HasPrefix(short, "~/") {
		return path, short, nil
	}
	if filepath.IsAbs(given) {
		return path, path, nil
	}
	return "", "", hinted{
		fmt.Errorf("--config %s lies outside the workspace and your home directory", config.Show(given)),
		"give its absolute path: the lock names the file, and others must find it",
	}
}

// lockPath is where the lock of this workspace lies: --lock FILE, or
// lazaret.lock, or for a workspace without a config of its own a file among
// the person's records. It also says how to show the path.
func lockPath(d *deps, o layerOptions, given string) (path, shown string, err error) {
	if given != "" {
		if filepath.IsAbs(given) {
			return filepath.Clean(given), given, nil
		}
		return filepath.Join(d.cwd, given), given, nil
	}
	personal, err := isPersonal(d, o)
	if err != nil {
		return "", "", err
	}
	if !personal {
		return filepath.Join(d.cwd, "lazaret.lock"), "lazaret.lock", nil
	}
	if d.stateDir() == "" {
		return "", "", noHome("a personal lock")
	}
	path = filepath.Join(d.stateDir(), "locks", lockName(d.cwd))
	return path, d.tilde(path), nil
}

// lockName names the personal lock of a workspace so that a person recognises
// it and no two workspaces share it.
func lockName(workspace string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(workspace))
	sum := sha256.Sum256([]byte(workspace))
	return fmt.Sprintf("%.40s-%x.lock", name, sum[:8])
}

// readLock reads a lock that may be launched from, once: what is asked about
// and what is used are the bytes it returns. A missing one is fs.ErrNotExist.
func readLock(path, shown string) (*lock.File, []byte, error) {
	data, err := config.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, hinted{missing{shown}, `run "lazaret lock", which makes it`}
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := lock.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", config.Show(shown), err)
	}
	return f, data, nil
}

// tellMoved says in one line when the config has moved on since the lock was
// made: the lock is what is launched.
func (d *deps) tellMoved(talk io.Writer, l lockFile) {
	in := l.file.Inputs
	o := layerOptions{user: in.User != nil && in.Workspace != nil}
	if in.Override != nil {
		o.config, o.namedBy = in.Override.Path, l.shown
	}
	_, now, err := loadLayers(d, o)
	if err != nil {
		fmt.Fprintf(talk, "lazaret: note: whether %s is up to date cannot be told: %s\n", config.Show(l.shown), config.Show(err.Error()))
		return
	}
	var moved []string
	for _, layer := range []struct{ was, is *lock.Input }{{in.User, now.User}, {in.Workspace, now.Workspace}, {in.Override, now.Override}} {
		switch {
		case layer.was == nil && layer.is == nil:
		case layer.is == nil:
			moved = append(moved, layer.was.Path)
		case layer.was == nil || *layer.was != *layer.is:
			moved = append(moved, layer.is.Path)
		}
	}
	if len(moved) > 0 {
		fmt.Fprintf(talk, "lazaret: note: %s is older than %s: \"lazaret lock --check\" says where, \"lazaret lock\" takes it in\n",
			config.Show(l.shown), config.Show(strings.Join(moved, ", ")))
	}
}
