package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// Kinds of step.Undo that a launch journals.
const (
	undoContainer = "container" // remove the run's container
	undoRmdir     = "rmdir"     // remove an empty directory that a mask needed
	undoTree      = "tree"      // remove a tree of lazaret's own below the cache directory
	undoKill      = "kill"      // end the helper, as pid/starttime
)

// Roots that an undo may name.
const (
	baseWorkspace = "workspace"
	baseCache     = "cache"
)

// undoer performs undos. They come from a file, so each is checked against
// what this run could have journalled and nothing else.
type undoer struct {
	record Record
	runs   string        // where the records lie
	cache  string        // the cache directory
	podman podman.Engine // of the sandbox
	router podman.Engine // of its router
	env    []string
	// helper, when set, removes containers where they were made.
	helper *helper
}

func (u *undoer) undo(ctx context.Context, x step.Undo) error {
	switch x.Kind {
	case undoContainer:
		switch {
		case x.Base == "" && x.Name == u.record.Container():
			return u.removeContainer(ctx, u.podman, x.Name)
		case x.Base == "" && x.Name == u.record.Sidecar():
			return u.removeContainer(ctx, u.router, x.Name)
		}
		return fmt.Errorf("refusing to remove container %q, which is not of this run", x.Name)
	case undoRmdir:
		if x.Base != baseWorkspace || !slices.Contains(maskTargets, "/workspace/"+x.Name) {
			return fmt.Errorf("refusing to remove directory %q, which is no mask", x.Name)
		}
		if neighbours(u.runs, u.record) {
			// A mask is mounted on it in another sandbox and would go with
			// it. That run takes it away when it ends.
			return nil
		}
		return rmdir(u.record.Workspace, x.Name)
	case undoTree:
		if x.Base != baseCache || x.Name != layoutName(u.record.ID) && x.Name != sidecarLayoutName(u.record.ID) {
			return fmt.Errorf("refusing to remove %q, which is not of this run", x.Name)
		}
		if err := removeTree(u.cache, x.Name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case undoKill:
		if x.Base != "" {
			return fmt.Errorf("refusing to end %q", x.Name)
		}
		return killProcess(x.Name)
	}
	return fmt.Errorf("refusing an undo of unknown kind %q", x.Kind)
}

// removeContainer removes a container, and tries again where the first time
// fails: after the death of its conmon, it does.
func (u *undoer) removeContainer(ctx context.Context, engine podman.Engine, name string) error {
	if u.helper != nil {
		if err := u.helper.remove(ctx, name); err == nil {
			return nil
		}
	}
	var err error
	for range 3 {
		if _, err = proc.Output(ctx, proc.Cmd{Argv: engine.Remove(name), Env: u.env, Dir: "/"}); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	return err
}

// rmdir removes an empty directory below dir; anything else is left alone.
func rmdir(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if fi, err := root.Lstat(name); err != nil || !fi.IsDir() {
		return nil
	}
	err = root.Remove(name)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil // somebody uses it by now
	}
	return err
}

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
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses and may hold anything.
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return "", fmt.Errorf("reading /proc/%d/stat: too few fields", pid)
	}
	return f[19], nil
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

func device(fi fs.FileInfo) uint64 { return fi.Sys().(*syscall.Stat_t).Dev }
