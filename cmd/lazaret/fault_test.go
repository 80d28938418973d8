package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock"
)

// faultVar tells this test binary, when it runs as lazaret, where to fail:
// "fail:begin:STEP", "kill:begin:STEP", "kill:done:STEP", killall, which takes
// the helper along, or hold, which goes on once a file called held is gone. It exists in the test binary only.
const faultVar = "LAZARET_TEST_FAULT"

// traceVar names a file to which the test binary, when it runs as lazaret,
// writes when its steps began and ended.
const traceVar = "LAZARET_TEST_TRACE"

// faultyMain is main with a fault.
func faultyMain() {
	enterWorld()
	d, err := newDeps()
	if err != nil {
		os.Exit(report(os.Stderr, "lazaret", err))
	}
	if spec := os.Getenv(faultVar); spec != "" {
		what, at, _ := strings.Cut(spec, ":")
		d.observe = func(e step.Event) error { return fault(what, at, e) }
	}
	if path := os.Getenv(traceVar); path != "" {
		d.observe = func(e step.Event) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			fmt.Fprintf(f, "%s %s\t%s\n", e.Step, e.Kind, time.Now().Format(time.RFC3339Nano))
			return nil
		}
	}
	os.Exit(d.run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func fault(what, at string, e step.Event) error {
	if e.Kind+":"+e.Step != at {
		return nil
	}
	switch what {
	case "fail":
		return errors.New("made to fail")
	case "hold":
		held := filepath.Join(os.Getenv("XDG_STATE_HOME"), "held")
		if err := os.WriteFile(held, nil, 0o600); err != nil {
			return err
		}
		for {
			if _, err := os.Stat(held); err != nil {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
	case "killall":
		// The helper's pid is in its lock file; before it has started there is none.
		b, _ := os.ReadFile(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lazaret", e.Run, "helper.lock"))
		pid, _, _ := strings.Cut(string(b), "/")
		if n, err := strconv.Atoi(pid); err == nil {
			syscall.Kill(n, syscall.SIGKILL)
		}
		fallthrough
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return fmt.Errorf("unknown fault %q", what)
}

// sandboxed is a workspace with a lock, for tests that kill.
type sandboxed struct {
	t    *testing.T
	ws   string
	env  []string
	self string
}

func newSandboxed(t *testing.T) *sandboxed { return newSandboxedWith(t, shellConfig) }

// newSandboxedWith makes a workspace with a profile called shell, from the
// config for a data directory.
func newSandboxedWith(t *testing.T, config func(data string) string, lock ...string) *sandboxed {
	return newSandboxedIn(t, config, func(string) {}, lock...)
}

// newSandboxedIn is newSandboxedWith for a workspace with more in it.
func newSandboxedIn(t *testing.T, config func(data string) string, furnish func(ws string), lock ...string) *sandboxed {
	dir := t.TempDir()
	t.Cleanup(func() { exec.Command("podman", "unshare", "rm", "-rf", filepath.Join(dir, "data")).Run() })
	s := &sandboxed{t: t, ws: filepath.Join(dir, "ws")}
	var err error
	if s.self, err = exec.LookPath("lazaret"); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"HOME", "XDG_RUNTIME_DIR"} {
		s.env = append(s.env, k+"="+os.Getenv(k))
	}
	s.env = append(s.env, "PATH="+os.Getenv("PATH"), "E2E_SECRET=s3cret",
		"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	if err := os.Mkdir(s.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.ws, "lazaret.toml"), []byte(config(filepath.Join(dir, "data"))), 0o644); err != nil {
		t.Fatal(err)
	}
	furnish(s.ws)
	s.must(append([]string{"lock"}, lock...)...)
	s.must("trust", "--yes")
	s.must("launch", "shell", "--", "true") // the image is there, the volume is made
	return s
}

func (s *sandboxed) cmd(extra []string, args ...string) (*exec.Cmd, *output) {
	c := exec.Command(s.self, args...)
	c.Dir, c.Env = s.ws, append(slices.Clone(s.env), extra...)
	out := &output{}
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = time.Second
	return c, out
}

// must runs lazaret to success and returns what it said.
func (s *sandboxed) must(args ...string) string {
	s.t.Helper()
	c, out := s.cmd(nil, args...)
	if err := c.Run(); err != nil {
		s.t.Fatalf("lazaret %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out.String()
}

// host is what must be the same after as before, as text: containers, run
// records, processes, mounts, and every file of the workspace and beside it.
func (s *sandboxed) host() string {
	s.t.Helper()
	var b strings.Builder
	out, err := exec.Command("podman", "ps", "-a", "--format", "container {{.Names}}").Output()
	if err != nil {
		s.t.Fatalf("podman ps: %v", err)
	}
	b.Write(out)
	runs := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lazaret")
	for _, dir := range []string{runs, filepath.Dir(s.ws)} {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				fmt.Fprintf(&b, "%s: %v\n", path, err)
				return nil
			}
			if strings.HasSuffix(path, "/.lazaret/run") {
				return nil // made by the first run that keeps nothing; what is in it counts
			}
			fi, _ := d.Info()
			fmt.Fprintf(&b, "%s %s\n", path, fi.Mode())
			if strings.HasSuffix(path, "_changes") {
				return fs.SkipDir // what persists
			}
			return nil
		})
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		line, _ := os.ReadFile(p)
		text := strings.ReplaceAll(string(line), "\x00", " ")
		if strings.Contains(text, launch.HelperCommand) || strings.Contains(text, "runsc") || strings.Contains(text, "conmon") || strings.Contains(text, "fuse-overlayfs") {
			fi, err := os.Stat(filepath.Dir(p))
			if err == nil && ownerOf(fi) == os.Getuid() {
				fmt.Fprintf(&b, "process %s\n", text)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		s.t.Fatal(err)
	}
	// Those of others come and go.
	ours := []string{os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR"), filepath.Dir(s.ws)}
	for line := range strings.Lines(string(mounts)) {
		at := strings.Fields(line)[4]
		if slices.ContainsFunc(ours, func(dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }) {
			fmt.Fprintf(&b, "mount %s\n", at)
		}
	}
	return b.String()
}

// quiet is host once nothing runs: what ran before, in another test too, may take
// a moment to be gone. What stays for ten seconds is the person's own.
func (s *sandboxed) quiet() (host string) {
	s.t.Helper()
	runs, was, since := regexp.MustCompile(`(?m)^(container|process) `), "", time.Now()
	eventually(func() bool {
		if host = s.host(); host != was {
			was, since = host, time.Now()
		}
		return !runs.MatchString(host) || time.Since(since) > 10*time.Second
	})
	return host
}

// settled waits until the host is as it was: a process that was killed may
// take a moment to be gone.
func (s *sandboxed) settled(before string) string {
	s.t.Helper()
	var now string
	if eventually(func() bool { now = s.host(); return now == before }) {
		return ""
	}
	return difference(before, now)
}

// difference shows the lines that only one of two texts has.
func difference(before, now string) string {
	var b strings.Builder
	only := func(sign, text, other string) {
		for _, line := range strings.Split(text, "\n") {
			if !slices.Contains(strings.Split(other, "\n"), line) {
				fmt.Fprintf(&b, "%s %s\n", sign, line)
			}
		}
	}
	only("-", before, now)
	only("+", now, before)
	if b.Len() == 0 {
		return fmt.Sprintf("before:\n%safter:\n%s", before, now) // the order, or how often
	}
	return b.String()
}

// steps are the names of the plan's steps.
func (s *sandboxed) steps() []string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.ws, "lazaret.lock"))
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := lock.Parse(data)
	if err != nil {
		s.t.Fatal(err)
	}
	helpers, err := ownHelpers()
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := launch.Probe(f, "shell", launch.Env{Getenv: os.Getenv, LookupEnv: os.LookupEnv, Workspace: s.ws, Lazaret: s.self})
	if err != nil {
		s.t.Fatal(err)
	}
	plan, err := launch.Resolve(f, "shell", h, launch.Options{ID: launch.NewID(), Helpers: helpers})
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, st := range plan.Steps {
		names = append(names, st.Name)
	}
	return names
}

// TestFaultTable makes every step of a launch fail, and kills lazaret before
// and after every step, alone and together with its helper: afterwards the
// host is as it was, after a failure at once, after a kill with "lazaret clean" or
// the next launch.
func TestFaultTable(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	s.repository()
	before := s.quiet()
	steps := s.steps()
	if len(steps) < 5 || !slices.Contains(steps, "git.shadow") || !slices.Contains(steps, "mask /workspace/hooks/deep") {
		t.Fatalf("only %d steps: %v", len(steps), steps)
	}
	if only := os.Getenv("LAZARET_FAULT_STEPS"); only != "" {
		steps = strings.Split(only, ",")
	}
	s.faults(before, steps)
}

// TestFaultFuse does the same to the steps that a fuse-overlayfs changes: its
// daemon would live on, and hold the dead helper's mounts.
func TestFaultFuse(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, func(data string) string {
		return strings.Replace(shellConfig(data), "[network]", "overlay = \"fuse-overlayfs\"\n[network]", 1)
	})
	before := s.quiet()
	s.faults(before, []string{"overlay /root", "sandbox"})
}

// TestFaultKept kills in the middle of writing: what a sandbox has written and
// closed is there the next time, with both drivers.
func TestFaultKept(t *testing.T) {
	needE2E(t)
	for _, driver := range []string{"native", "fuse-overlayfs"} {
		s := newSandboxedWith(t, func(data string) string {
			return strings.Replace(shellConfig(data), "[network]", "overlay = \""+driver+"\"\n[network]", 1)
		})
		before := s.quiet()
		for _, what := range []string{"lazaret", "helper too", "sandbox dies of a signal"} {
			mark := filepath.Join(s.ws, "running")
			c, out := s.cmd(nil, "launch", "shell", "--", "sh", "-c",
				"i=0; while :; do i=$((i+1)); echo $i >/root/f$i; echo $i >/workspace/n; [ $i != 20 ] || echo >/workspace/running; done")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			s.await(mark, out)
			switch what {
			case "helper too":
				syscall.Kill(s.helper(), syscall.SIGKILL)
				fallthrough
			case "lazaret":
				c.Process.Kill()
			default:
				c.Process.Signal(syscall.SIGTERM)
			}
			c.Wait()
			s.must("clean")
			got := s.must("launch", "shell", "--", "sh", "-c",
				"n=$(cat /workspace/n); [ \"$n\" ] || n=20; i=0; while [ $i != $n ]; do i=$((i+1)); [ $(cat /root/f$i) = $i ] || exit 9; rm /root/f$i; done; rm -f /root/f*; echo $n files")
			t.Logf("%s, killed %s: %s", driver, what, strings.TrimSpace(got))
			os.Remove(filepath.Join(s.ws, "n"))
			if diff := s.settled(before); diff != "" {
				t.Errorf("%s, killed %s: the host is not as it was\n%s", driver, what, diff)
			}
		}
		// A mount of fuse-overlayfs whose daemon died with somebody else's session.
		if driver == "native" {
			continue
		}
		merged := filepath.Join(filepath.Dir(s.ws), "data/shell/root_merged")
		const dead = "fuse-overlayfs -f -o lowerdir=/,upperdir=root_changes,workdir=root_work root_merged & " +
			"until grep -q root_merged /proc/self/mounts || ! kill -0 $!; do sleep 0.1; done; kill -KILL $!; wait; ls root_merged"
		c := exec.Command("podman", "unshare", "sh", "-c", dead)
		c.Dir = filepath.Dir(merged)
		if out, _ := c.CombinedOutput(); !strings.Contains(string(out), "not connected") {
			t.Errorf("no dead mount: %s", out)
		}
		s.must("launch", "shell", "--", "sh", "-c", "echo works >/root/after")
		if got := s.must("launch", "shell", "--", "cat", "/root/after"); got != "works\n" {
			t.Errorf("after a dead mount: %q", got)
		}
		exec.Command("podman", "unshare", "umount", "-l", merged).Run()
	}
}

// TestFaultSetup fails and kills around the set-up: what is kept is as it was
// before, or all of the set-up is in it, and never a part.
func TestFaultSetup(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, func(data string) string {
		return strings.Replace(shellConfig(data), "persistent_dirs", `setup = ["[ -e /workspace/stamp ] || exit 0; cat /workspace/stamp >/root/stamp; cp /workspace/stamp /etc/stamp; rm -rf /root/d; mkdir /root/d; cp /workspace/stamp /root/d/"]
persistent_dirs`, 1)
	})
	setupRecord := filepath.Join(filepath.Dir(s.ws), "data/.lazaret/state/shell/setup.json")
	stamp := func(n int) {
		if err := os.WriteFile(filepath.Join(s.ws, "stamp"), []byte(strconv.Itoa(n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stamp(0)
	os.Remove(setupRecord)
	s.must("launch", "shell", "--", "true")
	before := s.quiet()
	n, kept := 0, "0"
	for _, name := range []string{"setup.overlay /root", "setup", "setup.keep"} {
		for _, f := range []string{"fail:begin:", "kill:done:", "killall:begin:", "killall:done:"} {
			n++
			stamp(n)
			os.Remove(setupRecord) // it is due
			c, out := s.cmd([]string{faultVar + "=" + f + name}, "launch", "shell", "--", "true")
			if err := c.Run(); err == nil {
				t.Errorf("%s%s: it did not fail\n%s", f, name, out)
			}
			s.must("clean")
			got := s.must("launch", "--skip-setup", "shell", "--", "sh", "-c", "cat /root/stamp /etc/stamp /root/d/stamp; echo; ls -A /root /root/d | wc -l")
			all := func(v string) string { return v + v + v + "\n" }
			if !strings.HasPrefix(got, all(kept)) && !strings.HasPrefix(got, all(strconv.Itoa(n))) {
				t.Errorf("%s%s: half a set-up: %q, before %q", f, name, got, kept)
			}
			if strings.HasPrefix(got, all(strconv.Itoa(n))) {
				kept = strconv.Itoa(n)
			}
			if _, err := os.Stat(setupRecord); err != nil {
				s.must("launch", "shell", "--", "true")
				kept = strconv.Itoa(n)
			}
			if diff := s.settled(before); diff != "" {
				t.Errorf("%s%s: the host is not as it was\n%s", f, name, diff)
			}
		}
	}
	if n < 12 || kept == "0" {
		t.Errorf("%d faults, %s kept", n, kept)
	}
}

// repository makes the workspace one, with hooks where there are none yet.
func (s *sandboxed) repository() {
	s.t.Helper()
	c := exec.Command("sh", "-euc", `git init -q -b main; git add .; git -c user.name=Dev -c user.email=d@example.org -c commit.gpgsign=false commit -qm first; git config core.hooksPath hooks/deep`)
	c.Dir = s.ws
	if out, err := c.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	s.must("launch", "shell", "--", "true")
}

// faults makes each of the steps fail in every way.
func (s *sandboxed) faults(before string, steps []string) {
	t := s.t
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-28s %-6s %-6s %-6s %-8s %-8s\n", "step", "fails", "kill<", "kill>", "killall<", "killall>")
	for _, name := range steps {
		fmt.Fprintf(&table, "%-28s", name)
		for _, f := range []string{"fail:begin:", "kill:begin:", "kill:done:", "killall:begin:", "killall:done:"} {
			start := time.Now()
			c, out := s.cmd([]string{faultVar + "=" + f + name}, "launch", "shell", "--", "true")
			err := c.Run()
			if strings.HasPrefix(f, "fail") {
				if c.ProcessState.ExitCode() != exitLazaret || !strings.Contains(out.String(), name+": made to fail") {
					t.Errorf("%s%s: %v\n%s", f, name, err, out)
				}
			} else {
				if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
					t.Errorf("%s%s: not killed: %v\n%s", f, name, err, out)
				}
				// Either repairs: the command, and the next launch.
				if strings.Contains(f, "all") {
					s.must("clean")
				} else {
					s.must("launch", "shell", "--", "true")
				}
			}
			verdict := "ok"
			if diff := s.settled(before); diff != "" {
				verdict = "LEAKS"
				t.Errorf("%s%s: the host is not as it was\n%s", f, name, diff)
			}
			fmt.Fprintf(&table, " %s %3dms", verdict, time.Since(start).Milliseconds())
		}
		table.WriteByte('\n')
	}
	t.Log(table.String())
}

// start launches a sandbox that stays, and waits until it runs.
func (s *sandboxed) start(flags ...string) (*exec.Cmd, *output) {
	s.t.Helper()
	mark := filepath.Join(s.ws, "running")
	os.Remove(mark)
	args := append(append([]string{"launch"}, flags...), "shell", "--", "sh", "-c", "echo > /workspace/running; exec sleep 300")
	c, out := s.cmd(nil, args...)
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM) }) // where the test gave up
	s.await(mark, out)
	return c, out
}

// await waits for the sandbox to leave its mark.
func (s *sandboxed) await(mark string, out *output) {
	s.t.Helper()
	if !eventually(func() bool { return exists(mark) }) {
		s.t.Fatalf("the sandbox does not start:\n%s", out)
	}
	os.Remove(mark)
}

// run is the id of the sandbox that runs.
func (s *sandboxed) run() string {
	s.t.Helper()
	var runs []launch.Record
	if err := json.Unmarshal([]byte(s.must("ps", "--json")), &runs); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range runs {
		if r.Workspace == s.ws {
			return r.ID
		}
	}
	s.t.Fatalf("no run in %v", runs)
	return ""
}

// helper is the pid of the helper of the sandbox that runs.
func (s *sandboxed) helper() int {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lazaret", s.run(), "helper.lock"))
	if err != nil {
		s.t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(b), "/")
	n, err := strconv.Atoi(pid)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestFaultSignals ends running sandboxes from outside.
func TestFaultSignals(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	before := s.quiet()
	t.Run("ps", func(t *testing.T) {
		c, _ := s.start()
		if out := s.must("ps"); !strings.Contains(out, "shell") || !strings.Contains(out, s.ws) {
			t.Errorf("ps says:\n%s", out)
		}
		if out := s.must("clean"); out != "" {
			t.Errorf("clean touched a sandbox that runs:\n%s", out)
		}
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if out := s.must("ps", "--json"); strings.Contains(out, s.ws) {
			t.Errorf("ps --json still says %q", out)
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			c, out := s.start()
			c.Process.Signal(sig)
			time.Sleep(20 * time.Millisecond) // signals sent at once have no order
			c.Process.Signal(sig)             // a second one does not cut the teardown short
			c.Process.Signal(syscall.SIGTERM)
			c.Wait()
			if got, want := c.ProcessState.ExitCode(), 128+int(sig); got != want {
				t.Errorf("exit status %d, want %d\n%s", got, want, out)
			}
			if diff := s.settled(before); diff != "" {
				t.Errorf("the host is not as it was\n%s", diff)
			}
		})
	}
	t.Run("kill", func(t *testing.T) {
		c, _ := s.start()
		c.Process.Kill()
		c.Wait()
		s.must("clean")
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
	t.Run("helper that hangs", func(t *testing.T) {
		c, out := s.start()
		n := s.helper()
		syscall.Kill(n, syscall.SIGSTOP)
		t.Cleanup(func() { syscall.Kill(n, syscall.SIGCONT) })
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if got := c.ProcessState.ExitCode(); got != 128+int(syscall.SIGTERM) {
			t.Errorf("exit status %d\n%s", got, out)
		}
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
	t.Run("doctor and pull after a kill", func(t *testing.T) {
		for _, next := range []string{"doctor", "pull"} {
			c, out := s.cmd([]string{faultVar + "=killall:done:mask /workspace/.git"}, "launch", "shell", "--", "true")
			if c.Run(); c.ProcessState.ExitCode() != -1 {
				t.Errorf("not killed\n%s", out)
			}
			s.must(next, "shell")
			if diff := s.settled(before); diff != "" {
				t.Errorf("after %s, the host is not as it was\n%s", next, diff)
			}
		}
	})
	t.Run("kill of the helper", func(t *testing.T) {
		c, out := s.start()
		n := s.helper()
		syscall.Kill(n, syscall.SIGKILL)
		c.Wait()
		if c.ProcessState.ExitCode() != exitLazaret {
			t.Errorf("exit status %d\n%s", c.ProcessState.ExitCode(), out)
		}
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
	t.Run("closed terminal", func(t *testing.T) {
		mark := filepath.Join(s.ws, "running")
		c, _ := s.cmd(nil, "launch", "shell", "--", "sh", "-c", "echo > /workspace/running; exec sleep 300")
		c.Stdout, c.Stderr = nil, nil
		ptmx, err := pty.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		s.await(mark, nil)
		ptmx.Close()
		c.Wait()
		if got := c.ProcessState.ExitCode(); got != 128+int(syscall.SIGHUP) {
			t.Errorf("exit status %d", got)
		}
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
	t.Run("podman's pause process", func(t *testing.T) {
		b, err := os.ReadFile(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "libpod", "tmp", "pause.pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		syscall.Kill(pid, syscall.SIGKILL)
		s.must("launch", "shell", "--", "true")
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	})
}

// TestFaultNeighbours has two sandboxes in one workspace: the masks that the
// first made stay until the second has ended too.
func TestFaultNeighbours(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	before := s.quiet()
	first, _ := s.start()
	second, out := s.start("--ephemeral") // the first has the profile's state
	first.Process.Signal(syscall.SIGTERM)
	first.Wait()
	for _, mask := range []string{".git", ".vscode", ".idea"} {
		if _, err := os.Stat(filepath.Join(s.ws, mask)); err != nil {
			t.Errorf("the second sandbox has lost its mask: %v", err)
		}
	}
	second.Process.Signal(syscall.SIGTERM)
	second.Wait()
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s%s", diff, out)
	}
}

// ownerOf is the uid of a file's owner.
func ownerOf(fi fs.FileInfo) int { return int(fi.Sys().(*syscall.Stat_t).Uid) }
