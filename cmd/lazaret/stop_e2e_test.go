package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestEndToEndStopAll: all of them at once, one of them while it is coming up.
func TestEndToEndStopAll(t *testing.T) {
	needE2E(t)
	a, b := newSandboxed(t), newSandboxed(t)
	before := a.quiet()
	var ends []chan error
	for i, s := range []*sandboxed{a, b, b} {
		keep := "--ephemeral=" + strconv.FormatBool(i == 2) // the second has the profile's state
		c, _ := s.cmd(nil, "launch", keep, "shell", "--", "sh", "-c", "touch ready; sleep 1000")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() { end <- c.Wait() }()
		ends = append(ends, end)
		if len(ends) == 3 {
			break // known of is not up yet
		}
		waitForFile(t, filepath.Join(s.ws, "ready"))
	}
	if !eventually(func() bool { return strings.Count(a.must("ps"), "/ws\n") == 3 }) {
		t.Fatalf("not three run:\n%s", a.must("ps"))
	}
	out := a.must("stop", "--all")
	if strings.Count(out, ": stopped (shell in ") != 3 {
		t.Errorf("stopped:\n%s", out)
	}
	for _, end := range ends {
		select {
		case err := <-end:
			if err == nil || err.Error() != "exit status 143" {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(longEnough):
			t.Error("it did not end")
		}
	}
	for _, s := range []*sandboxed{a, b} {
		os.Remove(filepath.Join(s.ws, "ready"))
	}
	if diff := a.settled(before); diff != "" {
		t.Error(diff)
	}
}

// TestEndToEndStopDead: what a lazaret that is gone left behind, stop takes down
// as clean does. Beside other launches one of those may do it first.
func TestEndToEndStopDead(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	before := s.quiet()
	c, _ := s.start()
	c.Process.Kill()
	c.Wait()
	if out := s.must("stop"); !strings.Contains(out, ": cleaned up (shell in ") {
		t.Errorf("stop says:\n%s", out)
	}
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
	if c, out := s.cmd(nil, "stop", "shell"); c.Run() == nil || !strings.Contains(out.String(), "no sandbox runs that is called shell") {
		t.Errorf("stopped once more:\n%s", out)
	}
}
