package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
)

// dataRoot finds storage.data_root. It must not share a directory with the
// workspace: what lazaret keeps there is not the agent's to change.
func dataRoot(written string, h Host) (string, error) {
	dir, err := config.Expand(written, config.Tokens{Home: h.Home})
	if err == nil {
		dir, err = resolve(dir)
	}
	if err != nil {
		return "", fmt.Errorf("storage.data_root: %w", err)
	}
	if within(dir, h.Workspace) || within(h.Workspace, dir) {
		return "", refuse("choose another data_root, such as ~/.local/share/lazaret",
			"storage.data_root: %s and the workspace contain one another", config.Show(written))
	}
	return dir, nil
}

// sources finds where each mount's source really is. A source whose path can
// be changed from inside a sandbox (it lies in the workspace or under
// {profile_dir}) must have no symlink on its way: "cache -> ~/.ssh" in the
// repository would otherwise be mounted at the next launch.
func sources(needs lock.Needs, profile string, h Host) (map[string]Source, error) {
	tokens := tokens(profile, h)
	out := map[string]Source{}
	for _, n := range needs.Paths {
		s, err := source(n, tokens)
		if err != nil {
			var re *RefusedError
			if errors.As(err, &re) {
				return nil, refuse(re.Do, "profiles.%s: mounting %s: %s", profile, config.Show(n.Source), re.What)
			}
			return nil, fmt.Errorf("profiles.%s: mounting %s: %w", profile, config.Show(n.Source), err)
		}
		if err := checkOverlap(n, s, tokens, h); err != nil {
			return nil, err
		}
		out[n.Target] = s
	}
	return out, nil
}

// tokens are what the lock's paths are expanded with.
func tokens(profile string, h Host) config.Tokens {
	return config.Tokens{
		ProfileName:  profile,
		ProfileDir:   filepath.Join(h.DataRoot, profile),
		WorkspaceDir: h.Workspace,
		RuntimeDir:   h.RuntimeDir,
		Home:         h.Home,
	}
}

func source(n lock.PathNeed, t config.Tokens) (Source, error) {
	path, err := config.Expand(n.Source, t)
	if err != nil {
		return Source{}, err
	}
	real, err := resolve(path)
	if err != nil {
		return Source{}, err
	}
	if real != path && (strings.HasPrefix(n.Source, "{workspace_dir}") || strings.HasPrefix(n.Source, "{profile_dir}")) {
		return Source{}, refuse("remove the symlink and look at what else the last session left",
			"a symlink leads to %s, and a sandbox could have made it", config.Show(real))
	}
	fi, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && n.Create:
		return Source{Path: real, Dir: true}, nil
	case errors.Is(err, fs.ErrNotExist):
		return Source{Path: real}, nil
	case err != nil:
		return Source{}, err
	case !fi.IsDir() && !fi.Mode().IsRegular() && fi.Mode().Type() != fs.ModeSocket:
		return Source{}, refuse("mount a file or a directory", "it is %s", kindOf(fi.Mode()))
	}
	return Source{Path: real, Exists: true, Dir: fi.IsDir()}, nil
}

// checkOverlap refuses mounts that would put lazaret's own state within reach
// of a sandbox.
func checkOverlap(n lock.PathNeed, s Source, t config.Tokens, h Host) error {
	if n.Target == "/workspace" {
		return nil
	}
	if within(s.Path, t.ProfileDir) && s.Path != t.ProfileDir {
		return nil
	}
	for _, own := range []struct{ name, dir string }{
		{"storage.data_root", h.DataRoot},
		{"the run directory", filepath.Join(h.RuntimeDir, "lazaret")},
		{"lazaret's records", h.StateDir},
		{"your lazaret configuration", h.ConfigDir},
	} {
		if own.dir != "" && (within(s.Path, own.dir) || within(own.dir, s.Path)) {
			return refuse("mount a narrower directory", "mounting %s at %s: it and %s contain one another", config.Show(n.Source), n.Target, own.name)
		}
	}
	return nil
}

// resolve follows the symlinks of as much of path as exists.
func resolve(path string) (string, error) {
	var rest []string
	for p := path; ; p = filepath.Dir(p) {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			slices.Reverse(rest)
			return filepath.Join(append([]string{real}, rest...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || p == "/" {
			return "", err
		}
		if fi, lerr := os.Lstat(p); lerr == nil && fi.Mode().Type() == fs.ModeSymlink {
			return "", refuse("remove it", "%s is a symlink to nowhere", config.Show(p))
		}
		rest = append(rest, filepath.Base(p))
	}
}

// within tells whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
