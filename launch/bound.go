package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/launch/podman"
	"lazaret/lock"
)

// Without cgroups of its own, nothing that podman or gVisor are told about
// processes is held. What is held is RLIMIT_NPROC: the kernel refuses the
// sandbox's next task beyond it. It counts tasks of the host, of which a process
// under gVisor is about two, and of all sandboxes of one person together, since
// they run as the same user in podman's namespace. So what is there when a
// sandbox starts is added to what it may have.
const (
	// tasksEach is how many tasks of the host a process of the sandbox takes.
	tasksEach = 2
	// tasksOwn are those of gVisor and podman themselves, generously.
	tasksOwn = 256
	// tasksRouter are those of a router and its podman, likewise.
	tasksRouter = 64
	// tasksUsual is how many a sandbox may have whose profile says nothing:
	// enough for any build, and far from what a machine can bear.
	tasksUsual = 8192
)

// tasksFor is how many tasks of the host a limit of processes allows.
func tasksFor(pids int64) uint64 {
	if pids <= 0 {
		return tasksUsual
	}
	return uint64(pids)*tasksEach + tasksOwn
}

// bounded gives a command line that starts with a bound on the tasks of what it
// starts. Whoever sets the bound is replaced by the program, so there is no
// moment without it.
func bounded(argv []string, tasks uint64) ([]string, error) {
	prlimit, err := lookPath("prlimit", podman.SearchPath, "/nowhere")
	if err != nil {
		return nil, err
	}
	n, err := tasksNow("/proc", os.Getppid())
	if err != nil {
		return nil, fmt.Errorf("counting processes: %w", err)
	}
	n += tasks
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &have); err != nil {
		return nil, fmt.Errorf("looking at the bound on processes: %w", err)
	}
	n = min(n, have.Max)
	return append([]string{prlimit, fmt.Sprintf("--nproc=%d:%d", n, n), "--"}, argv...), nil
}

// tasksNow counts the tasks that run as this user, but for those in the user
// namespace of process outside: a person's desktop is not counted by the kernel
// in podman's namespace.
func tasksNow(proc string, outside int) (n uint64, err error) {
	own, _, err := tasksOf(filepath.Join(proc, "self"))
	if err != nil {
		return 0, err
	}
	host, _ := os.Readlink(filepath.Join(proc, strconv.Itoa(outside), "ns", "user"))
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		uid, threads, err := tasksOf(dir)
		if err != nil || uid != own {
			continue // it is gone, or somebody else's
		}
		if ns, err := os.Readlink(filepath.Join(dir, "ns", "user")); err != nil || host == "" || ns != host {
			n += threads
		}
	}
	return n, nil
}

// tasksOf gives a process's real user id and how many tasks it has. The owner of
// its directory is not always that user.
func tasksOf(dir string) (uid string, threads uint64, err error) {
	var b [4096]byte
	n, err := readSmall(filepath.Join(dir, "status"), b[:])
	if err != nil {
		return "", 0, err
	}
	for line := range bytes.Lines(b[:n]) {
		switch key, value, _ := bytes.Cut(line, []byte(":")); string(key) {
		case "Uid":
			if f := bytes.Fields(value); len(f) > 0 {
				uid = string(f[0])
			}
		case "Threads":
			threads, err = strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 32)
			return uid, threads, err
		}
	}
	return uid, threads, err
}

// readSmall reads the beginning of a file of the kernel's. There is one for each
// process of the machine to be read: what os does to be able to wait for a file
// takes longer than to read these.
func readSmall(path string, b []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// tasks is the bound of the plan's sandbox.
func (r *resolver) tasks() uint64 {
	if r.profile.Limits == nil {
		return tasksFor(0)
	}
	return tasksFor(r.profile.Limits.PIDs)
}

// unheld says which of a profile's limits nothing holds, or "".
func unheld(l lock.Limits) string {
	var what []string
	for _, x := range []struct{ name, value string }{{"memory", l.Memory}, {"cpus", l.CPUs}} {
		if x.value != "" {
			what = append(what, x.name)
		}
	}
	if len(what) == 0 {
		return ""
	}
	verb := map[bool]string{true: "is", false: "are"}[len(what) == 1]
	return strings.Join(what, " and ") + " " + verb + " not held to the limit: gVisor without root has no cgroup of its own"
}
