package podman

// Router is the container that a sandbox's network leads through. It runs
// under an ordinary runtime: it must have the kernel's own network.
type Router struct {
	Name    string
	Image   string // image id: "sha256:…"
	Uplink  string // "slirp4netns" or "pasta"
	Sysctls map[string]string
	Dir     string // host directory with the socket it calls
	SELinux bool   // it is enforced, and would not let the router call
	PIDFile string // "" or a file to write the pid of the container's monitor to
	Calls   string // a file with the seccomp profile; see RouterCalls
}

// uplinks are podman's rootless networks with nothing left to the host: the
// same addresses on every machine, none of them the host's own, and no way to
// the host's loopback interface.
var uplinks = map[string]string{
	"slirp4netns": "slirp4netns:allow_host_loopback=false,enable_ipv6=true,cidr=10.0.2.0/24",
	"pasta":       "pasta:-I,up0,-a,10.0.2.100,-n,24,-g,10.0.2.2,--dns-forward,10.0.2.3,--no-map-gw",
}

// Router is the "podman run" of a router: no shell, nothing to write to, no
// capability but the one to change its own network.
func (e Engine) Router(r Router) []string {
	a := []string{
		"run", "--detach", "--rm",
		"--name", r.Name,
		"--hostname", "router",
		"--pull=never",
		"--network", uplinks[r.Uplink],
		"--no-hosts",
		"--http-proxy=false",
		"--image-volume=ignore",
		"--no-healthcheck",
		"--systemd=false",
		"--log-driver=none",
		"--stop-signal=KILL",
		"--user=0:0",
		"--workdir", "/",
		"--read-only", "--read-only-tmpfs=false",
		"--security-opt=no-new-privileges",
		"--cap-drop=all", "--cap-add=NET_ADMIN",
		"--env", "GOMEMLIMIT=48MiB",
		// Names are served at port 53, without a capability for it.
		"--sysctl", "net.ipv4.ip_unprivileged_port_start=0",
	}
	if r.SELinux {
		a = append(a, "--security-opt=label=disable")
	}
	if r.Calls != "" {
		a = append(a, "--security-opt=seccomp="+r.Calls)
	}
	if r.PIDFile != "" {
		a = append(a, "--conmon-pidfile", r.PIDFile)
	}
	for _, k := range SortedKeys(r.Sysctls) {
		a = append(a, "--sysctl", "net."+dotted(k)+"="+r.Sysctls[k])
	}
	a = append(a, "--mount", Mount{Kind: "bind", Source: r.Dir, Target: "/run/lazaret", ReadOnly: true}.Arg())
	return e.Argv(append(a, "--", r.Image)...)
}

// Exec is the command that runs another program in a container, connected to
// its standard input and output.
func (e Engine) Exec(container string, command ...string) []string {
	return e.Argv(append([]string{"exec", "--interactive", "--user=0:0", container}, command...)...)
}

// Enter is the command that runs another program in a sandbox as the sandbox's
// own is run, on whatever it is connected to. It is the runtime's: podman's own
// way with a terminal is not one that runsc knows.
func (e Engine) Enter(id string, env map[string]string, command []string) []string {
	a := []string{e.Runsc}
	for _, f := range e.RuntimeFlags {
		a = append(a, "--"+f)
	}
	a = append(a, "exec")
	for _, k := range SortedKeys(env) {
		a = append(a, "-env", k+"="+env[k])
	}
	return append(append(a, id), command...)
}

// Running is the command that prints whether the command of a container has
// started and not ended.
func (e Engine) Running(name string) []string {
	return e.Argv("container", "inspect", "--format={{.State.Running}}", name)
}

// ID is the command that prints the id of a container.
func (e Engine) ID(name string) []string {
	return e.Argv("container", "inspect", "--format={{.ID}}", name)
}

// dotted is a kernel setting's file name as sysctl(8) has it.
func dotted(path string) string {
	b := []byte(path)
	for i, c := range b {
		if c == '/' {
			b[i] = '.'
		}
	}
	return string(b)
}

// Delete is the command that has the runtime forget a container that podman has
// forgotten already.
func (e Engine) Delete(id string) []string {
	a := []string{e.Runsc}
	for _, f := range e.RuntimeFlags {
		a = append(a, "--"+f)
	}
	return append(a, "delete", "--force", id)
}
