package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// screen collects what a terminal shows.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// await waits until the screen has shown text since the last one.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		shown := s.buf.String()
		if i := strings.Index(shown, text); i >= 0 {
			s.buf.Next(i + len(text))
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("the terminal does not show %q, but %q", text, shown)
		}
	}
}

func TestTerminal(t *testing.T) {
	dir := room(t)
	cmd := sh(dir)
	cmd.Env = append(cmd.Env, "HOME="+dir, "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 20, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	shown := &screen{}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	prompt := "~/work # "
	if os.Getuid() != 0 {
		prompt = "~/work $ "
	}
	typed := func(s string) {
		if _, err := tty.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	shown.await(t, prompt)
	typed("echo $((20+3))\r")
	shown.await(t, "23\r\n")
	shown.await(t, prompt)

	// The command has the terminal as it was, not raw.
	typed("stty size; stty -a | grep -o ' icanon'\r")
	shown.await(t, "20 200\r\n")
	shown.await(t, " icanon\r\n")
	shown.await(t, prompt)

	// Ctrl-C at the prompt ends the line.
	typed("exit 99\x03")
	shown.await(t, prompt)
	typed("echo status=$?\r")
	shown.await(t, "status=130\r\n")
	shown.await(t, prompt)

	// Ctrl-C ends the command, not the shell.
	typed("echo begin; sleep 60\r")
	shown.await(t, "begin\r\n")
	time.Sleep(100 * time.Millisecond) // until sleep is what runs
	typed("\x03")
	shown.await(t, prompt)
	typed("echo after=$?\r")
	shown.await(t, "after=130\r\n")

	// A command over several lines, given up, then finished.
	typed("if true\r")
	shown.await(t, "> ")
	typed("\x03")
	shown.await(t, prompt)
	typed("for i in x y; do\recho $i.\rdone\r")
	shown.await(t, "x.\r\ny.\r\n")

	// A mistake is no end.
	typed("if fi\r")
	shown.await(t, "sh: ")
	shown.await(t, prompt)
	typed("x=kept; cd /; echo $x $PWD\r")
	shown.await(t, "kept /\r\n")
	shown.await(t, "/ ")
	typed("sh -c 'exit 6'\r\x04")
	if status := wait2(cmd); status != 6 {
		t.Errorf("Ctrl-D ends with %d, not the last command's 6", status)
	}
}

func wait2(cmd *exec.Cmd) int {
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// asInit runs the shell as pid 1 of a namespace of its own.
func asInit(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	cmd := sh(dir, "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

func TestAsInit(t *testing.T) {
	dir := room(t)
	for script, want := range map[string]int{
		"exit 7":                                 7,
		"[ $$ = 1 ] && exit 0":                   0,
		"kill -INT $$; exit 1":                   130,
		"kill -TERM 1; sleep 60; exit 1":         143,
		"sh -c 'kill -TERM 1'; sleep 60; exit 1": 143,
		"trap 'exit 9' TERM; kill -TERM 1; true; sleep 0; exit 1":                                               9,
		"trap '' TERM; kill -TERM 1; trap - TERM; kill -TERM 1; sleep 60; exit 1":                               143,
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -c 'exit 4' || n=$?; done; exit $n": 4,
	} {
		cmd := asInit(t, dir, script)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if status := wait(t, cmd); status != want {
			t.Errorf("%s: status %d, want %d; %s", script, status, want, errs.String())
		}
	}
}

func TestInitEndsOnSignals(t *testing.T) {
	dir := room(t)
	for _, script := range []string{"echo up; sleep 60", "echo up; while true; do true; done", "exec sh -c 'echo up; sleep 60'"} {
		cmd := asInit(t, dir, script)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		if status := wait2(cmd); status != 143 {
			t.Errorf("%s: SIGTERM ends it with %d", script, status)
		}
	}
}

// Orphans become pid 1's and are reaped, while its own children keep their
// statuses.
func TestInitReaps(t *testing.T) {
	dir := room(t)
	const orphans = "for i in 1 2 3 4 5; do sh -c 'sleep 0.1 & sleep 0.02'; done; sleep 0.3; sh -c 'exit 5'; echo status $?; "
	// /proc is the host's: the test looks from outside.
	cmd := asInit(t, dir, orphans+"sleep 60")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer wait2(cmd)
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "status 5\n" {
		t.Fatalf("%q, %v", line, err)
	}
	zombies := -1
	for end := time.Now().Add(time.Minute); zombies != 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		zombies = zombiesOf(cmd.Process.Pid)
	}
	if zombies != 0 {
		t.Errorf("pid 1 has %d zombies", zombies)
	}
}

func zombiesOf(pid int) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}
