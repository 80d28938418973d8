package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newDetached is a sandboxed whose sandboxes end with the test.
func newDetached(t *testing.T) *sandboxed {
	s := newSandboxed(t)
	t.Cleanup(func() {
		c, _ := s.cmd(nil, "stop", "--all")
		c.Run()
	})
	return s
}

// forget removes what is kept of detached runs on purpose.
func (s *sandboxed) forget() {
	os.RemoveAll(filepath.Join(filepath.Dir(s.ws), "state/lazaret/detached"))
}

var runID = regexp.MustCompile(`(?m)^[0-9a-f]{12}$`)

// supervisor is the process of the only lazaret that runs: its helper's parent.
func (s *sandboxed) supervisor() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.helper()))
	if err != nil {
		s.t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(regexp.MustCompile(`PPid:\s+([0-9]+)`).FindSubmatch(b)[1]))
	if err != nil || pid <= 1 {
		s.t.Fatalf("the helper's parent is %d, %v", pid, err)
	}
	return pid
}

// TestEndToEndDetach launches without staying, and comes and goes.
func TestEndToEndDetach(t *testing.T) {
	needE2E(t)
	s := newDetached(t)
	before := s.quiet()
	d := newDesktop(t, s)
	d.open("launch")
	d.open("one")
	d.open("two")
	d.line("launch", "lazaret launch --detach shell")
	shown := d.wait("launch", `(?s)runs detached; .*host\$$`)
	id := runID.FindString(shown)
	if id == "" {
		t.Fatalf("no id:\n%s", shown)
	}
	pid := s.supervisor()
	if words := s.must("__complete", "attach", ""); !strings.Contains(words, "shell\n"+id+"\tshell in ") {
		t.Errorf("completed:\n%s", words)
	}
	d.tmux("kill-window", "-t", "launch") // hangs up
	syscall.Kill(pid, syscall.SIGHUP)

	plain := d.modes("one")
	d.line("one", "echo mine; lazaret attach")
	d.wait("one", `(?s)^/workspace #$`)
	d.line("one", "stty size; cat /proc/1/comm; printf '\\033[?2004h'")
	d.wait("one", `(?s)30 100.*sh\n.*/workspace #$`)
	s.told("running, attached", "ps")
	s.told(id, "ps")
	d.line("two", "lazaret attach shell")
	d.wait("two", `(?s)error: run `+id+` \(shell\): process \d+ on /dev/pts/\d+ is attached to it.*--take`)
	d.keys("one", "C-p", "C-q")
	d.wait("one", `(?s)30 100.*note: left shell, which goes on; .*host\$$`)
	d.leftAs("one", plain)
	s.told(`"detached":true,"attached":false`, "ps", "--json")

	// Whoever comes next sees what was there, in a terminal of another size.
	d.tmux("resize-window", "-t", "two", "-x", "70", "-y", "20")
	d.line("two", "clear; lazaret attach "+id)
	d.wait("two", `(?s)^/workspace # stty size.*30 100.*/workspace #$`)
	d.until("two", "stty size", `20 70\n/workspace #$`)
	d.line("one", "clear; lazaret attach --take")
	d.wait("one", `(?s)20 70.*/workspace #$`)
	taken := d.wait("two", `(?s)note: process \d+ on /dev/pts/\d+ has attached to shell.*host\$$`)

	// A viewer that is killed leaves the terminal as it was, and the sandbox.
	viewer, err := strconv.Atoi(regexp.MustCompile(`note: process (\d+) on`).FindStringSubmatch(taken)[1])
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(viewer, syscall.SIGKILL)
	d.wait("one", `(?s)Killed.*host\$$`)
	d.line("one", "clear; stty -a | grep -ow -e '-*icanon' -e '-*echo'")
	d.wait("one", `(?s)^icanon\necho\nhost\$$`)
	d.leftAs("one", plain)
	d.line("one", "clear; lazaret attach")
	d.wait("one", `(?s)20 70.*/workspace #$`)
	d.tmux("kill-window", "-t", "one") // so does a window that is closed

	// Without a terminal: what is printed from now on, and the status.
	follow, out := s.cmd(nil, "attach", id)
	s.told("detached", "ps")
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	s.told("running, attached", "ps")
	d.line("two", "clear; lazaret exec "+id+" -- sh -c 'echo by another >/proc/1/fd/1; kill -HUP 1'")
	if err := follow.Wait(); err == nil || !strings.Contains(out.String(), "by another") {
		t.Errorf("followed to %v: %q", err, out)
	}
	status := follow.ProcessState.ExitCode()
	again, out := s.cmd(nil, "attach", id)
	if again.Run(); again.ProcessState.ExitCode() != status || status == 0 || !strings.Contains(out.String(), "ended on") || !strings.Contains(out.String(), "by another") {
		t.Errorf("how it ended: status %d, was %d: %s", again.ProcessState.ExitCode(), status, out)
	}
	gone, out := s.cmd(nil, "attach", "shell")
	if gone.Run(); gone.ProcessState.ExitCode() != exitLazaret || !strings.Contains(out.String(), `hint: the last one has ended: "lazaret attach `+id+`" tells how`) {
		t.Errorf("attach to none: %s", out)
	}
	s.forget()
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// told waits until lazaret says something.
func (s *sandboxed) told(text string, args ...string) {
	s.t.Helper()
	out := ""
	if !eventually(func() bool { out = s.must(args...); return strings.Contains(out, text) }) {
		s.t.Fatalf("lazaret %s does not say %s:\n%s", strings.Join(args, " "), text, out)
	}
}

// leftAs waits until a terminal's modes are what they were.
func (d *desktop) leftAs(window, plain string) {
	d.t.Helper()
	now := ""
	if !eventually(func() bool { now = d.modes(window); return now == plain }) {
		d.t.Errorf("the terminal is left as %s, was %s", now, plain)
	}
}

// modes are what tmux knows of a terminal besides what it shows.
func (d *desktop) modes(window string) string {
	s := d.state(window)
	return regexp.MustCompile(`cursor \d+,\d+`).ReplaceAllString(s[strings.LastIndex(strings.TrimSuffix(s, "\n"), "\n")+1:], "cursor")
}

// TestEndToEndDetachTakesStatus: attach ends with the sandbox, as launch does.
func TestEndToEndDetachTakesStatus(t *testing.T) {
	needE2E(t)
	s := newDetached(t)
	before := s.quiet()
	d := newDesktop(t, s)
	d.open("one")
	s.must("launch", "--detach", "shell")
	d.line("one", "lazaret attach; echo status $?")
	d.wait("one", `/workspace #$`)
	d.line("one", "exit 5")
	d.wait("one", `(?s)exit 5.*status 5\nhost\$$`)

	// Its lazaret is killed: the viewer's terminal is as it was all the same.
	s.must("launch", "--detach", "shell")
	d.line("one", "clear; lazaret attach; echo status $?")
	d.wait("one", `/workspace #$`)
	syscall.Kill(s.supervisor(), syscall.SIGKILL)
	d.wait("one", `(?s)error: run [0-9a-f]+ \(shell\): the sandbox's lazaret is gone.*status 125\nhost\$$`)
	d.line("one", "clear; stty -a | grep -ow -e '-*icanon' -e '-*echo'")
	d.wait("one", `(?s)^icanon\necho\nhost\$$`)
	if out := s.must("clean"); !strings.Contains(out, "cleaned up") {
		t.Logf("clean: %s", out) // the helper may have done it all
	}

	// stop and exec work as ever.
	s.must("launch", "--detach", "shell")
	if out := s.must("exec", "shell", "--", "echo", "beside"); out != "beside\n" {
		t.Errorf("exec: %q", out)
	}
	if out := s.must("stop"); !strings.Contains(out, "stopped") {
		t.Errorf("stop: %q", out)
	}
	s.forget()
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndDetachFails: until the sandbox is up, a detached launch is one in
// the foreground.
func TestEndToEndDetachFails(t *testing.T) {
	needE2E(t)
	s := newDetached(t)
	before := s.quiet()
	launch := func(env []string, args ...string) (int, string, string) {
		c, _ := s.cmd(env, append([]string{"launch", "--detach", "shell"}, args...)...)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		c.Run()
		return c.ProcessState.ExitCode(), out.String(), errs.String()
	}
	t.Run("a step", func(t *testing.T) {
		status, out, errs := launch([]string{faultVar + "=fail:begin:sandbox"})
		if status != exitLazaret || out != "" || !regexp.MustCompile(`(?m)^lazaret: error: .*made to fail\nlazaret: hint: `).MatchString(errs) {
			t.Errorf("status %d, %q, %s", status, out, errs)
		}
	})
	t.Run("a command that is not there", func(t *testing.T) {
		foreground, _ := s.cmd(nil, "launch", "shell", "--", "/no/such/command")
		foreground.Run()
		status, out, errs := launch(nil, "--", "/no/such/command")
		if status != foreground.ProcessState.ExitCode() || out != "" || !strings.Contains(errs, "/no/such/command") {
			t.Errorf("status %d, not %d; %q, %s", status, foreground.ProcessState.ExitCode(), out, errs)
		}
	})
	t.Run("a command that has ended already", func(t *testing.T) {
		status, out, errs := launch(nil, "--", "sh", "-c", "echo all there was; exit 7")
		id := strings.TrimSpace(out)
		if status != 0 || !runID.MatchString(id) {
			t.Fatalf("status %d, %q, %s", status, out, errs)
		}
		eventually(func() bool { return !strings.Contains(s.must("ps"), id) })
		c, tells := s.cmd(nil, "attach", id)
		if c.Run(); c.ProcessState.ExitCode() != 7 || !strings.Contains(tells.String(), "all there was\n") {
			t.Errorf("attach: status %d: %s", c.ProcessState.ExitCode(), tells)
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			held := filepath.Join(filepath.Dir(s.ws), "state/held")
			c, out := s.cmd([]string{faultVar + "=hold:begin:sandbox"}, "launch", "--detach", "shell")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			waitForFile(t, held)
			pid := s.supervisor()
			c.Process.Signal(sig)
			time.Sleep(time.Second) // it is passed on, which nobody can see
			os.Remove(held)
			c.Wait()
			if sig == syscall.SIGINT && c.ProcessState.ExitCode() != 130 {
				t.Errorf("status %d: %s", c.ProcessState.ExitCode(), out)
			}
			if !eventually(func() bool { return syscall.Kill(pid, 0) != nil }) {
				t.Error("it goes on")
			}
		})
	}
	s.forget()
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndDetachPrompt: what a detached sandbox asks waits until somebody is
// there, and again when they leave without an answer.
func TestEndToEndDetachPrompt(t *testing.T) {
	needE2E(t)
	layout := os.Getenv("LAZARET_DEBIAN")
	s := newSandboxedWith(t, func(data string) string {
		return fmt.Sprintf(promptConfig, data, "10m", layout)
	}, "--platform", "linux/amd64")
	s.t.Cleanup(func() {
		c, _ := s.cmd(nil, "stop", "--all")
		c.Run()
	})
	before := s.quiet()
	d := newDesktop(t, s)
	d.open("one")
	id := strings.TrimSpace(runID.FindString(s.must("launch", "--detach", "shell")))
	d.line("one", "lazaret attach")
	d.wait("one", `#$`)
	d.line("one", `PS1='box# '; while sleep 0.1; do if mv /workspace/ask /workspace/asking 2>/dev/null; then sh /workspace/asking >/workspace/answer 2>&1; echo "status $?" >>/workspace/answer; touch /workspace/answered; fi; done & sleep 0.5; clear`)
	d.wait("one", `^box#$`)
	leave := func() {
		d.keys("one", "C-p", "C-q")
		d.wait("one", `(?s)note: left shell.*host\$$`)
		d.line("one", "clear")
		d.wait("one", `^host\$$`)
	}
	leave()

	d.put("lazaret-escalate --reason 'to see' -- printf 'hello %s' host")
	s.pending(1)
	said := filepath.Join(filepath.Dir(s.ws), "state/lazaret/detached", id+".log")
	if !eventually(func() bool {
		b, err := os.ReadFile(said)
		return err == nil && strings.Contains(string(b), `"lazaret approve `+id+`" shows it`)
	}) {
		t.Errorf("its lazaret does not say in %s that somebody asks", said)
	}
	d.line("one", "lazaret attach")
	d.wait("one", `(?s)to see.*\[A\] approve and run`)
	leave()
	s.pending(1)
	d.unanswered()
	d.line("one", "lazaret attach")
	d.wait("one", `(?s)to see.*\[A\] approve and run`)
	d.press("one", "a")
	if got := d.answered(); got != "hello hoststatus 0\n" {
		t.Errorf("approved: %q", got)
	}
	d.wait("one", `^box#$`)
	leave()

	d.put("lazaret-escalate -- printf again")
	s.pending(1)
	d.line("one", "lazaret approve")
	d.wait("one", `\[A\] approve and run`)
	d.press("one", "a")
	if got := d.answered(); got != "againstatus 0\n" {
		t.Errorf("approved elsewhere: %q", got)
	}
	d.wait("one", `host\$$`)
	for _, f := range []string{"ask", "asking", "answer", "answered", ".ask"} {
		os.Remove(filepath.Join(s.ws, f))
	}
	s.must("stop")
	s.forget()
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// pending waits until so many requests wait.
func (s *sandboxed) pending(n int) {
	s.t.Helper()
	s.told(fmt.Sprintf(`"pending":%d`, n), "ps", "--json")
}
