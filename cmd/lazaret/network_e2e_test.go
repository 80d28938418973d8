package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/lock"
)

// networked is a workspace whose sandbox talks to a world of the test's own.
type networked struct {
	*sandboxed
	world *world
}

func newNetworked(t *testing.T, network, profile string) *networked {
	t.Helper()
	n := &networked{world: newWorld(t)}
	n.sandboxed = newSandboxedWith(t, func(data string) string {
		return fmt.Sprintf(`[storage]
data_root = %q
[network]
%s
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.shell]
image = "builtin:shell"
git = "none"
%s
`, data, network, profile)
	})
	config := filepath.Join(filepath.Dir(n.ws), "config")
	n.env = append(n.env, "XDG_CONFIG_HOME="+config)
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	// podman finds its storage there.
	if err := os.Symlink(filepath.Join(os.Getenv("HOME"), ".config", "containers"), filepath.Join(config, "containers")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, worldFile), []byte(n.world.ns), 0o600); err != nil {
		t.Fatal(err)
	}
	n.copyProbe()
	return n
}

// copyProbe puts this test binary where the sandbox can run it.
func (n *networked) copyProbe() {
	n.t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(n.ws, "lazaret-probe"), b, 0o755)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// probing is a sandbox that does what it is told.
type probing struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *output
}

func (n *networked) launch(flags ...string) *probing {
	n.t.Helper()
	args := append(append([]string{"launch"}, flags...), "shell", "--", "/workspace/lazaret-probe")
	p := &probing{t: n.t, cmd: exec.Command(n.self, args...), stderr: &output{}}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = n.ws, n.env, p.stderr
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { p.cmd.Process.Signal(syscall.SIGTERM); p.cmd.Wait() })
	return p
}

// ask has the probe do something.
func (p *probing) ask(line string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, p.stderr)
	}
	got, err := p.out.ReadString('\n')
	if err != nil {
		p.in.Close()
		p.cmd.Wait()
		p.t.Fatalf("%s: %v\n%s", line, err, p.stderr)
	}
	_, answer, _ := strings.Cut(strings.TrimSpace(got), ": ")
	return answer
}

