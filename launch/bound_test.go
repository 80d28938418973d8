package launch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lazaret/lock"
)

// TestTasksNow counts what the kernel will count, and not a person's desktop.
func TestTasksNow(t *testing.T) {
	proc := t.TempDir()
	add := func(pid string, uid, threads int, ns string) {
		dir := filepath.Join(proc, pid)
		if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "Name:\tx\nUid:\t" + strconv.Itoa(uid) + "\t7\t7\t7\nThreads:\t" + strconv.Itoa(threads) + "\n"
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if ns != "" {
			if err := os.Symlink("user:["+ns+"]", filepath.Join(dir, "ns", "user")); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("self", 0, 9, "inner")
	add("10", 0, 9, "inner")                                              // us
	add("11", 0, 300, "nested")                                           // a sandbox
	add("12", 0, 40, "host")                                              // a browser
	add("13", 100000, 50, "inner")                                        // another user's in the namespace
	add("14", 0, 5, "")                                                   // nobody may see where
	add("20", 0, 3, "host")                                               // lazaret
	if err := os.MkdirAll(filepath.Join(proc, "15"), 0o755); err != nil { // one that is just ending
		t.Fatal(err)
	}
	if n, err := tasksNow(proc, 20); err != nil || n != 9+300+5 {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := tasksNow(proc, 99); err != nil || n != 9+300+5+40+3 { // all that it may be
		t.Errorf("without knowing what is outside: %d, %v", n, err)
	}
}

func TestBounded(t *testing.T) {
	argv, err := bounded([]string{"/usr/bin/podman", "run", "--x"}, tasksFor(100))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(argv[0]) != "prlimit" || !strings.HasPrefix(argv[1], "--nproc=") || strings.Join(argv[2:], " ") != "-- /usr/bin/podman run --x" {
		t.Errorf("got %q", argv)
	}
	for pids, want := range map[int64]uint64{0: tasksUsual, 1: 258, 512: 1280} {
		if got := tasksFor(pids); got != want {
			t.Errorf("%d processes are %d tasks, want %d", pids, got, want)
		}
	}
}

func TestUnheld(t *testing.T) {
	for want, l := range map[string]lock.Limits{
		"": {PIDs: 5},
		"memory is not held to the limit: gVisor without root has no cgroup of its own":           {Memory: "4g", PIDs: 5},
		"memory and cpus are not held to the limit: gVisor without root has no cgroup of its own": {Memory: "4g", CPUs: "1"},
	} {
		if got := unheld(l); got != want {
			t.Errorf("%+v: %q", l, got)
		}
	}
}
