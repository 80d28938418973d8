package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// needLong passes over what takes too long for every change.
func needLong(t *testing.T) {
	t.Helper()
	needE2E(t)
	if os.Getenv("LAZARET_LONG") == "" {
		t.Skip("slow: run by make test-long, which sets LAZARET_LONG")
	}
}

// soak are the figures of many launches.
type soak struct {
	mu            sync.Mutex
	ended, killed int
	took          []time.Duration // of those that were left alone
}

// launches makes n launches in one workspace, of which some are killed at any
// moment, alone or with their helper, and some asked to end.
func (k *soak) launches(t *testing.T, s *sandboxed, n int, r *rand.Rand) {
	for range n {
		c, out := s.cmd(nil, "launch", "shell", "--", "true")
		start := time.Now()
		if err := c.Start(); err != nil {
			t.Error(err)
			return
		}
		fate := r.IntN(8)
		var timer *time.Timer
		if fate < 3 {
			signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[fate]
			timer = time.AfterFunc(time.Duration(r.IntN(1200))*time.Millisecond, func() { c.Process.Signal(signal) })
		}
		err := c.Wait()
		k.mu.Lock()
		switch {
		case timer != nil && !timer.Stop():
			k.killed++
		case err != nil:
			t.Errorf("a launch that nobody disturbed: %v\n%s", err, out)
		default:
			k.ended++
			k.took = append(k.took, time.Since(start))
		}
		k.mu.Unlock()
	}
}

// TestFaultSoak: 200 launches, half one after the other and half eight at a
// time, a third of them killed at some moment: nothing is left, and nothing
// grows.
func TestFaultSoak(t *testing.T) {
	needLong(t)
	n := 200
	if v := os.Getenv("LAZARET_SOAK"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const workers = 8
	var all []*sandboxed
	for range workers {
		all = append(all, newSandboxed(t))
	}
	before := make([]string, workers)
	for i, s := range all {
		before[i] = s.quiet()
	}
	dirs := []string{os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR")}
	for _, s := range all {
		dirs = append(dirs, filepath.Dir(s.ws))
	}
	mounts, held := podmanMounts(t, dirs...), holding(t)
	k := &soak{}
	start := time.Now()
	k.launches(t, all[0], n/2, rand.New(rand.NewPCG(seed, 0)))
	single := time.Since(start)
	alone := slices.Clone(k.took)
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { k.launches(t, s, n/2/workers, rand.New(rand.NewPCG(seed, uint64(i+1)))) })
	}
	wg.Wait()
	// What was killed while it removed its record is given a minute.
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lazaret", ".*-*")); len(left) > 0 {
		time.Sleep(61 * time.Second)
	}
	for i, s := range all {
		s.must("launch", "shell", "--", "true") // which cleans up first
		if diff := s.settled(before[i]); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	}
	if now := podmanMounts(t, dirs...); now != mounts {
		t.Errorf("the mounts in podman's namespace are not as they were\n%s", difference(mounts, now))
	}
	now := holding(t)
	if now > held+heldMore {
		t.Errorf("%d KiB were held, now %d", held, now)
	}
	slices.Sort(alone)
	t.Logf("%d launches: %d ended, %d killed; %d one after the other in %s (median of those left alone %s), the rest %d at a time in %s; %d KiB held before, %d after",
		n, k.ended, k.killed, n/2, single.Round(time.Second), alone[len(alone)/2].Round(time.Millisecond), workers, (time.Since(start) - single).Round(time.Second), held, now)
}