// wants asks each line up to " = " and compares with what follows.
func (p *probing) wants(list ...string) {
	p.t.Helper()
	for _, s := range list {
		line, want, _ := strings.Cut(s, " = ")
		if got := p.ask(line); got != want {
			p.t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// end lets the sandbox end and gives what lazaret said.
func (p *probing) end() string {
	p.t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the sandbox ended with %v\n%s", err, p.stderr)
	}
	return p.stderr.String()
}

const networkConfig = `
default_allow = ["0.0.0.0/0", "::/0", "10.20.0.0/16", "172.16.5.0/24:5432"]
default_deny = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "2001:db8:5::/48", "10.20.3.0/24"]
`

// TestEndToEndNetwork: what is denied is denied to a program under gVisor, and
// what is allowed works, by every protocol.
func TestEndToEndNetwork(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, networkConfig, `ports = ["18455:8455", "18454:8454"]`)
	before := n.quiet()
	n.world.must("name", "any.test", "60 A 192.0.2.1")
	p := n.launch()
	p.wants(
		// gVisor keeps the answer to a denied ping to itself.
		"tcp 192.0.2.1:80 = works", "udp 192.0.2.1:5000 = works", "ping 192.0.2.1 = works",
		"tcp 10.1.2.3:80 = refused", "udp 10.1.2.3:5000 = refused", "ping 10.1.2.3 1s = silence",
		"tcp 10.20.1.1:80 = works", "tcp 10.20.3.1:80 = refused",
		"tcp 172.16.5.1:5432 = works", "tcp 172.16.5.1:80 = refused", "udp 172.16.5.1:5432 = refused",
		"tcp 192.168.1.1:80 = refused",
		"tcp 169.254.169.254:80 = refused", "tcp 100.100.100.200:80 = refused",
		"tcp 100.64.9.2:22 = refused",  // the host's own address
		"tcp 192.0.2.240:22 = refused", // and one that it has as a local route only
		"tcp 10.0.2.2:22 = refused", "tcp 10.0.2.3:53 = refused", "tcp 198.19.255.253:22 = refused",
		"tcp [2a00:1450::1]:80 = works", "udp [2a00:1450::1]:5000 = works",
		"tcp [2001:db8:5::1]:80 = refused", "udp [2001:db8:5::1]:5000 = refused", "ping 2001:db8:5::1 1s = silence",
		"tcp [64:ff9b::a01:203]:80 = refused", "tcp [2002:a01:203::1]:80 = refused", "tcp [fd00::2]:22 = refused",
		"look any.test = 192.0.2.1", "look localhost = 127.0.0.1 ::1",
		"ask 10.0.2.3:53 any.test = no answer",
		"raw = false",
	)
	for range 12 {
		p.wants("tcp 10.1.2.3:443 = refused")
	}
	// A published port leads in, and from the loopback address only.
	p.wants("listen :8455 = works")
	n.world.must("echo", "127.0.0.1:18455", "hello sandbox")
	// A login's callback listens on the sandbox's own loopback address.
	if out, err := n.world.do("echo", "127.0.0.1:18454", "nobody"); err == nil {
		t.Errorf("nobody listens, and somebody says %s", out)
	}
	p.wants("listen 127.0.0.1:8454 = works")
	n.world.must("echo", "127.0.0.1:18454", "hello callback")
	if out, err := n.world.do("echo", "100.64.9.2:18455", "hello"); err == nil {
		t.Errorf("the port is open on the host's address: %s", out)
	}
	said := p.end()
	for _, want := range []string{
		"denied to [profiles.shell]", `times; to allow: allow_egress = ["10.1.2.3/32:443/tcp"]`,
		"tcp 192.0.2.240:22\n", // denied by the router, not refused by the host
		`icmp 10.1.2.3; to allow: allow_egress = ["10.1.2.3/32"]`, "lazaret: note: denied: tcp 10.1.2.3:80",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("lazaret does not say %q:\n%s", want, said)
		}
	}
	// What is not answered in time is tried again by itself, and counts again.
	if m := regexp.MustCompile(`tcp 10\.1\.2\.3:443, (\d+) times`).FindStringSubmatch(said); m == nil || number(t, m[1]) < 12 || number(t, m[1]) > 24 {
		t.Errorf("it was denied 12 times: %q", m)
	}
	if strings.Contains(said, `"169.254`) || strings.Contains(said, `"10.0.2.`) || strings.Contains(said, `"100.64.9.2`) || strings.Contains(said, `"192.0.2.240`) {
		t.Errorf("lazaret suggests to open the machine itself:\n%s", said)
	}
	if got := n.world.must("got"); strings.Contains(got, "10.1.2.3") {
		t.Errorf("this arrived:\n%s", got)
	}
	if out := n.must("log"); !strings.Contains(out, "shell: denied tcp 10.1.2.3:443") {
		t.Errorf("log says:\n%s", out)
	}
	if out := n.must("log", "--json"); !strings.Contains(out, `"kind":"denied","protocol":"tcp","address":"10.1.2.3","port":443`) {
		t.Errorf("log --json says:\n%s", out)
	}
	if diff := n.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}

	out := n.must("doctor", "shell")
	for _, want := range []string{"tcp 169.254.169.254:80", "deny 10.0.0.0/8", "this machine", "allow 172.16.5.0/24:5432"} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor does not try %q", want)
		}
	}
	t.Logf("\n%s", out)
	if diff := n.settled(before); diff != "" {
		t.Errorf("after doctor, the host is not as it was\n%s", diff)
	}
}

