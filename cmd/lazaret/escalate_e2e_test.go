package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/escalate"
	"lazaret/launch"
)

// escalateConfig is a workspace's config for sandboxes that may ask.
func escalateConfig(data string) string {
	return fmt.Sprintf(`[storage]
data_root = %q
[network]
default_allow = []
default_deny = []
[escalation]
enabled = true
socket_dir = "{runtime_dir}/lazaret/sockets"
timeout = "1m"
auto_approve = ["true", "id", "show-it"]
[profiles.shell]
image = %q
volumes = [{ host = "{profile_dir}/cache", container = "/cache" }]
`, data, "oci:"+os.Getenv("LAZARET_DEBIAN"))
}

// asking is a sandbox that may ask, and the person at its host.
type asking struct {
	*sandboxed
	out *output
	cmd *exec.Cmd
	far launch.Far
}

// begin launches a sandbox that runs a script, and finds where it asks.
func (s *sandboxed) begin(t *testing.T, script string) *asking {
	t.Helper()
	mark := filepath.Join(s.ws, "running")
	os.WriteFile(filepath.Join(s.ws, "script.sh"), []byte("echo > /workspace/running\n"+script), 0o644)
	c, out := s.cmd(nil, "launch", "shell", "--", "bash", "/workspace/script.sh")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM) })
	s.await(mark, out)
	env := launch.Env{Getenv: os.Getenv}
	all, err := launch.Asking(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Record.Workspace == s.ws {
			return &asking{s, out, c, f}
		}
	}
	t.Fatalf("the sandbox may not ask:\n%s", out)
	return nil
}

// next waits for the next request.
func (a *asking) next(t *testing.T) escalate.Ask {
	t.Helper()
	for range 200 {
		p, err := a.far.Pending(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, a.out)
		}
		if len(p) > 0 {
			return p[0]
		}
		<-a.far.Changed()
	}
	t.Fatalf("it asks for nothing:\n%s", a.out)
	return escalate.Ask{}
}

func (a *asking) answer(t *testing.T, v escalate.Verdict) escalate.Ask {
	t.Helper()
	ask := a.next(t)
	if v.Kind == escalate.Approve {
		argv := ask.Argv
		if v.Argv != nil {
			argv = v.Argv
		}
		r, err := a.far.Resolve(t.Context(), argv)
		if err != nil {
			t.Fatal(err)
		}
		v.Program, v.Marks = r.Program, r.Marks
	}
	if err := a.far.Answer(t.Context(), ask.Seq, v); err != nil {
		t.Fatalf("answering %q: %v", ask.Argv, err)
	}
	return ask
}

// end waits for the sandbox to end and gives what was printed.
func (a *asking) end(t *testing.T, status int) string {
	t.Helper()
	a.cmd.Wait()
	if got := a.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d, want %d\n%s", got, status, a.out)
	}
	return a.out.String()
}

