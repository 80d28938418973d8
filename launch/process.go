package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processName identifies a process for as long as the machine runs: a pid is
// used again, a pid with its start time is not.
func processName(pid int) (string, error) {
	start, err := startTime(pid)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(pid) + "/" + start, nil
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot.
func startTime(pid int) (string, error) {
	f, err := procStat(pid)
	if err != nil {
		return "", err
	}
	return f[22-statFirst], nil
}

// statFirst is the number of the field that procStat begins with.
const statFirst = 3

// procStat gives the fields of /proc/PID/stat that follow the name.
func procStat(pid int) ([]string, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil, err
	}
	// The second field is the program's name in parentheses and may hold anything.
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) <= 22-statFirst {
		return nil, fmt.Errorf("reading /proc/%d/stat: too few fields", pid)
	}
	return f, nil
}

// processEnded tells whether the process of that name has ended or cannot but
// end: killed is not gone, until the kernel comes to it. What names no process
// is not known to have ended.
func processEnded(name string) bool {
	const exiting = 4 // PF_EXITING of the kernel's task flags
	p, start, ok := strings.Cut(name, "/")
	pid, err := strconv.Atoi(p)
	if !ok || err != nil || pid <= 1 {
		return false
	}
	f, err := procStat(pid)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	flags, _ := strconv.ParseUint(f[9-statFirst], 10, 64)
	return f[22-statFirst] != start || f[0] == "Z" || f[0] == "X" || flags&exiting != 0 || killPending(pid)
}

// killPending tells whether a process has been sent SIGKILL.
func killPending(pid int) bool {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(b)) {
		name, mask, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "SigPnd" || name == "ShdPnd" {
			set, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if set&(1<<(unix.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// killProcess ends the process of that name and waits for its end. The pid is
// pinned before its start time is read, so that it cannot change owner between.
func killProcess(name string) error {
	p, start, ok := strings.Cut(name, "/")
	pid, err := strconv.Atoi(p)
	if !ok || err != nil || pid <= 1 {
		return fmt.Errorf("refusing to end %q, which names no process", name)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if now, err := startTime(pid); err != nil || now != start {
		return nil // another process by now
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if n, err := unix.Poll(fds, 100); n > 0 && err == nil {
			return nil
		}
	}
	return fmt.Errorf("ending process %d: it is still there", pid)
}