// TestEndToEndDoctor: where a sandbox is not as its lock has it, doctor says so.
func TestEndToEndDoctor(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = []\ndefault_deny = []\n", `allow_hosts = ["gone.test", "api.test"]`)
	n.world.must("name", "api.test", "60 A 192.0.2.10")
	c, out := n.cmd(nil, "doctor", "shell")
	c.Run()
	text := out.String()
	if c.ProcessState.ExitCode() != exitError || !strings.Contains(text, "1 thing") {
		t.Errorf("status %d", c.ProcessState.ExitCode())
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "lazaret: ") {
			continue
		}
		if wrong := strings.Contains(line, "WRONG"); wrong != strings.Contains(line, "gone.test") {
			t.Errorf("%s", line)
		}
	}
	if !strings.Contains(text, "host api.test:443") || !strings.Contains(text, "name lazaret-doctor.invalid") {
		t.Error("not all was tried")
	}
	t.Logf("\n%s", text)
}

// TestEndToEndNames: names open what they stand for, and nothing leaves by them.
func TestEndToEndNames(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = []\ndefault_deny = [\"10.0.0.0/8\"]\n", `allow_hosts = ["api.test", "*.cdn.test:80", "evil.test", "lan.test"]`)
	n.world.must("name", "api.test", "60 A 192.0.2.10", "60 AAAA 2a00:1450::10")
	n.world.must("name", "x.cdn.test", "1 A 192.0.2.20")
	n.world.must("name", "evil.test", "1 A 10.1.2.3")
	n.world.must("name", "lan.test", "1 A 192.168.1.7")
	n.world.must("name", "secret.attacker.test", "1 A 192.0.2.66")
	p := n.launch()
	p.wants(
		"tcp 192.0.2.10:443 = refused",
		"tcp api.test:443 = works", "tcp 192.0.2.10:443 = works", "tcp 192.0.2.10:80 = refused",
		"tcp x.cdn.test:80 = works", "tcp x.cdn.test:443 = refused",
		"look evil.test = no answer", "tcp 10.1.2.3:443 = refused",
		"look lan.test = no answer", "tcp 192.168.1.7:443 = refused", // no range denies it
		"look secret.attacker.test = no answer", "ask 192.0.2.1:53 secret.attacker.test = no answer",
		"ask 10.0.2.3:53 secret.attacker.test = no answer",
	)
	for i := range 5 {
		addr := fmt.Sprintf("192.0.2.%d", 100+i)
		n.world.must("name", "x.cdn.test", "0 A "+addr)
		p.wants("tcp x.cdn.test:80 = works", "tcp "+addr+":80 = works")
	}
	said := p.end()
	if asked := n.world.must("asked"); strings.Contains(asked, "attacker") {
		t.Errorf("the world was asked:\n%s", asked)
	}
	for _, want := range []string{
		`the name secret.attacker.test`, `allow_hosts = ["secret.attacker.test:443"]`, "the name evil.test, which means 10.1.2.3", "the name lan.test, which means 192.168.1.7", "tcp 192.0.2.10:80 (api.test)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("lazaret does not say %q:\n%s", want, said)
		}
	}
}

// sidecarPID is the router's process.
func sidecarPID(t *testing.T, id string) int {
	t.Helper()
	out, err := exec.Command("podman", "inspect", "--format", "{{.State.Pid}}", "lazaret-shell-"+id+"-net").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid <= 1 {
		t.Fatalf("pid %q", out)
	}
	return pid
}

