package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// podmanMounts are the mounts below directories in podman's namespace, where what
// leaks stays. Those of the rest of the machine come and go there as well.
func podmanMounts(t *testing.T, dirs ...string) string {
	t.Helper()
	out, err := exec.Command("podman", "unshare", "cat", "/proc/self/mountinfo").Output()
	if err != nil {
		t.Fatal(err)
	}
	// One for all sandboxes, made by whichever runsc there first is without a network.
	shared := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "runsc/null-netns")
	var at []string
	for line := range strings.Lines(string(out)) {
		point := strings.Fields(line)[4]
		if point != shared && slices.ContainsFunc(dirs, func(dir string) bool { return point == dir || strings.HasPrefix(point, dir+"/") }) {
			at = append(at, point+"\n")
		}
	}
	slices.Sort(at)
	return strings.Join(at, "")
}

// heldMore is how much more may be held after many launches, in KiB: less than any
// process of lazaret's or podman's has.
const heldMore = 4 << 10

// holding is the memory that the account's processes have, but this one, and what
// lies in its runtime directory, in KiB. Other people's is nothing to it.
func holding(t *testing.T) int {
	t.Helper()
	ids, err := exec.Command("podman", "unshare", "cat", "/proc/self/uid_map").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := func(uid int) bool {
		for line := range strings.Lines(string(ids)) {
			var inside, from, n int
			if fmt.Sscan(line, &inside, &from, &n); from <= uid && uid < from+n {
				return true
			}
		}
		return false
	}
	kib := 0
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || path == fmt.Sprintf("/proc/%d/status", os.Getpid()) {
			continue // it has ended
		}
		uid, has := -1, 0
		for line := range strings.Lines(string(text)) {
			switch f := strings.Fields(line); f[0] {
			case "Uid:":
				uid, _ = strconv.Atoi(f[1])
			case "RssAnon:", "RssShmem:":
				n, _ := strconv.Atoi(f[1])
				has += n
			}
		}
		if ours(uid) {
			kib += has
		}
	}
	filepath.WalkDir(os.Getenv("XDG_RUNTIME_DIR"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			if fi, err := d.Info(); err == nil {
				kib += int(fi.Sys().(*syscall.Stat_t).Blocks) / 2
			}
		}
		return nil
	})
	return kib
}

// TestEndToEndHolding: what a process keeps, or a file in the runtime directory, is
// seen as long as it is there.
func TestEndToEndHolding(t *testing.T) {
	needE2E(t)
	before := holding(t)
	const size = 32 << 20
	path := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "held")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	if now := holding(t); now < before+size>>10 {
		t.Errorf("with a file: %d KiB, before %d", now, before)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("tail", "-c", strconv.Itoa(size)) // it keeps all that comes
	in, err := c.StdinPipe()
	if err != nil || c.Start() != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(bytes.Repeat([]byte("x\n"), size/2)); err != nil {
		t.Fatal(err)
	}
	if now := holding(t); now < before+size>>10*9/10 {
		t.Errorf("with a process: %d KiB, before %d", now, before)
	}
	c.Process.Kill()
	c.Wait()
	if now := holding(t); now > before+heldMore {
		t.Errorf("afterwards: %d KiB, before %d", now, before)
	}
}
