// Package podman writes podman's command lines and its surroundings: pure
// functions from data to argument vectors, environments and configuration.
// It never runs anything.
package podman

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
)

// Engine is the podman and the runtime to call.
type Engine struct {
	Podman       string   // absolute path
	Runsc        string   // absolute path: a name would be looked up in containers.conf
	RuntimeFlags []string // for runsc, without the leading dashes
}

// Argv is a podman command line. Podman does not remember runtime flags, so
// every command that touches a container must carry the same ones.
func (e Engine) Argv(args ...string) []string {
	// mounts.conf, which distributions use for entitlements, puts files of the
	// host into every container. Only this hidden option says no.
	argv := []string{e.Podman, "--default-mounts-file=/dev/null"}
	if e.Runsc != "" { // what runs nothing needs none
		argv = append(argv, "--runtime", e.Runsc)
	}
	for _, f := range e.RuntimeFlags {
		argv = append(argv, "--runtime-flag", f)
	}
	return append(argv, args...)
}

// Remove is the command that removes a container whatever its state, and
// succeeds when there is none.
func (e Engine) Remove(name string) []string {
	return e.Argv("rm", "--force", "--time", "0", "--ignore", name)
}

// Mount is one mount of a sandbox.
type Mount struct {
	Kind     string // "bind" or "tmpfs"
	Source   string // bind: absolute host path
	Target   string // absolute in-container path
	ReadOnly bool
	Relabel  string // "", "z" (shared) or "Z" (private), where SELinux enforces
	Size     string // tmpfs: size limit, as podman takes it
	Mode     string // tmpfs: permissions, in octal; "" is 0755
}

// Arg is the value of --mount: comma-separated fields, quoted as CSV so that a
// path may hold anything.
func (m Mount) Arg() string {
	f := []string{"type=" + m.Kind}
	if m.Kind == "bind" {
		f = append(f, "src="+m.Source)
	}
	f = append(f, "dst="+m.Target)
	if m.Kind == "tmpfs" && m.Size != "" {
		f = append(f, "tmpfs-size="+m.Size, "tmpfs-mode="+cmp.Or(m.Mode, "0755"))
	}
	if m.ReadOnly {
		f = append(f, "ro=true")
	}
	switch m.Relabel {
	case "z":
		f = append(f, "relabel=shared")
	case "Z":
		f = append(f, "relabel=private")
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(f)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Run is a sandbox to start.
type Run struct {
	Name         string // container name
	Image        string // image id: "sha256:…"
	Hostname     string
	Workdir      string
	Command      []string // whole: the image's entrypoint is not used
	TTY          bool
	Network      string            // "": none; else as --network takes it
	Env          map[string]string // literal values
	EnvFile      string            // "" or a file of NAME=value lines
	IDFile       string            // "" or a file to write the container's id to
	PIDFile      string            // "" or a file to write the pid of the container's monitor to
	InitFile     string            // "" or a file to write the pid of the container's first process to
	Hooks        string            // "" or a directory of what the runtime runs before it starts the command
	Mounts       []Mount           // in mount order
	Capabilities []string          // kept; all others are dropped
	PIDs         int64             // 0: podman's own
	Memory       string            // "": none
	CPUs         string            // "": none
}

// Argv is "podman run" with nothing left to a default that an image, a
// configuration file or the caller's environment could set.
func (e Engine) Run(r Run) []string {
	var a []string
	if r.Hooks != "" {
		a = append(a, "--hooks-dir", r.Hooks)
	}
	a = append(a,
		"run", "--rm", "--interactive",
		"--name", r.Name,
		"--hostname", r.Hostname,
		"--pull=never",
		"--network="+cmp.Or(r.Network, "none"),
		"--no-hosts",
		"--http-proxy=false",
		"--image-volume=ignore",
		"--no-healthcheck",
		"--systemd=false",
		"--log-driver=none",
		"--stop-signal=KILL",
		// An image's label would have podman look for newer ones, and refuse the pinned.
		"--label=io.containers.autoupdate=disabled",
		"--user=0:0",
		"--workdir", r.Workdir,
		"--entrypoint=",
		"--cap-drop=all",
	)
	if r.Network != "" {
		a = append(a, "--dns=none")
	}
	for _, c := range r.Capabilities {
		a = append(a, "--cap-add="+c)
	}
	if r.TTY {
		// Without detach keys, podman would swallow Ctrl-P.
		a = append(a, "--tty", "--detach-keys=")
	}
	if r.PIDs > 0 {
		a = append(a, "--pids-limit", strconv.FormatInt(r.PIDs, 10))
	}
	if r.Memory != "" {
		a = append(a, "--memory", r.Memory)
	}
	if r.CPUs != "" {
		a = append(a, "--cpus", r.CPUs)
	}
	for _, k := range SortedKeys(r.Env) {
		a = append(a, "--env", k+"="+r.Env[k])
	}
	if r.EnvFile != "" {
		a = append(a, "--env-file", r.EnvFile)
	}
	if r.IDFile != "" {
		a = append(a, "--cidfile", r.IDFile)
	}
	if r.PIDFile != "" {
		a = append(a, "--conmon-pidfile", r.PIDFile)
	}
	if r.InitFile != "" {
		a = append(a, "--pidfile", r.InitFile)
	}
	for _, m := range r.Mounts {
		a = append(a, "--mount", m.Arg())
	}
	a = append(a, "--", r.Image)
	return e.Argv(append(a, r.Command...)...)
}

// SortedKeys lists the keys of m in order.
func SortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