// TestEndToEndSidecarDies: without the router there are no packets, and
// lazaret says so.
func TestEndToEndSidecarDies(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"0.0.0.0/0\"]\ndefault_deny = []\n", "")
	before := n.quiet()
	t.Run("in the middle of a transfer", func(t *testing.T) {
		p := n.launch()
		p.wants("hold 192.0.2.1:80 = works", "say hello = works")
		syscall.Kill(sidecarPID(t, n.run()), syscall.SIGKILL)
		eventually(func() bool { return p.ask("say hello 1500ms") != "works" })
		for _, line := range []string{"say hello 1500ms", "tcp 192.0.2.1:80 1500ms", "udp 192.0.2.1:5000 1500ms", "tcp 192.0.2.2:80 1500ms"} {
			if got := p.ask(line); got == "works" {
				t.Errorf("%s: %s", line, got)
			}
		}
		if said := p.end(); !strings.Contains(said, "the network sidecar ended") {
			t.Errorf("lazaret says only:\n%s", said)
		}
	})
	t.Run("and the sandbox with it", func(t *testing.T) {
		p := n.launch("--end-offline")
		p.wants("tcp 192.0.2.1:80 = works")
		syscall.Kill(sidecarPID(t, n.run()), syscall.SIGKILL)
		p.cmd.Wait()
		if got := p.cmd.ProcessState.ExitCode(); got != exitLazaret || !strings.Contains(p.stderr.String(), "the network sidecar ended, and the sandbox with it") {
			t.Errorf("status %d\n%s", got, p.stderr)
		}
	})
	if diff := n.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndTwoSandboxes: they do not get in each other's way, and a port that
