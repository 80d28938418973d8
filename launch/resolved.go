package launch

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
)

// Lead is where a mount of the host leads on this machine.
type Lead struct {
	Target string   // in the sandbox
	Source string   // as the lock has it
	Path   string   // absolute, without symlinks
	Linked bool     // a symlink leads there: the lock's path does not say it
	Git    bool     // a directory of git's outside of the workspace, which the lock does not name
	Socket bool     // whoever can connect to it gives orders to what listens
	Inside []string // sockets directly in the directory, sorted, some of them where there are many
}

// State is a directory of the host in which a profile's changes persist.
type State struct {
	Dir   string // absolute; "" where nothing of the profile persists
	Known bool   // something lies in it already
}

// Leads looks at where a profile's mounts lead and where its state lies. It
// changes nothing, and needs neither podman nor runsc.
func Leads(f *lock.File, profile string, e Env) ([]Lead, State, error) {
	h, err := probeMounts(f, profile, e)
	if err != nil {
		return nil, State{}, err
	}
	if f.Profiles[profile].Git.Mode != "none" {
		if h.Git.Repo, err = probeRepo(h.Workspace, os.Getuid()); err != nil {
			return nil, State{}, err
		}
		gitSources(h.Sources, h.Git.Repo)
	}
	return h.Leads(f, profile), h.State(f, profile), nil
}

// probeMounts looks at no more than where a profile's mounts lead.
func probeMounts(f *lock.File, profile string, e Env) (Host, error) {
	needs, err := f.Needs(profile)
	if err != nil {
		return Host{}, err
	}
	h := Host{Home: e.Getenv("HOME"), RuntimeDir: e.Getenv("XDG_RUNTIME_DIR")}
	if h.Workspace, err = workspace(e.Workspace, h.Home); err != nil {
		return Host{}, err
	}
	h.ownDirs(e)
	if err := h.checkOwnDirs(); err != nil {
		return Host{}, err
	}
	if h.DataRoot, err = dataRoot(needs.DataRoot, h); err != nil {
		return Host{}, err
	}
	h.ProfileDir = filepath.Join(h.DataRoot, stateName(f.Profiles[profile].State, profile, h.Workspace))
	h.Sources, err = sources(needs, profile, h)
	return h, err
}

// Leads is where the profile's mounts lead, of what Probe found.
func (h Host) Leads(f *lock.File, profile string) []Lead {
	needs, err := f.Needs(profile)
	if err != nil {
		return nil
	}
	var out []Lead
	for _, n := range needs.Paths {
		s, ok := h.Sources[n.Target]
		if !ok {
			continue
		}
		l := Lead{Target: n.Target, Source: n.Source, Path: s.Path}
		written, err := config.Expand(n.Source, tokens(profile, h))
		l.Linked = err == nil && written != s.Path
		if fi, err := os.Lstat(s.Path); err == nil {
			l.Socket = fi.Mode().Type() == fs.ModeSocket
		}
		if s.Dir && !within(s.Path, h.Workspace) && !within(s.Path, h.ProfileDir) {
			l.Inside = socketsIn(s.Path)
		}
		out = append(out, l)
	}
	repo := h.Git.Repo.Sources()
	for _, target := range slices.Sorted(maps.Keys(repo)) {
		out = append(out, Lead{Target: target, Source: repo[target], Path: repo[target], Git: true})
	}
	return out
}

// socketsIn lists sockets directly in a directory. A tree of any size may be
// mounted, so it does not look further.
func socketsIn(dir string) (names []string) {
	const look, most = 1000, 5
	d, err := os.Open(dir + "/") // not a pipe, if it is one by now
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(look)
	for _, e := range entries {
		if e.Type() == fs.ModeSocket && len(names) < most {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// State is where the profile's changes persist.
func (h Host) State(f *lock.File, profile string) State {
	p := f.Profiles[profile]
	for _, m := range p.Mounts {
		if m.Kind != lock.KindOverlay && !strings.HasPrefix(m.From, "{profile_dir}/") {
			continue
		}
		s := State{Dir: h.ProfileDir}
		entries, err := os.ReadDir(s.Dir)
		s.Known = err == nil && len(entries) > 0
		return s
	}
	return State{}
}
