package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"lazaret/internal/step"
	"lazaret/launch"
)

// deps is all that commands take from the process they run in.
type deps struct {
	environ []string            // K=V
	env     func(string) string // "" where unset
	cwd     string              // the workspace: absolute, without symbolic links
	home    string              // $HOME, else the passwd entry; absolute, or ""

	// observe, when set, sees the events of a launch; see step.Runner.
	observe func(step.Event) error
}

// newDeps looks at the process once. Everything else asks deps.
func newDeps() (*deps, error) {
	d := &deps{environ: os.Environ(), env: os.Getenv}
	wd, err := os.Getwd()
	if err == nil {
		// One workspace, one name: by whatever path a person came here.
		d.cwd, err = filepath.EvalSymlinks(wd)
	}
	if err != nil {
		return nil, hinted{fmt.Errorf("finding the working directory: %w", err), "change to a directory that is there"}
	}
	d.home = os.Getenv("HOME")
	if d.home == "" {
		if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
			d.home = u.HomeDir
		}
	}
	if !filepath.IsAbs(d.home) {
		d.home = ""
	}
	return d, nil
}

// xdg gives a base directory: the variable's value where it is absolute, as
// the XDG rules have it, else the default below home; "" without either.
func (d *deps) xdg(name, below string) string {
	if dir := d.env(name); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if d.home == "" {
		return ""
	}
	return filepath.Join(d.home, below)
}

// userConfig is the path of the person's own config file, or "".
func (d *deps) userConfig() string { return below(d.xdg("XDG_CONFIG_HOME", ".config"), "config.toml") }

// stateDir is where records about this machine lie, or "".
func (d *deps) stateDir() string { return below(d.xdg("XDG_STATE_HOME", ".local/state"), "") }

func below(base, name string) string {
	if base == "" {
		return ""
	}
	return filepath.Join(base, "lazaret", name)
}

// tilde shows a path below home as ~/….
func (d *deps) tilde(path string) string {
	if rel, err := filepath.Rel(d.home, path); d.home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + rel
	}
	return path
}

// noHome is the lack of a place for something of lazaret's own.
func noHome(what string) error {
	return hinted{fmt.Errorf("there is no home directory to keep %s in", what), "set HOME to your home directory"}
}

// launchEnv is what package launch may know of the process.
func (d *deps) launchEnv() (launch.Env, error) {
	exe, err := os.Executable()
	if err != nil {
		return launch.Env{}, fmt.Errorf("finding this program: %w", err)
	}
	return launch.Env{
		Getenv: func(k string) string {
			if k == "HOME" {
				return d.home
			}
			return d.env(k)
		},
		LookupEnv: os.LookupEnv,
		Workspace: d.cwd,
		Lazaret:   exe,
	}, nil
}
