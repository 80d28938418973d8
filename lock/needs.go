package lock

import (
	"maps"
	"slices"
	"strings"

	"lazaret/lock/config"
)

// Needs is what launching one profile must know of the host, and no more: the
// list that a probe works off.
type Needs struct {
	DataRoot  string // absolute or ~/…: where state lies
	SocketDir string // tokens in place; "" without escalation
	Env       []EnvNeed
	Paths     []PathNeed
	Git       bool       // the repository: where its directories are, HEAD, index, refs
	Overlay   string     // the driver asked for, or "" without overlays
	Sidecar   bool       // something is reachable, so the network sidecar runs
	Tools     [][]string // programs, each with its alternatives in order of preference
}

// EnvNeed is a variable of the sandbox that takes its value from the host's
// environment.
type EnvNeed struct {
	Key      string // in the sandbox
	Name     string // on the host
	Optional bool   // unset on the host: unset in the sandbox
}

// PathNeed is a path on the host that is mounted.
type PathNeed struct {
	Target   string // in the sandbox
	Source   string // on the host, tokens in place
	Writable bool
	Create   bool // a directory to make where there is none: it lies below {profile_dir}
}

// Needs says what launching a profile needs to know of the host.
func (f *File) Needs(profile string) (Needs, error) {
	p, err := f.Profile(profile)
	if err != nil {
		return Needs{}, err
	}
	n := Needs{
		DataRoot:  f.Storage.DataRoot,
		SocketDir: p.Escalation.SocketDir,
		Git:       p.Git.Mode != "none",
		Sidecar:   len(p.Network.Allow)+len(p.Network.Hosts)+len(p.Ports) > 0,
		Tools:     [][]string{{"podman"}, {"runsc"}},
	}
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		if name, ok := strings.CutPrefix(p.Env[key], "env:"); ok {
			name, optional := strings.CutSuffix(name, "?")
			n.Env = append(n.Env, EnvNeed{Key: key, Name: name, Optional: optional})
		}
	}
	for _, target := range slices.Sorted(maps.Keys(p.Mounts)) {
		switch m := p.Mounts[target]; m.Kind {
		case KindBind:
			n.Paths = append(n.Paths, PathNeed{
				Target:   target,
				Source:   m.From,
				Writable: strings.HasPrefix(m.Mode, "rw"),
				Create:   strings.HasPrefix(m.From, "{profile_dir}/"),
			})
		case KindOverlay:
			n.Overlay = f.Storage.Overlay
		}
	}
	if n.Sidecar {
		n.Tools = append(n.Tools, []string{"runc", "crun"})
	}
	if n.Git {
		n.Tools = append(n.Tools, []string{"git"})
	}
	if n.Overlay == "fuse-overlayfs" {
		n.Tools = append(n.Tools, []string{"fuse-overlayfs"})
	}
	return n, nil
}

// UnknownProfileError is a profile that the lock does not have.
type UnknownProfileError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownProfileError) Error() string {
	if len(e.Known) == 0 {
		return "profile " + quote(e.Name) + ": the lock has no profiles"
	}
	return "profile " + quote(e.Name) + ": the lock has only " + strings.Join(e.Known, ", ")
}

// Hint is the next command.
func (e *UnknownProfileError) Hint() string {
	if near := config.Nearest(e.Name, e.Known); near != "" {
		return "did you mean " + near + "?"
	}
	return `add [profiles.NAME] to lazaret.toml and run "lazaret lock", or choose another profile`
}

// Profile returns the profile of that name, or an *UnknownProfileError.
func (f *File) Profile(name string) (Profile, error) {
	p, ok := f.Profiles[name]
	if !ok {
		return Profile{}, &UnknownProfileError{name, slices.Sorted(maps.Keys(f.Profiles))}
	}
	return p, nil
}
