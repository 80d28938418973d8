package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"lazaret/escalate"
	"lazaret/lock"
	"lazaret/lock/config"
)

// dataRoot finds storage.data_root. It must not share a directory with the
// workspace: what lazaret keeps there is not the agent's to change.
func dataRoot(written string, h Host) (string, error) {
	dir, err := config.Expand(written, config.Tokens{Home: h.Home})
	if err == nil {
		dir, err = resolve(dir, h.Workspace)
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

// sources finds where each mount's source really is, and refuses what no
// sandbox may be given.
func sources(needs lock.Needs, profile string, h Host) (map[string]Source, error) {
	tokens := tokens(profile, h)
	writable := []string{h.Workspace, h.DataRoot}
	out := map[string]Source{}
	// Twice: what is mounted writable is another place for links.
	for range 2 {
		for _, n := range needs.Paths {
			s, err := source(n, tokens, writable)
			if err != nil {
				var re *RefusedError
				if errors.As(err, &re) {
					return nil, refuse(re.Do, "profiles.%s: mounting %s: %s", profile, config.Show(n.Source), re.What)
				}
				return nil, fmt.Errorf("profiles.%s: mounting %s: %w", profile, config.Show(n.Source), err)
			}
			if err := h.checkReach(n, s, tokens.ProfileDir); err != nil {
				return nil, err
			}
			if n.Writable && s.Dir {
				writable = append(writable, s.Path)
			}
			if needs.SocketDir != "" && s.Dir && !within(s.Path, h.Workspace) && !within(s.Path, tokens.ProfileDir) {
				s.Sockets = socketsIn(s.Path)
			}
			out[n.Target] = s
		}
	}
	return out, nil
}

// tokens are what the lock's paths are expanded with.
func tokens(profile string, h Host) config.Tokens {
	return config.Tokens{
		ProfileName:  profile,
		ProfileDir:   h.ProfileDir,
		WorkspaceDir: h.Workspace,
		RuntimeDir:   h.RuntimeDir,
		Home:         h.Home,
	}
}

func source(n lock.PathNeed, t config.Tokens, writable []string) (Source, error) {
	path, err := config.Expand(n.Source, t)
	if err != nil {
		return Source{}, err
	}
	real, err := resolve(path, writable...)
	if err != nil {
		return Source{}, err
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

// socketDir finds escalation.socket_dir. No sandbox may reach it, and nobody
// else may enter it: what connects there can ask.
func socketDir(written, profile string, h Host) (string, error) {
	if written == "" {
		return "", nil
	}
	const do = `choose another socket_dir, such as "{runtime_dir}/lazaret"`
	dir, err := config.Expand(written, tokens(profile, h))
	if err != nil {
		return "", fmt.Errorf("escalation.socket_dir: %w", err)
	}
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		return "", refuse(do, "escalation.socket_dir: %s is %s", config.Show(dir), kindOf(fi.Mode()))
	}
	if dir, err = resolve(dir, h.Workspace, h.DataRoot); err != nil {
		return "", fmt.Errorf("escalation.socket_dir: %w", err)
	}
	for _, o := range []struct{ name, dir string }{{"the workspace", h.Workspace}, {"storage.data_root", h.DataRoot}} {
		if touch(dir, o.dir) {
			return "", refuse(do, "escalation.socket_dir: %s and %s contain one another", config.Show(written), o.name)
		}
	}
	return dir, nil
}

// commandEnv is the environment of commands that a sandbox asked for: what
// programs find their configuration and credentials by, and nothing that tells
// them what to run.
func commandEnv(e Env) []string {
	out := []string{escalate.EnvMark + "=1"}
	for _, name := range []string{
		"HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
	} {
		if v := e.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	if e.Getenv("LC_ALL") == "" {
		lang := e.Getenv("LANG")
		if lang == "" {
			lang = "C.UTF-8"
		}
		out = append(out, "LC_ALL="+lang)
	}
	return out
}
