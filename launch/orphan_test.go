package launch

import (
	"os"
	"os/exec"
	"path/filepath"
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
	never, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	defer never.Close()
	start := func(argv0 string, args ...string) *exec.Cmd {
		// A shell by another name, which waits by itself: a program that it waits
		// for would go on.
		c := &exec.Cmd{Path: "/bin/sh", Args: append([]string{argv0, "-c", "read x; true"}, args...), Stdin: never}
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
		case <-time.After(time.Minute):
			t.Fatal("one goes on")
		}
	}
	for _, c := range stays {
		if err := c.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%v was ended: %v", c.Args, err)
		}
	}
}

// TestOrphansOfOthers: a process of somebody else that says it were the
// container's conmon names no container of ours.
func TestOrphansOfOthers(t *testing.T) {
	root, id := t.TempDir(), strings.Repeat("cd", 32)
	process := func(name, uid string, argv ...string) {
		for file, text := range map[string]string{"status": "Uid:\t" + uid + "\t0\t0\t0\nThreads:\t1\n", "cmdline": strings.Join(argv, "\x00") + "\x00"} {
			path := filepath.Join(root, name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	process("self", "1000", "lazaret")
	process("1", "1000", "runsc-sandbox", "boot", id) // there is always a process 1
	for uid, want := range map[string]int{"1001": 0, "1000": 1} {
		process("4242", uid, "conmon", "-n", "lazaret-x-1", "-c", id, "-i")
		ids := map[string]bool{}
		if _, err := orphans(root, "lazaret-x-1", ids); err != nil || len(ids) != want {
			t.Errorf("a conmon of %s: %v, %v", uid, ids, err)
		}
		if found, _ := orphans(root, "lazaret-x-1", map[string]bool{}); want == 0 && len(found) > 0 {
			t.Errorf("would end %v", found)
		}
	}
}
