package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what numbers depend on. It names nobody and no place.
type Machine struct {
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Podman string `json:"podman"`
	Runsc  string `json:"runsc"`
	Go     string `json:"go"`
}

func thisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), CPU: field("/proc/cpuinfo", "model name"), Go: strings.TrimPrefix(runtime.Version(), "go")}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var kib float64
	fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kib)
	m.Memory = fmt.Sprintf("%.0f GiB", kib/(1<<20))
	m.Podman = lastWord("podman", "--version")
	m.Runsc = strings.TrimPrefix(lastWord("runsc", "--version"), "release-")
	return m
}

// field gives a value of the files that consist of "name: value" lines.
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// lastWord is the last word of the first line that a program prints.
func lastWord(argv ...string) string {
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	words := strings.Fields(line)
	if err != nil || len(words) == 0 {
		return "unknown"
	}
	return words[len(words)-1]
}

// busy is how much of the machine is in use while this program does nothing.
// What just ended may still be cleaning up, so the least of some moments counts.
func busy() float64 {
	least := 1.0
	for range 4 {
		used, all := cpuTime()
		time.Sleep(500 * time.Millisecond)
		used2, all2 := cpuTime()
		if all2 > all {
			least = min(least, (used2-used)/(all2-all))
		}
		if least < quietBelow/2 {
			break
		}
	}
	return least
}

// cpuTime is what /proc/stat counts of all processors together, in its ticks.
func cpuTime() (used, all float64) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, w := range strings.Fields(line) {
		if i == 0 || i > 8 { // guests' time is in the user's
			continue
		}
		var n float64
		fmt.Sscan(w, &n)
		all += n
		if i != 4 && i != 5 { // idle, waiting for a disk
			used += n
		}
	}
	return used, all
}
