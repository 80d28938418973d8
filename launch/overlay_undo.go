package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/overlay"
)

// undoState takes back what persistent directories need.
func (u *undoer) undoState(ctx context.Context, x step.Undo) error {
	switch {
	case x.Kind == undoOverlay && x.Base == "":
		return u.unmountOverlay(ctx, x.Name)
	case x.Kind == undoUnmount && x.Base == "" && isImageID(x.Name):
		if u.helper != nil {
			// Where it was mounted. Podman must hear that it is there already.
			op := ImageUnmount{u.podman, podman.InNamespace(u.env, os.Getuid(), os.Getgid()), x.Name}
			if _, err := u.helper.do(ctx, op, nil); err == nil {
				return nil
			}
		}
		_, err := ImageUnmount{u.podman, u.env, x.Name}.Do(ctx, nil)
		return err
	case x.Kind == undoDiscard && x.Base == baseData && x.Name == overlay.RunDir(u.record.ID):
		return u.discard(ctx)
	}
	return fmt.Errorf("refusing to undo %q, which is not of this run", x.String())
}

// unmountOverlay unmounts a persistent directory. Without the helper, the
// kernel's mounts are gone with its namespace; a fuse-overlayfs keeps that, and
// itself, alive.
func (u *undoer) unmountOverlay(ctx context.Context, key string) error {
	if u.helper != nil {
		_, err := u.helper.call(ctx, request{Kind: kindUnmount, Name: key})
		if !errors.Is(err, errHelperGone) {
			return err
		}
	}
	return endFuse(u.record.ID, key)
}

// endFuse ends the daemon of a run's mount, if there is one. Everything that
// was closed has been written by then, and its sandbox is gone.
func endFuse(run, key string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		name, err := processName(pid)
		if err != nil || !isFuse(pid, overlay.FuseName(run, key)) {
			continue
		}
		errs = append(errs, killProcess(name))
	}
	return errors.Join(errs...)
}

// isFuse tells whether a process of the person's is the daemon of that name.
func isFuse(pid int, name string) bool {
	fi, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil || ownerUID(fi) != os.Getuid() {
		return false
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	return len(args) > 3 && filepath.Base(args[0]) == "fuse-overlayfs" && args[2] == "-o" &&
		slices.Contains(strings.Split(args[3], ","), "fsname="+name)
}

// DiscardCommand is the hidden command that removes a run's own directory in
// data_root, in podman's namespace.
const DiscardCommand = "namespace-discard"

func (u *undoer) discard(ctx context.Context) error {
	if u.helper != nil {
		_, err := u.helper.do(ctx, Discard{u.record.DataRoot, u.record.ID}, nil)
		if !errors.Is(err, errHelperGone) {
			return err
		}
	}
	if _, err := os.Lstat(filepath.Join(u.record.DataRoot, overlay.RunDir(u.record.ID))); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := proc.Output(ctx, proc.Cmd{Argv: []string{u.podman.Podman, "unshare", u.lazaret, DiscardCommand, u.record.DataRoot, u.record.ID}, Env: u.env})
	return err
}

// DiscardRun removes a run's own directory in data_root.
func DiscardRun(dataRoot, run string) error {
	if !filepath.IsAbs(dataRoot) || !idPattern.MatchString(run) {
		return fmt.Errorf("%q is no run", run)
	}
	return overlay.Discard(dataRoot, run)
}

func ownerUID(fi os.FileInfo) int { return int(fi.Sys().(*syscall.Stat_t).Uid) }
