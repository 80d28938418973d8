package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lazaret/image"
	"lazaret/launch"
	"lazaret/lock"
)

// arena is a place of its own on this machine for attacks to happen in: a
// workspace, canaries beside it, a state directory, listeners. Nothing that is
// the person's is in it.
type arena struct {
	dir     string
	ws      string
	profile string
	other   string   // another profile, with the same rights
	self    string   // this program
	shared  bool     // git = "writeback"
	foreign []string // digests of another lazaret's programs that the person agreed to
	uid     int
	env     []string // of what is started in it
	secret  string   // the value of each variable that the profile takes from the host
	leak    string   // a value in the environment that no sandbox is to see
	keep    keep     // what no attack may change
	lock    string   // as the harness wrote it: what sandboxes did to the file is no matter
	mounts  map[string]lock.Mount
	ro      []string // where the profile mounts something to be read
	inside  []string // directories of the workspace that are mounted elsewhere too
	ears    *ears
	getenv  func(string) string
	podman  string
	uplink  string   // podman's network
	dns     string   // which names the profile has looked up: listed, open
	held    *os.File // the directory, locked: it is in use
}

// otherProfile is a copy of the profile under a name of its own.
const otherProfile = "attack-neighbour"

func newArena(d *deps, f *lock.File, profile string, host launch.Host) (a *arena, err error) {
	dir, err := os.MkdirTemp("", arenaPrefix)
	if err != nil {
		return nil, err
	}
	made := &arena{dir: dir, podman: host.Podman.Path}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.remove())
		}
	}()
	if err := made.hold(); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a = made
	a.dir, a.ws, a.profile, a.other, a.self, a.uid = dir, filepath.Join(dir, "workspace"), profile, otherProfile, exe, host.UID
	a.uplink, a.dns = host.Uplink, f.Profiles[profile].Network.DNS
	a.secret, a.leak = "lazaret-canary-passed-"+randomHex(), "lazaret-canary-kept-"+randomHex()
	a.environment(d, f.Profiles[profile])
	mine, err := a.lockFor(f, host)
	if err != nil {
		return nil, err
	}
	if err := a.furnish(mine); err != nil {
		return nil, err
	}
	if err := a.programs(host.Platform); err != nil {
		return nil, err
	}
	if a.ears, err = listen(filepath.Join(a.ws, "host.sock")); err != nil {
		return nil, err
	}
	a.keep = keep{root: a.dir}
	return a, a.keep.begin()
}

func randomHex() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// environment is the person's as far as podman needs it, with state of its own
// and with canaries in it.
func (a *arena) environment(d *deps, p lock.Profile) {
	for _, k := range []string{"PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TERM", "LANG"} {
		if v := d.env(k); v != "" {
			a.env = append(a.env, k+"="+v)
		}
	}
	a.env = append(a.env, "HOME="+d.home, "XDG_STATE_HOME="+filepath.Join(a.dir, "state"), "PODMAN_IGNORE_CGROUPSV1_WARNING=1")
	for _, v := range p.Env {
		if name, ok := strings.CutPrefix(v, "env:"); ok {
			a.env = append(a.env, strings.TrimSuffix(name, "?")+"="+a.secret)
		}
	}
	env := a.env
	a.getenv = func(k string) string {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, k+"="); ok {
				return v
			}
		}
		return ""
	}
	a.env = slices.Clone(env)
	a.env = append(a.env, "HTTPS_PROXY=http://user:"+a.leak+"@127.0.0.1:9", "AWS_SECRET_ACCESS_KEY="+a.leak)
}

