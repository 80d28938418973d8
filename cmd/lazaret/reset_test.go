package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// podmanTime is how long a podman of these tests may take, and lazaretTime how
// long a lazaret that is told to end: its teardown has two minutes.
const (
	podmanTime  = 2 * time.Minute
	lazaretTime = 3 * time.Minute
)

// TestFaultReset: podman's containers, images and namespaces go away under a
// running sandbox. Lazaret ends and leaves nothing, and the next launch works.
func TestFaultReset(t *testing.T) {
	needLong(t)
	s := newSandboxed(t)
	t.Run("podman that hangs", s.hangingPodman)
	for _, how := range [][]string{{"rm", "--all", "--force", "--time", "0"}, {"system", "migrate"}, {"system", "reset", "--force"}} {
		t.Run(strings.Join(how[:2], " "), func(t *testing.T) {
			before := s.quiet()
			c, out := s.start()
			took, text, err := bounded(exec.Command("podman", how...), podmanTime)
			if err != nil {
				t.Logf("podman %s: %v\n%s", strings.Join(how, " "), err, text)
			}
			time.Sleep(time.Second)
			c.Process.Signal(syscall.SIGTERM)
			s.comesDown(t, c, out)
			t.Logf("podman took %s, status %d\n%s", took.Round(time.Millisecond), c.ProcessState.ExitCode(), out)
			c, out = s.cmd(nil, "clean")
			if err := c.Run(); err != nil {
				t.Errorf("clean: %v\n%s", err, out)
			}
			if diff := s.settled(before); diff != "" {
				t.Errorf("the host is not as it was\n%s", diff)
			}
			s.must("launch", "shell", "--", "true")
		})
	}
	fmt.Fprintln(os.Stderr, "podman's storage was reset: images are loaded again when they are needed")
}

// hangingPodman ends a sandbox while every podman waits, as all do while one has
// its storage reset, however long that takes. Lazaret comes down all the same,
// says what is left, and takes it away once podman answers.
func (s *sandboxed) hangingPodman(t *testing.T) {
	before := s.quiet()
	c, out := s.start()
	f, err := os.OpenFile(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "libpod/tmp/alive.lck"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}); err != nil {
		t.Fatal(err)
	}
	if took, _, err := bounded(exec.Command("podman", "ps"), 5*time.Second); err == nil {
		t.Errorf("podman does not wait, but answers after %s", took)
	}
	start := time.Now()
	c.Process.Signal(syscall.SIGTERM)
	s.comesDown(t, c, out)
	if !strings.Contains(out.String(), "podman does not answer") {
		t.Errorf("it does not say that podman hangs\n%s", out)
	}
	t.Logf("lazaret came down after %s, status %d\n%s", time.Since(start).Round(time.Second), c.ProcessState.ExitCode(), out)
	f.Close()
	s.must("clean")
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
	s.must("launch", "shell", "--", "true")
}

// comesDown waits for a lazaret that was told to end. One that does not says
// where it stands, and is killed.
func (s *sandboxed) comesDown(t *testing.T, c *exec.Cmd, out *output) {
	t.Helper()
	late := time.AfterFunc(lazaretTime, func() {
		c.Process.Signal(syscall.SIGABRT)
		time.Sleep(time.Second)
		c.Process.Kill()
	})
	c.Wait()
	if !late.Stop() {
		t.Errorf("lazaret did not come down in %s\n%s", lazaretTime, out)
	}
}

// bounded runs a program for at most a time. A Go program that takes longer says
// where it stands.
func bounded(c *exec.Cmd, most time.Duration) (took time.Duration, said string, err error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := time.Now()
	if err := c.Start(); err != nil {
		return 0, "", err
	}
	late := time.AfterFunc(most, func() {
		// Podman starts itself again in its namespace, and waits for that.
		syscall.Kill(-c.Process.Pid, syscall.SIGQUIT)
		time.Sleep(time.Second)
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	})
	err = c.Wait()
	if !late.Stop() {
		err = errors.Join(fmt.Errorf("not done after %s", most), err)
	}
	return time.Since(start), out.String(), err
}
