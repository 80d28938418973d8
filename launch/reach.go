package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// own is a directory of this machine that no sandbox may be given: whoever
// writes there decides what lazaret or podman do next.
type own struct {
	name, dir string
	do        string // how a workspace that touches it is kept apart
}

// ownDirs finds them, resolved.
func (h *Host) ownDirs(e Env) {
	h.CacheDir = xdgDir(e.Getenv("XDG_CACHE_HOME"), h.Home, ".cache")
	h.StateDir = xdgDir(e.Getenv("XDG_STATE_HOME"), h.Home, ".local/state")
	h.ConfigDir = xdgDir(e.Getenv("XDG_CONFIG_HOME"), h.Home, ".config")
	h.Containers = filepath.Join(filepath.Dir(xdgDir(e.Getenv("XDG_DATA_HOME"), h.Home, ".local/share")), "containers")
	for _, dir := range []*string{&h.CacheDir, &h.StateDir, &h.ConfigDir, &h.Containers} {
		if real, err := resolve(*dir); err == nil {
			*dir = real
		}
	}
	for _, dir := range filepath.SplitList(e.Getenv("PATH")) {
		if real, err := resolve(dir); err == nil && filepath.IsAbs(dir) {
			h.Path = append(h.Path, real)
		}
	}
}

func (h Host) own() []own {
	return []own{
		{"your runtime directory", h.runtime(), "work in another directory"},
		{"lazaret's records", h.StateDir, "set XDG_STATE_HOME to a directory elsewhere, or work in another one"},
		{"your lazaret configuration", h.ConfigDir, "set XDG_CONFIG_HOME to a directory elsewhere, or work in another one"},
		{"lazaret's cache", h.CacheDir, "set XDG_CACHE_HOME to a directory elsewhere, or work in another one"},
		{"podman's storage", h.Containers, "set XDG_DATA_HOME to a directory elsewhere, or work in another one"},
	}
}

// runtime is XDG_RUNTIME_DIR without symlinks, or "".
func (h Host) runtime() string {
	if !filepath.IsAbs(h.RuntimeDir) {
		return ""
	}
	real, err := resolve(h.RuntimeDir)
	if err != nil {
		return ""
	}
	return real
}

// runtimeOwn are the directories below XDG_RUNTIME_DIR that lazaret, podman
// and the runtimes keep their state in. The rest of it may be mounted piece by
// piece: it is where sockets are.
var runtimeOwn = []string{"lazaret", "libpod", "containers", "runsc", "runc", "crun", "netns"}

// checkOwnDirs refuses a workspace that holds or lies in one of them: an agent
// that can write the records of trust can agree to its own lock.
func (h Host) checkOwnDirs() error {
	for _, o := range h.own() {
		if o.dir != "" && touch(o.dir, h.Workspace) {
			return refuse(o.do, "%s (%s) and the workspace contain one another", o.name, config.Show(o.dir))
		}
	}
	return nil
}

// checkReach refuses a mount that would put into a sandbox's reach what keeps
// it there. p is the profile's own directory below data_root, whose children
// are what profiles keep their data in.
func (h Host) checkReach(n lock.PathNeed, s Source, p string) error {
	if n.Target == "/workspace" || strings.HasPrefix(n.Target, "/workspace/lazaret.") {
		return nil // these are lazaret's own mounts
	}
	where := "mounting " + config.Show(n.Source) + " at " + config.Show(n.Target)
	if h.SocketDir != "" && touch(s.Path, h.SocketDir) {
		return refuse("choose another escalation.socket_dir", "%s: it and escalation.socket_dir contain one another", where)
	}
	if p != "" && within(s.Path, p) && s.Path != p {
		if rel, err := filepath.Rel(p, s.Path); err == nil && overlay.Reserved(split(rel)[0]) {
			return refuse("choose another name", "%s: that is where a persistent directory is kept, marks of its driver's and all", where)
		}
		return nil
	}
	owned := append(h.own(), own{name: "storage.data_root", dir: h.DataRoot})
	for _, o := range owned {
		if o.dir == "" || !touch(s.Path, o.dir) {
			continue
		}
		if rel, err := filepath.Rel(o.dir, s.Path); o.dir == h.runtime() && err == nil && filepath.IsLocal(rel) && rel != "." &&
			!slices.Contains(runtimeOwn, split(rel)[0]) {
			continue
		}
		return refuse("mount a narrower directory", "%s: it and %s contain one another", where, o.name)
	}
	if !n.Writable {
		return nil
	}
	if within(h.Workspace, s.Path) {
		return refuse("mount a narrower directory", "%s: it contains the workspace, without the masks over it", where)
	}
	for _, target := range append([]string{"/workspace/lazaret.lock", "/workspace/lazaret.toml"}, maskTargets...) {
		if within(s.Path, filepath.Join(h.Workspace, strings.TrimPrefix(target, "/workspace/"))) {
			return refuse("mount it read-only, or not at all", "%s: %s is masked so that no sandbox writes there", where, config.Show(target))
		}
	}
	for _, dir := range h.Path {
		if touch(s.Path, dir) && !within(s.Path, h.Workspace) {
			return refuse("mount it read-only, or a narrower directory", "%s: your PATH leads to %s, whose programs the agent could replace", where, config.Show(dir))
		}
	}
	return nil
}

// replaceable lists what a person runs from within the workspace: the agent
// can replace it.
func (h Host) replaceable() (out []string) {
	if real, err := resolve(h.Lazaret); err == nil && within(real, h.Workspace) {
		out = append(out, "lazaret itself lies in the workspace: the agent can replace the program you start next")
	}
	for _, dir := range h.Path {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && within(dir, h.Workspace) {
			out = append(out, "your PATH leads into the workspace ("+config.Show(dir)+"): the agent can replace programs you run")
		}
	}
	return out
}