// TestEndToEndEscalate asks a real host from a real sandbox: what runs by itself,
// what a person in another terminal answers, what the sandbox cannot touch.
func TestEndToEndEscalate(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, escalateConfig, "--platform", "linux/amd64")
	if out, err := exec.Command("git", "-C", s.ws, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.must("launch", "shell", "--", "true")
	before := s.quiet()
	sock := func(path string) net.Listener {
		os.MkdirAll(filepath.Dir(path), 0o755)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("REACHED\n"))
				c.Close()
			}
		}()
		return l
	}
	sock(filepath.Join(s.ws, "deep/down/.overmind.sock"))
	sock(filepath.Join(s.ws, "agent.sock"))
	sock(filepath.Join(s.ws, ".git/fsmonitor--daemon.ipc"))

	t.Run("asking", func(t *testing.T) {
		a := s.begin(t, `
e=lazaret-escalate
connect() { perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => shift) or die "no: $!\n"; print <$s>' "$1" 2>&1; }
echo "auto: $($e id -u) $?"
echo "pwd in json: $($e --json -- true)"
$e --reason 'to leave a mark' -- sh -c 'pwd; echo host > mark; exit 3'; echo "approved: $?"
$e --reason 'again' -- touch never; echo "denied: $?"
$e -- touch this; echo "edited: $?"
echo "kind: Secret" | $e --stdin -- cat; echo "stdin: $?"
setpriv --reuid 1234 --regid 1234 --clear-groups $e id -u; echo "another user: $?"
setpriv --reuid 1234 --regid 1234 --clear-groups /run/lazaret/escalate true; echo "by its path: $?"
for f in /run/lazaret/escalate /run/lazaret/escalate.sock /run/lazaret/certs/client.key /run/lazaret/bin/lazaret-escalate; do
	(rm -f $f || mv $f /tmp/x || echo x > $f || ln -sf /bin/true $f) 2>/dev/null && echo "CHANGED $f"
done
mount -t tmpfs none /run/lazaret/certs 2>/dev/null && echo MOUNTED
for x in /workspace/deep/down/.overmind.sock /workspace/agent.sock; do echo "hidden: $(connect $x)"; done
found=$(find /run/lazaret /workspace -name 'fsmonitor*'); for x in $found; do echo "git: $(connect $x)"; done
mv /workspace/deep /workspace/moved; mkdir -p /workspace/deep/down; echo "moved: $(connect /workspace/moved/down/.overmind.sock)"
ls -la /run/lazaret/git /workspace/.git
mv /workspace/agent.sock /workspace/renamed.sock && echo "renamed: $(connect /workspace/renamed.sock)"; mv /workspace/renamed.sock /workspace/agent.sock
ln /workspace/agent.sock /workspace/linked 2>/dev/null && connect /workspace/linked
rm -f /workspace/agent.sock; ls -la /workspace/agent.sock /run/lazaret /workspace/moved/down
connect /run/lazaret/escalate.sock | head -c 20 | tr -d '\0'; echo "plain: done"
`)
		ask := a.answer(t, escalate.Verdict{Kind: escalate.Approve, By: "test"})
		if ask.Reason != "to leave a mark" || ask.Profile != "shell" || ask.Dir != s.ws || !strings.HasSuffix(ask.Program, "sh") && !strings.HasSuffix(ask.Program, "/dash") {
			t.Errorf("%+v", ask)
		}
		a.answer(t, escalate.Verdict{By: "test"})
		a.answer(t, escalate.Verdict{Kind: escalate.Approve, Argv: []string{"echo", "something else"}, By: "test"})
		if ask := a.answer(t, escalate.Verdict{Kind: escalate.Approve, By: "test"}); string(ask.Stdin) != "kind: Secret\n" || ask.StdinSHA256 == "" {
			t.Errorf("%+v", ask)
		}
		out := a.end(t, 0)
		uid := fmt.Sprint(os.Getuid())
		for _, want := range []string{
			"auto: " + uid + " 0\n", `"approved":true,"exit_code":0`, s.ws + "\napproved: 3\n", "lazaret-escalate: denied: by the person at the host\n", "denied: 77\n",
			"something else\n", "lazaret-escalate: the person at the host ran this instead: echo 'something else'\n", "edited: 0\n", "kind: Secret\nstdin: 0\n",
			uid + "\nanother user: 0\n", "by its path: 0\n", "hidden: no: ", "moved: no: ", "git: no: ", "plain: done",
			"sockets of this machine that the sandbox does not see: /workspace/.git/fsmonitor--daemon.ipc, /workspace/agent.sock, /workspace/deep/down/.overmind.sock\n",
			"lazaret: asked for 8 commands of this machine: 4 ran without asking, 3 approved, 1 denied (lazaret log)\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in", want)
			}
		}
		for _, bad := range []string{"CHANGED", "MOUNTED", "REACHED"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s", bad)
			}
		}
		if b, _ := os.ReadFile(filepath.Join(s.ws, "mark")); string(b) != "host\n" {
			t.Errorf("the host's mark is %q", b)
		}
		for _, name := range []string{"never", "this"} {
			if _, err := os.Stat(filepath.Join(s.ws, name)); err == nil {
				t.Errorf("%s was made", name)
			}
		}
		if t.Failed() {
			t.Log(out)
		}
		log := s.must("log")
		for _, want := range []string{"decided id -u: approved by auto_approve", "asked touch never: because: again", "decided touch never: denied by test: by the person at the host", "exit status 3 after"} {
			if !strings.Contains(log, want) {
				t.Errorf("no %q in the log:\n%s", want, log)
			}
		}
	})

	t.Run("abort", func(t *testing.T) {
		const script = `
(while sleep 0.1; do echo >> /workspace/count; done) &
lazaret-escalate -- sleep 1000; echo "aborted: $?"
lazaret-escalate true; echo "shut: $?"
until [ -e /workspace/end ]; do sleep 0.1; done
`
		a := s.begin(t, script)
		sock(filepath.Join(s.ws, "late.sock")) // a running sandbox sees it
		a.next(t)
		ctx := context.Background()
		if err := a.far.Abort(ctx); err != nil {
			t.Fatal(err)
		}
		if err := a.far.Suspend(ctx); err != nil {
			t.Fatal(err)
		}
		// The file only grows: one that is written anew can stand still empty.
		count := func() int { b, _ := os.ReadFile(filepath.Join(s.ws, "count")); return len(b) }
		time.Sleep(200 * time.Millisecond)
		was := count()
		time.Sleep(time.Second)
		if now := count(); now != was {
			t.Errorf("it goes on while it is suspended: %d, %d", was, now)
		}
		if err := a.far.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if !eventually(func() bool { return count() > was }) {
			t.Errorf("it does not go on after that: %d", was)
		}
		a.out.await(t, "opened the socket") // every two seconds somebody looks
		s.touch("end")
		out := a.end(t, 0)
		os.Remove(filepath.Join(s.ws, "end"))
		if !strings.Contains(out, "aborted: 77") || !strings.Contains(out, "shut: 69") ||
			!strings.Contains(out, "a program of this machine opened the socket "+filepath.Join(s.ws, "late.sock")+", and the sandbox can connect to it") {
			t.Error(out)
		}
		// And ended while it stands still.
		a = s.begin(t, script)
		a.next(t)
		if err := a.far.Suspend(ctx); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := a.far.End(ctx); err != nil {
			t.Fatal(err)
		}
		if out := a.end(t, exitLazaret); !strings.Contains(out, launch.ErrEnded.Error()) || time.Since(start) > time.Minute {
			t.Errorf("after %s: %s", time.Since(start), out)
		}
		// And killed while it stands still, lazaret alone and with its helper:
		// podman forgets a sandbox that stands still, and it lives.
		for _, all := range []bool{false, true} {
			a = s.begin(t, script)
			a.next(t)
			if err := a.far.Suspend(ctx); err != nil {
				t.Fatal(err)
			}
			if all {
				syscall.Kill(s.helper(), syscall.SIGKILL)
			}
			a.cmd.Process.Kill()
			a.cmd.Wait()
			s.must("clean")
			if left := runscs(t); left != "" {
				t.Errorf("helper killed too: %v: left are\n%s", all, left)
			}
		}
	})

	t.Run("end of everything", func(t *testing.T) {
		// What runs on the host for a sandbox ends with it, also where lazaret is
		// killed.
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			pid := filepath.Join(s.ws, "pid")
			os.Remove(pid)
			a := s.begin(t, `lazaret-escalate -- sh -c 'setsid sh -c "echo \$\$ > pid; exec sleep 1000" & sleep 1000'`)
			a.answer(t, escalate.Verdict{Kind: escalate.Approve})
			n := awaitNumber(t, pid)
			a.cmd.Process.Signal(sig)
			a.cmd.Wait()
			if !eventually(func() bool { return syscall.Kill(n, 0) != nil }) {
				syscall.Kill(n, syscall.SIGKILL)
				t.Fatalf("after %v, process %d lives", sig, n)
			}
		}
		s.must("clean")
		for _, name := range []string{"pid", "mark", "count", "script.sh", "deep", "moved", "agent.sock", "renamed.sock", "late.sock", ".git/fsmonitor--daemon.ipc"} {
			os.RemoveAll(filepath.Join(s.ws, name))
		}
		os.Remove(filepath.Join(filepath.Dir(s.ws), "state/lazaret/audit.jsonl"))
		if diff := s.settled(strings.ReplaceAll(before, filepath.Join(filepath.Dir(s.ws), "state/lazaret/audit.jsonl")+" -rw-------\n", "")); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
}

// runscs lists processes of sandboxes, once those that end have had the time.
func runscs(t *testing.T) (out string) {
	t.Helper()
	eventually(func() bool {
		b, err := exec.Command("ps", "-u", fmt.Sprint(os.Getuid()), "-o", "pid=,stat=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		out = ""
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "runsc-") || strings.Contains(line, "[exe]") {
				out += line
			}
		}
		return out == ""
	})
	return out
}

// TestFaultEscalate makes the steps of a sandbox that may ask fail in every way.
func TestFaultEscalate(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, func(data string) string {
		return strings.ReplaceAll(escalateConfig(data), "oci:"+os.Getenv("LAZARET_DEBIAN"), "builtin:shell")
	})
	before := s.quiet()
	var steps []string
	for _, name := range s.steps() {
		if strings.HasPrefix(name, "escalate.") || name == "sockets /workspace" || name == "bind /run/lazaret/escalate.sock" {
			steps = append(steps, name)
		}
	}
	if len(steps) < 6 {
		t.Fatalf("only %q", steps)
	}
	s.faults(before, steps)
}