// TestFaultFullDisk: each directory that lazaret writes to lies on a full disk in
// turn. A launch says so, and undoes what it did; with space, the next one works.
func TestFaultFullDisk(t *testing.T) {
	needLong(t)
	small := os.Getenv("LAZARET_SMALL")
	if small == "" {
		t.Fatal("make test-long makes a small file system and names it LAZARET_SMALL")
	}
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "data_root"} {
		t.Run(name, func(t *testing.T) {
			s := newSandboxed(t)
			dir := filepath.Join(small, name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			var extra []string
			if name == "data_root" {
				text := shellConfig(dir)
				if err := os.WriteFile(filepath.Join(s.ws, "lazaret.toml"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				s.must("lock")
				s.must("trust", "--yes")
			} else {
				extra = []string{name + "=" + dir}
			}
			fill(t, filepath.Join(small, "filler"))
			// Both say what is wrong, and once they have, again.
			var before string
			full := false
			for _, args := range [][]string{{"trust", "--yes"}, {"launch", "shell", "--", "true"}, {"launch", "shell", "--", "true"}} {
				c, out := s.cmd(extra, args...)
				if err := c.Run(); err != nil {
					noSpace := strings.Contains(out.String(), "no space left on device")
					full = full || noSpace
					if !noSpace && !strings.Contains(out.String(), "you have not agreed") { // which could not be recorded
						t.Errorf("%v: %v\n%s", args, err, out)
					}
				}
				if args[0] == "trust" {
					continue
				}
				if before == "" {
					before = s.quiet()
				}
				if diff := s.settled(before); diff != "" {
					t.Errorf("the host is not as it was\n%s", diff)
				}
			}
			if name != "XDG_CACHE_HOME" && !full { // without a cache, lazaret only asks again
				t.Error("nothing noticed that the disk is full")
			}
			if err := os.Remove(filepath.Join(small, "filler")); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"trust", "--yes"}, {"launch", "shell", "--", "true"}, {"clean"}} {
				c, out := s.cmd(extra, args...)
				if err := c.Run(); err != nil {
					t.Errorf("with space again, %v: %v\n%s", args, err, out)
				}
			}
		})
	}
	t.Run("XDG_RUNTIME_DIR", func(t *testing.T) { fullRuntimeDir(t, small) })
}

// fullRuntimeDir has the records, the sockets and what podman and the runtime keep
// of running containers on a disk with less and less room. A launch works, or says
// in two lines which directory is full; nothing is left of it either way.
func fullRuntimeDir(t *testing.T, small string) {
	home, dir, filler := t.TempDir(), filepath.Join(small, "run"), filepath.Join(small, "filler")
	conf := filepath.Join(home, ".config/containers")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.MkdirAll(conf, 0o700), os.WriteFile(filepath.Join(conf, "storage.conf"), []byte("[storage]\ndriver = \"overlay\"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// A storage of its own: podman keeps one for each runtime directory.
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Cleanup(func() {
		os.Remove(filler)
		exec.Command("podman", "unshare", "rm", "-rf", filepath.Join(home, ".local/share/containers")).Run()
		exec.Command("podman", "system", "migrate").Run()
		os.RemoveAll(dir)
	})
	s := newSandboxed(t)
	before := s.quiet()
	works := 0
	start := time.Now()
	s.must("launch", "shell", "--", "true")
	usual := time.Since(start)
	for _, room := range []int64{0, 4, 16, 64, 124, 128, 512} {
		fill(t, filler)
		if fi, err := os.Stat(filler); err != nil || os.Truncate(filler, fi.Size()-room<<10) != nil {
			t.Fatal(err)
		}
		for range 2 {
			c, out := s.cmd(nil, "launch", "shell", "--", "true")
			start := time.Now()
			err := c.Run()
			// What podman's monitor cannot write or do, "podman run" waits 20 s for.
			if took := time.Since(start); took > usual+15*time.Second {
				t.Errorf("with %d KiB: it took %s, with room %s\n%s", room, took, usual, out)
			}
			switch lines := strings.Split(strings.TrimSpace(out.String()), "\n"); {
			case err == nil:
				works++
			case len(lines) != 2 || !strings.HasPrefix(lines[0], "lazaret: error: "+dir+" is full") || !strings.HasPrefix(lines[1], "lazaret: hint: ") || room >= 128:
				t.Errorf("with %d KiB: %v\n%s", room, err, out)
			}
			if diff := s.settled(before); diff != "" {
				t.Errorf("with %d KiB: the host is not as it was\n%s", room, diff)
			}
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	if works != 4 {
		t.Errorf("%d launches found room, want 4", works)
	}
	s.must("launch", "shell", "--", "true")
}

// fill writes until there is no space.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for range 1 << 12 {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil || st.Bavail > 0 {
		t.Fatalf("the disk is not full: %d blocks left, %v", st.Bavail, err)
	}
}
