// Package launch turns a lockfile into a running sandbox and back into
// nothing. Probe looks at the host once; Resolve, which touches nothing, turns
// lock and host into a Plan of steps; Run performs them and takes them down
// again on every way out; Clean does that for a lazaret that was killed.
package launch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"lazaret/escalate"
	"lazaret/launch/podman"
	"lazaret/launch/terminfo"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// Host is what launch knows of this machine: the only facts a Plan is made
// from besides the lock.
type Host struct {
	UID, GID   int
	Home       string   // the person's home directory
	RuntimeDir string   // XDG_RUNTIME_DIR
	CacheDir   string   // XDG_CACHE_HOME/lazaret, or its default
	StateDir   string   // XDG_STATE_HOME/lazaret, or its default, without symlinks
	ConfigDir  string   // XDG_CONFIG_HOME/lazaret, likewise
	Workspace  string   // absolute, without symlinks
	DataRoot   string   // storage.data_root, likewise
	SocketDir  string   // escalation.socket_dir, likewise; "" without escalation
	Containers string   // where podman keeps its storage
	Path       []string // the directories of PATH
	Platform   string   // "linux/amd64"
	Lazaret    string   // this program, to be started again as the helper
	Podman     Tool
	Runsc      Tool
	Runc       Tool   // the router's runtime; zero where nothing is reachable
	Grep       string // grep(1), likewise
	Uplink     string // podman's rootless network: slirp4netns or pasta
	Relay      bool   // this program can run inside any sandbox
	SELinux    bool
	Terminal   bool // stdin and stdout are terminals
	TermEnv    map[string]string
	Terminfo   *terminfo.Entry // the terminal's description; nil where none was found
	TermNotice string          // what is to be said of the terminal

	// Environ is the person's environment where podman may see it (podman.Environ).
	Environ []string
	// PullEnv is what a pull has besides, to reach registries (podman.PullEnviron).
	PullEnv []string
	// CommandEnv is what commands get that the sandbox asked for, less PATH.
	CommandEnv []string
	// CommandPath is what of PATH such commands are looked up in.
	CommandPath []string
	// Secrets are the values of the variables the profile asks for, by host
	// name. They never reach an argument vector, a plan's text or an event.
	Secrets map[string]string
	// ProfileDir is where the profile keeps what it keeps: a directory of
	// DataRoot, one for all workspaces or one for this.
	ProfileDir string
	// Kept is what is recorded of the profile's persistent directories.
	Kept overlay.Known
	// Fleeting: DataRoot is in the machine's memory.
	Fleeting bool
	// Stale are runs that left something in DataRoot and whose records are gone.
	Stale []string
	// FuseOverlay is the program fuse-overlayfs; "" where it is not installed.
	FuseOverlay string
	// Known are the images that were verified before and are as they were, by id.
	Known map[string]KnownImage
	// Sources are the mounts' sources, by in-container path.
	Sources map[string]Source
	// Masked is what lies at each path of the workspace that a mask covers,
	// by in-container path. An empty directory that only masks of other live
	// runs can have made counts as nothing.
	Masked map[string]fs.FileMode
	Git    GitHost
}

// Source is where a mount's source really is.
type Source struct {
	Path   string // absolute, without symlinks
	Exists bool
	Dir    bool
	// Sockets are those directly in it that the person is shown before they
	// agree to the mount, as Lead has them.
	Sockets []string
}

// Env is what Probe takes from the process: arguments, so that nothing below
// cmd reads the environment.
type Env struct {
	Getenv    func(string) string
	LookupEnv func(string) (string, bool)
	Workspace string // the current directory
	Lazaret   string // os.Executable
	Terminal  bool
}

