package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// prepareMemory measures the resident memory of what lazaret adds to a sandbox
// that waits for its agent.
func prepareMemory(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	w, err := b.newWorkspace(ctx, "memory", everything)
	if err != nil {
		return nil, err
	}
	before := processes("lazaret-sidecar")
	cmd := w.launch(ctx, insideAgent...)
	if _, err := b.agent(cmd); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second) // idle, as it will be for hours
	return []side{
		{"memory lazaret", func() (mib float64, err error) {
			for _, pid := range processes("lazaret") {
				if !below(pid, cmd.Process.Pid) {
					continue
				}
				n, err := resident(pid)
				if err != nil {
					return 0, err
				}
				mib += n
			}
			return mib, nil
		}},
		{"memory sidecar", func() (float64, error) {
			for _, pid := range processes("lazaret-sidecar") {
				if !slices.Contains(before, pid) {
					return resident(pid)
				}
			}
			return 0, fmt.Errorf("there is no sidecar, only %v of before", before)
		}},
	}, nil
}

// processes are this account's with that name.
func processes(wanted string) (out []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && comm(pid) == wanted && mine(dir) {
			out = append(out, pid)
		}
	}
	return out
}

func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

func mine(dir string) bool {
	w := strings.Fields(field(filepath.Join(dir, "status"), "Uid"))
	return len(w) > 0 && w[0] == strconv.Itoa(os.Getuid())
}

// below tells whether a process is another, or descends from it.
func below(pid, of int) bool {
	for pid > 1 {
		if pid == of {
			return true
		}
		pid, _ = strconv.Atoi(field(fmt.Sprintf("/proc/%d/status", pid), "PPid"))
	}
	return false
}

// resident is what a process has in memory, in MiB.
func resident(pid int) (float64, error) {
	var kib float64
	if _, err := fmt.Sscan(field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS"), &kib); err != nil {
		return 0, fmt.Errorf("the memory of process %d: %w", pid, err)
	}
	return kib / 1024, nil
}
