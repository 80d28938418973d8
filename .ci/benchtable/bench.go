package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"lazaret/lock"
)

// bench is what experiments work with: programs, and a directory that is empty
// at the beginning of each of them.
type bench struct {
	dir    string // bin/lazaret, image/helpers and benchtable are there
	debian string
	srt    string
	noSrt  string

	work string // of the experiment that runs
	undo []func() error
}

func (b *bench) lazaret() string { return filepath.Join(b.dir, "bin", "lazaret") }

func (b *bench) helper(name string) string {
	return filepath.Join(b.dir, "image", "helpers", "linux-"+runtime.GOARCH, name)
}

func (b *bench) begin() { b.work, b.undo = filepath.Join(b.dir, "work"), nil }

// later has f done when the experiment is over, what was begun last first.
func (b *bench) later(f func() error) { b.undo = append(b.undo, f) }

func (b *bench) end() error {
	var errs []error
	for _, f := range slices.Backward(b.undo) {
		errs = append(errs, f())
	}
	if os.RemoveAll(b.work) != nil { // what sandboxes wrote is of subordinate ids
		errs = append(errs, exec.Command("podman", "unshare", "rm", "-rf", b.work).Run())
	}
	return errors.Join(errs...)
}

// said runs a command to its end; what it says is in the error.
func said(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// command is one that is asked to end, and not killed, when ctx ends.
func command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// workspace is a repository with a lock that is agreed to.
type workspace struct {
	*bench
	dir     string
	profile string
}

// profile is what a workspace's only profile is made of.
type profile struct {
	image    string // builtin:shell where it is empty
	network  string // lines of [network]
	escalate bool
	storage  string // lines of [storage]
	lines    string
	more     string // another layer of config: one file can have 1 MiB
}

// newWorkspace makes one with everything in the experiment's directory.
func (b *bench) newWorkspace(ctx context.Context, name string, p profile) (*workspace, error) {
	w := &workspace{bench: b, dir: filepath.Join(b.work, name), profile: "bench"}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	if p.image == "" {
		p.image = "builtin:shell"
	}
	if p.network == "" {
		// Where nothing can be reached, there is no sidecar.
		p.network = "default_allow = [\"198.51.100.0/24\"]\ndefault_deny = []\nallow_hosts = [\"example.org\"]"
	}
	config := fmt.Sprintf(`[storage]
data_root = %q
%s
[network]
%s
[escalation]
enabled = %v
socket_dir = "{runtime_dir}/lazaret"
auto_approve = ["true"]
[profiles.%s]
image = %q
volumes = [{ host = %q, container = "/bench" }]
%s
`, filepath.Join(b.work, name+"-data"), p.storage, p.network, p.escalate, w.profile, p.image, b.tools(), p.lines)
	if err := os.WriteFile(filepath.Join(w.dir, "lazaret.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	locking := []string{b.lazaret(), "lock", "--platform", "linux/" + runtime.GOARCH}
	if p.more != "" {
		if err := os.WriteFile(filepath.Join(w.dir, "more.toml"), []byte(p.more), 0o600); err != nil {
			return nil, err
		}
		locking = append(locking, "--config", "more.toml")
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		locking,
		{b.lazaret(), "trust", "--yes"},
		{"git", "add", "."},
		{"git", "-c", "user.name=Bench", "-c", "user.email=bench@example.org", "commit", "-qm", "begin"},
		{b.lazaret(), "launch", w.profile, "--", "true"}, // podman has the image from now on
	} {
		if err := said(w.run(ctx, argv...)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// tools is the directory of this program, for sandboxes.
func (b *bench) tools() string { return filepath.Join(b.dir, "tools") }

// run is a command in the workspace.
func (w *workspace) run(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := command(ctx, argv...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(w.work, "state"))
	return cmd
}

func (w *workspace) launch(ctx context.Context, argv ...string) *exec.Cmd {
	return w.run(ctx, append([]string{w.lazaret(), "launch", w.profile, "--"}, argv...)...)
}

// pins is what the workspace's lock says, for this machine.
func (w *workspace) pins() (*lock.File, string, error) {
	data, err := os.ReadFile(filepath.Join(w.dir, "lazaret.lock"))
	if err != nil {
		return nil, "", err
	}
	f, err := lock.Parse(data)
	return f, "linux-" + runtime.GOARCH, err
}

// podman is a run of the workspace's image by podman and runsc alone, with the
// options given.
func (w *workspace) podman(ctx context.Context, options []string, argv ...string) (*exec.Cmd, error) {
	f, platform, err := w.pins()
	if err != nil {
		return nil, err
	}
	image, ok := f.Profiles[w.profile].Image.Platforms[platform]
	if !ok {
		return nil, fmt.Errorf("the lock has no image for %s", platform)
	}
	all := append(runsc("run", "--rm", "--pull=never"), options...)
	return w.run(ctx, append(append(all, image.Config), argv...)...), nil
}

// runsc is podman with the runtime that lazaret uses.
func runsc(argv ...string) []string {
	return append([]string{"podman", "--runtime", "runsc", "--runtime-flag", "ignore-cgroups"}, argv...)
}