// lockFor is the profile's lock with everything of the person's put aside: state
// goes into the arena, volumes are other directories, commands that would run
// unasked are asked about, and no port is taken.
func (a *arena) lockFor(f *lock.File, host launch.Host) (*lock.File, error) {
	mine := *f
	mine.Storage.DataRoot = filepath.Join(a.dir, "data")
	p := f.Profiles[a.profile]
	p.Ports, p.Setup = nil, nil
	a.shared = p.Git.Mode == "writeback"
	p.Escalation.AutoApprove, p.Escalation.AutoApproveExact = nil, nil
	p.Mounts = maps.Clone(p.Mounts)
	n := 0
	for _, target := range slices.Sorted(maps.Keys(p.Mounts)) {
		m := p.Mounts[target]
		if m.Kind != lock.KindBind || target == "/workspace" || strings.HasPrefix(target, "/workspace/lazaret.") {
			continue
		}
		if strings.HasPrefix(m.Mode, "ro") {
			a.ro = append(a.ro, target)
		}
		at := ""
		switch rest, inside := strings.CutPrefix(m.From, "{workspace_dir}/"); {
		case strings.HasPrefix(m.From, "{profile_dir}/"):
			continue
		case inside:
			at = filepath.Join(a.ws, rest)
			a.inside = append(a.inside, rest)
		default:
			at = filepath.Join(a.dir, "volumes", strconv.Itoa(n))
			m.From = at
			p.Mounts[target] = m
			n++
		}
		if err := makeVolume(at, host.Sources[target]); err != nil {
			return nil, err
		}
	}
	// Apart from the workspace, which may be a tree that git makes for the sandbox.
	p.Mounts[harnessAt] = lock.Mount{Kind: lock.KindBind, From: a.harness(), Mode: "ro"}
	if err := os.MkdirAll(a.harness(), 0o755); err != nil {
		return nil, err
	}
	a.mounts = p.Mounts
	mine.Profiles = map[string]lock.Profile{a.profile: p, a.other: p}
	return &mine, nil
}

// makeVolume makes what a volume has for its source: a file where it is one.
func makeVolume(at string, s launch.Source) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	if s.Exists && !s.Dir {
		return os.WriteFile(at, []byte("volume\n"), 0o600)
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(at, "volume"), []byte("volume\n"), 0o600)
}

// furnish makes the workspace: a project with a repository, and what lies beside
// it.
func (a *arena) furnish(f *lock.File) error {
	a.lock = string(f.Format())
	files := map[string]string{
		"workspace/lazaret.toml":          ownConfig,
		"workspace/lazaret.lock":          a.lock,
		"workspace/README":                "a project\n",
		"workspace/src/main.c":            "int main(void) { return 0; }\n",
		"workspace/.vscode/settings.json": "{}\n",
		"workspace/Makefile":              "all:\n",
		"workspace/scripts/check":         "#!/bin/sh\n", // a hook is a link to it
		"outside/secret":                  "lazaret-canary-outside\n",
		"outside/.ssh/authorized_keys":    "nobody\n",
		"outside/repo/secret":             "lazaret-canary-repository\n",
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeBelow(a.dir, name, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	if err := makeRepository(filepath.Join(a.ws, ".git"), map[string]string{"README": files["workspace/README"]}); err != nil {
		return err
	}
	hooks := filepath.Join(a.ws, ".git/hooks")
	if err := errors.Join(os.MkdirAll(hooks, 0o755), os.Symlink("../../scripts/check", filepath.Join(hooks, "pre-push"))); err != nil {
		return err
	}
	if err := makeRepository(filepath.Join(a.dir, "outside/repo/.git"), map[string]string{"secret": files["outside/repo/secret"]}); err != nil {
		return err
	}
	return copyFile(a.self, filepath.Join(a.harness(), "lazaret"), 0o755)
}

// harness is where the scripts lie, and harnessAt where sandboxes find them.
func (a *arena) harness() string { return filepath.Join(a.dir, "harness") }

const harnessAt = "/lazaret-attack"

// The harness's own programs, in the sandbox.
const (
	harnessBin   = harnessAt + "/bin"
	harnessShell = harnessBin + "/sh"
)

// programs puts a shell and the small programs into the harness, those of
// builtin:shell: one static binary, of which no loader or library of an image is
// a part.
func (a *arena) programs(platform string) error {
	guest, err := image.Binary(image.GuestName, platform)
	if err != nil {
		return err
	}
	bin := filepath.Join(a.harness(), "bin")
	if err := writeBelow(bin, image.GuestName, guest, 0o755); err != nil {
		return err
	}
	for _, name := range strings.Fields(image.Applets) {
		if err := os.Symlink(image.GuestName, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// ownConfig is the workspace's lazaret.toml. Launching goes by the lock.
const ownConfig = "# the project's own\n"

func writeBelow(dir, name string, data []byte, mode fs.FileMode) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, mode)
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
