package launch

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/launch/podman"
)

func TestConmonOf(t *testing.T) {
	id := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		argv string
		want string
	}{
		{"/usr/bin/conmon --api-version 1 -c " + id + " -u " + id + " -r /usr/bin/runsc -n lazaret-x-1 -i", id},
		{"/usr/bin/conmon -n lazaret-x-1 -c " + id + " x", id},
		{"/usr/bin/conmon -c " + id + " -n lazaret-x-1-net x", ""}, // its router is another container
		{"/usr/bin/conmon -c " + id + " -n somebody x", ""},
		{"/usr/bin/conmon -c ../../x -n lazaret-x-1 x", ""},
		{"vi conmon -c " + id + " -n lazaret-x-1 x", ""},
		{"", ""},
	} {
		if got := conmonOf(strings.Fields(tc.argv), "lazaret-x-1"); got != tc.want {
			t.Errorf("%s: %q", tc.argv, got)
		}
	}
}

// TestEndOrphans: the conmon of a container that podman has forgotten, and the
// runtime's processes, are ended, and nobody else's.
func TestEndOrphans(t *testing.T) {
	id, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	start := func(argv0 string, args ...string) *exec.Cmd {
		// A shell by another name, which waits.
		c := &exec.Cmd{Path: "/bin/sh", Args: append([]string{argv0, "-c", "sleep 60; true"}, args...)}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
		return c
	}
	gone := start("conmon", "-c", id, "-n", "lazaret-x-1", "-i")
	box := start("runsc-sandbox", "boot", id)
	stays := []*exec.Cmd{start("conmon", "-c", other, "-n", "lazaret-y-2", "-i"), start("runsc-sandbox", "boot", other), start("less", id)}
	done := make(chan error, 2)
	for _, c := range []*exec.Cmd{gone, box} {
		go func() { done <- c.Wait() }()
	}
	if err := endOrphans(t.Context(), podman.Engine{Runsc: "/bin/false"}, "lazaret-x-1", nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("one goes on")
		}
	}
	for _, c := range stays {
		if err := c.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%v was ended: %v", c.Args, err)
		}
	}
}