// somebody has is refused before a sandbox starts. The set-up before one of them
// has the same network as its session.
func TestEndToEndTwoSandboxes(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n", `ports = ["18456"]
persistent_dirs = ["/root"]
setup = ["! [ -e /workspace/lazaret-probe ] || echo tcp 192.0.2.1:80 | /workspace/lazaret-probe >/root/probed"]`)
	before := n.quiet()
	if err := os.Remove(filepath.Join(filepath.Dir(n.ws), "data/.lazaret/state/shell/setup.json")); err != nil {
		t.Fatal(err)
	}
	p := n.launch()
	defer func() {
		if got, err := os.ReadFile(filepath.Join(filepath.Dir(n.ws), "data/shell/root_changes/probed")); err != nil || !strings.Contains(string(got), "tcp 192.0.2.1:80: works") {
			t.Errorf("the set-up had no network: %q, %v", got, err)
		}
	}()
	p.wants("tcp 192.0.2.1:80 = works", "tcp 198.51.100.1:80 = refused")
	c, out := n.cmd(nil, "launch", "--ephemeral", "--skip-setup", "shell", "--", "true")
	c.Run()
	if c.ProcessState.ExitCode() != exitLazaret || !strings.Contains(out.String(), "port 18456 of this machine is taken") {
		t.Errorf("a second sandbox with the same port: status %d\n%s", c.ProcessState.ExitCode(), out)
	}
	p.wants("tcp 192.0.2.1:80 = works")
	p.end()
	if diff := n.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndNegativeControl shows why the router has a namespace of its own:
// in a namespace shared with the sandbox, as containers usually share one, the
// same denial holds a program under runc and not one under gVisor, which does
// its own routing.
func TestEndToEndNegativeControl(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"10.64.0.0/10\"]\ndefault_deny = []\n", "")
	p := n.launch() // the image is there now
	p.wants("tcp 10.66.0.10:80 = works")
	p.end()
	shell := n.shellImage()
	const shared = "lazaret-test-shared"
	exec.Command("podman", "rm", "-f", "-t", "0", shared).Run()
	plain := []string{"run", "podman", "--runtime", ordinary(t)}
	n.world.must(append(slices.Clone(plain), "run", "-d", "--name", shared, "--network", "slirp4netns", "--entrypoint=", shell, "sleep", "600")...)
	t.Cleanup(func() { exec.Command("podman", "rm", "-f", "-t", "0", shared).Run() })
	pid, err := exec.Command("podman", "inspect", "--format", "{{.State.Pid}}", shared).Output()
	if err != nil {
		t.Fatal(err)
	}
	n.world.must("blackhole", strings.TrimSpace(string(pid)), "10.64.0.0/10")
	try := func(flags ...string) string {
		args := append([]string{"run", "podman"}, flags...)
		args = append(args, "run", "--rm", "--network", "container:"+shared, "-v", n.ws+":/p:ro", "--entrypoint=", shell, "sh", "-c", "echo tcp 10.66.0.10:80 | /p/lazaret-probe")
		out, err := n.world.do(args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	if got := try("--runtime", plain[3]); strings.Contains(got, "works") {
		t.Errorf("under an ordinary runtime the denial does not hold: %s", got)
	}
	if got := try("--runtime", program(t, "runsc"), "--runtime-flag", "ignore-cgroups"); !strings.Contains(got, "works") {
		t.Errorf("under gVisor the denial in a shared namespace holds after all (%s): the router's design could be simpler", got)
	}
}

// TestEndToEndTenThousand: many ranges cost the router little time and memory.
func TestEndToEndTenThousand(t *testing.T) {
	needE2E(t)
	var deny strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&deny, "\"%d.%d.%d.0/25\",\n", 16+i>>14, i>>6&255, i<<2&255)
	}
	n := newNetworked(t, "default_allow = [\"0.0.0.0/0\"]\ndefault_deny = [\n"+deny.String()+"]\n", "")
	trace := filepath.Join(n.ws, "trace")
	n.env = append(n.env, traceVar+"="+trace)
	p := n.launch()
	p.wants("tcp 16.0.0.1:80 = refused", "tcp 16.0.0.129:80 = works", "tcp 16.155.252.1:80 = refused", "tcp 16.156.64.1:80 = works")
	pid := sidecarPID(t, n.run())
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	worked := workedFor(t, pid)
	p.end()
	var resident int
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(v, &resident)
		}
	}
	events, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]time.Time{}
	for line := range strings.Lines(string(events)) {
		what, when, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if at[what], err = time.Parse(time.RFC3339Nano, when); err != nil {
			t.Fatal(err)
		}
	}
	ready := at["network.policy done"].Sub(at["network.router begin"])
	t.Logf("ready %v after podman was called, having worked for %v, of which the policy took %v; %d KiB resident; all up after %v", ready.Round(time.Millisecond), worked,
		at["network.policy done"].Sub(at["network.policy begin"]).Round(time.Millisecond), resident, at["sandbox begin"].Sub(at["conf begin"]).Round(time.Millisecond))
	if resident == 0 || resident > 16<<10 {
		t.Errorf("%d KiB resident", resident)
	}
	// How long it waits for its turn is the machine's business.
	if ready <= 0 || worked > 2*time.Second {
		t.Errorf("ready after %v, having worked for %v", ready, worked)
	}
}

// workedFor is how long a process has kept processors busy, and the kernel for it.
func workedFor(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return time.Duration(number(t, f[11])+number(t, f[12])) * 10 * time.Millisecond // USER_HZ is 100
}

// program is where a runtime is, for podman to be told.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin") {
			if fi, err := os.Stat(filepath.Join(dir, name)); err == nil && fi.Mode().IsRegular() {
				return filepath.Join(dir, name)
			}
		}
	}
	t.Fatalf("no %s", strings.Join(names, " and no "))
	return ""
}

// ordinary is the runtime that lazaret gives its router, which shares the kernel
// with the machine.
func ordinary(t *testing.T) string {
	t.Helper()
	return program(t, "runc", "crun")
}

// shellImage is the id of the image that the sandboxes here use.
func (n *networked) shellImage() string {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.ws, "lazaret.lock"))
	if err != nil {
		n.t.Fatal(err)
	}
	f, err := lock.Parse(data)
	if err != nil {
		n.t.Fatal(err)
	}
	return f.Profiles["shell"].Image.Platforms[lock.PlatformKey(runtime.GOOS+"/"+runtime.GOARCH)].Config
}

// TestFaultNetwork is TestFaultTable for the steps of the network.
func TestFaultNetwork(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n", `ports = ["18457"]`)
	before := n.quiet()
	steps := slices.DeleteFunc(n.steps(), func(s string) bool { return !strings.HasPrefix(s, "network.") && s != "sandbox" })
	if len(steps) != 11 {
		t.Fatalf("steps %v", steps)
	}
	n.faults(before, steps)
}

// TestFaultGate: whatever becomes of the network, of lazaret or of its helper
// while the sandbox is made beside it, no program runs in the sandbox.
func TestFaultGate(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n", "")
	before := n.quiet()
	mark := filepath.Join(n.ws, "ran")
	for _, f := range []string{"fail:begin:network.router", "fail:begin:network.policy", "fail:done:network.policy", "fail:begin:network.gate", "kill:begin:network.gate", "killall:begin:network.gate", "killall:done:network.policy"} {
		c, out := n.cmd([]string{faultVar + "=" + f}, "launch", "shell", "--", "touch", "/workspace/ran")
		if err := c.Run(); err == nil {
			t.Errorf("%s: it did not fail\n%s", f, out)
		}
		n.must("clean")
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s: the sandbox's command ran", f)
			os.Remove(mark)
		}
		if diff := n.settled(before); diff != "" {
			t.Errorf("%s: the host is not as it was\n%s", f, diff)
		}
	}
	n.must("launch", "shell", "--", "touch", "/workspace/ran")
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("with its network, the sandbox's command does not run: %v", err)
	}
}

// TestEndToEndRates compares what passes through the router with what passes
// without it, from the same runtime over the same user-mode network. Other
// work on the machine moves this a lot, so it is measured again where it is bad. A
// router that takes packets of the wrong size lets a tenth through each time.
func TestEndToEndRates(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n", "")
	const rounds, tries, enough = 3, 4, 0.2
	var best [2]float64 // down, up
	for try := 0; try < tries && min(best[0], best[1]) < enough; try++ {
		direct, routed := n.direct(rounds), n.routed(rounds)
		for i, what := range []string{"down", "up"} {
			d, r := direct[i][rounds/2], routed[i][rounds/2]
			t.Logf("%-4s %6.0f Mbit/s directly, %6.0f through the router: %.2f", what, d, r, r/d)
			best[i] = max(best[i], r/d)
		}
	}
	if min(best[0], best[1]) < enough {
		t.Errorf("the router lets %.2f of what comes in and %.2f of what goes out through, at best", best[0], best[1])
	}
}

// routed are the rates from a sandbox, in and out, each sorted.
func (n *networked) routed(rounds int) (rates [2][]float64) {
	n.t.Helper()
	p := n.launch()
	for range rounds {
		for i, what := range []string{"pull 192.0.2.1:9000", "push 192.0.2.1:9001"} {
			rates[i] = append(rates[i], number(n.t, p.ask(what)))
		}
	}
	p.end()
	slices.Sort(rates[0])
	slices.Sort(rates[1])
	return rates
}

// direct are the same from podman's own network.
func (n *networked) direct(rounds int) (rates [2][]float64) {
	n.t.Helper()
	lines := strings.Repeat("pull 192.0.2.1:9000\npush 192.0.2.1:9001\n", rounds)
	if err := os.WriteFile(filepath.Join(n.ws, "lines"), []byte(lines), 0o644); err != nil {
		n.t.Fatal(err)
	}
	uplink := "slirp4netns"
	if v, err := exec.Command("podman", "--version").Output(); err != nil || strings.Contains(string(v), "version 5.") {
		uplink = "pasta"
	}
	out := n.world.must("run", "podman", "--runtime", program(n.t, "runsc"), "--runtime-flag", "ignore-cgroups", "run", "--rm", "--network", uplink,
		"-v", n.ws+":/p:ro", "--entrypoint=", n.shellImage(), "sh", "-c", "/p/lazaret-probe </p/lines")
	for line := range strings.Lines(out) {
		for i, what := range []string{"pull ", "push "} {
			if _, answer, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(line, what) {
				rates[i] = append(rates[i], number(n.t, answer))
			}
		}
	}
	if len(rates[0]) != rounds || len(rates[1]) != rounds {
		n.t.Fatalf("said:\n%s", out)
	}
	slices.Sort(rates[0])
	slices.Sort(rates[1])
	return rates
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("a rate: %q", s)
	}
	return f
}