// Probe looks at the host for what launching a profile needs.
func Probe(f *lock.File, profile string, e Env) (Host, error) {
	needs, err := f.Needs(profile)
	if err != nil {
		return Host{}, err
	}
	h := Host{
		UID:      os.Getuid(),
		GID:      os.Getgid(),
		Home:     e.Getenv("HOME"),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Lazaret:  e.Lazaret,
		Terminal: e.Terminal,
		TermEnv:  map[string]string{},
	}
	if h.UID == 0 {
		return Host{}, lacks("account", "run it as an ordinary user with entries in /etc/subuid and /etc/subgid",
			"lazaret does not run as root: a way out of the sandbox would be root on this machine")
	}
	if h.RuntimeDir, err = runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), h.UID); err != nil {
		return Host{}, err
	}
	if h.Workspace, err = workspace(e.Workspace, h.Home); err != nil {
		return Host{}, err
	}
	h.ownDirs(e)
	if err = h.checkOwnDirs(); err != nil {
		return Host{}, err
	}
	if h.Podman, h.Runsc, err = findTools(h.CacheDir, e.Getenv("PATH"), h.Workspace); err != nil {
		return Host{}, err
	}
	if needs.Sidecar {
		if h.Runc, err = routerRuntime(h.Workspace); err != nil {
			return Host{}, err
		}
		h.Grep, _ = lookPath("grep", podman.SearchPath, h.Workspace) // without it, one thing comes after the other
		if h.Uplink, err = uplinkKind(h.Podman, h.Workspace); err != nil {
			return Host{}, err
		}
	}
	h.Relay = needs.Sidecar && runsAnywhere(h.Lazaret)
	h.Environ = podmanEnviron(e.Getenv)
	h.PullEnv = podman.PullEnviron(e.Getenv)
	h.Known = knownImages(h.CacheDir, h.Platform, h.Environ)
	if h.Secrets, err = secrets(profile, needs.Env, e.LookupEnv); err != nil {
		return Host{}, err
	}
	if h.DataRoot, err = dataRoot(needs.DataRoot, h); err != nil {
		return Host{}, err
	}
	h.ProfileDir = filepath.Join(h.DataRoot, stateName(f.Profiles[profile].State, profile, h.Workspace))
	if needs.Overlay != "" || len(f.Profiles[profile].Setup) > 0 {
		if err := h.probeOverlays(); err != nil {
			return Host{}, err
		}
	}
	if h.SocketDir, err = socketDir(needs.SocketDir, profile, h); err != nil {
		return Host{}, err
	}
	h.CommandEnv = commandEnv(e)
	if h.Sources, err = sources(needs, profile, h); err != nil {
		return Host{}, err
	}
	h.terminal(e)
	shared := neighbours(filepath.Join(h.RuntimeDir, "lazaret"), Record{Workspace: h.Workspace}, false)
	if h.Masked, err = masked(h.Workspace, shared); err != nil {
		return Host{}, err
	}
	if err := h.probeGit(f.Profiles[profile].Git.Mode, e); err != nil {
		return Host{}, err
	}
	h.CommandPath = escalate.NewLookup(h.Path, h.reach(f.Profiles[profile]), h.Lazaret).Path
	if err := h.checkGitReach(needs); err != nil {
		return Host{}, err
	}
	gitSources(h.Sources, h.Git.Repo)
	if b, err := os.ReadFile("/sys/fs/selinux/enforce"); err == nil {
		h.SELinux = strings.TrimSpace(string(b)) == "1"
	}
	return h, nil
}

// runtimeDir checks XDG_RUNTIME_DIR: records and sockets lie there, so nobody
// else may be able to write to it.
func runtimeDir(dir string, uid int) (string, error) {
	const do = "log in through a session that sets XDG_RUNTIME_DIR, or make a directory with mode 0700 and set it"
	if !filepath.IsAbs(dir) {
		return "", lacks("runtime-dir", do, "XDG_RUNTIME_DIR is not set to an absolute path")
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return "", lacks("runtime-dir", do, "XDG_RUNTIME_DIR: %v", err)
	}
	owner := int(fi.Sys().(*syscall.Stat_t).Uid)
	if !fi.IsDir() || owner != uid || fi.Mode().Perm()&0o077 != 0 {
		return "", lacks("runtime-dir", do, "XDG_RUNTIME_DIR: %s is not a directory that only you can use", config.Show(dir))
	}
	return dir, nil
}

func xdgDir(value, home, fallback string) string {
	if filepath.IsAbs(value) {
		return filepath.Join(value, "lazaret")
	}
	return filepath.Join(home, fallback, "lazaret")
}

// workspace resolves the current directory and refuses those that would hand
// the agent everything.
func workspace(dir, home string) (string, error) {
	const do = "change to the directory of one project"
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("finding the workspace: %w", err)
	}
	realHome, err := filepath.EvalSymlinks(home)
	if err != nil {
		return "", refuse("set HOME to your home directory", "HOME: %v", err)
	}
	switch {
	case real == "/":
		return "", refuse(do, "the workspace is /: the agent could write to everything you can")
	case real == realHome:
		return "", refuse(do, "the workspace is your home directory: the agent could read every key and change every startup file")
	case strings.HasPrefix(realHome, real+"/"):
		return "", refuse(do, "the workspace %s contains your home directory", config.Show(real))
	}
	return real, nil
}

// envLineMax is what podman's reader of env files takes in one line, in bytes:
// bufio.Scanner's buffer, with some room.
const envLineMax = 60 << 10

func secrets(profile string, needs []lock.EnvNeed, lookup func(string) (string, bool)) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range needs {
		v, ok := lookup(n.Name)
		switch {
		case !ok && n.Optional:
		case !ok:
			return nil, refuse(fmt.Sprintf("export %s, or write \"env:%s?\" in lazaret.toml if it may be missing", n.Name, n.Name),
				"profiles.%s.env.%s: %s is not set in your environment", profile, n.Key, n.Name)
		case strings.ContainsAny(v, "\n\r\x00"):
			// podman's env file has one line a variable and no quoting.
			return nil, refuse("put it into a file and mount that with a volume",
				"profiles.%s.env.%s: the value of %s has more than one line", profile, n.Key, n.Name)
		case len(n.Key)+len(v) > envLineMax:
			return nil, refuse("put it into a file and mount that with a volume",
				"profiles.%s.env.%s: the value of %s is longer than %d bytes", profile, n.Key, n.Name, envLineMax)
		default:
			out[n.Name] = v
		}
	}
	return out, nil
}
