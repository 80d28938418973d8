package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
)

// arenaPrefix begins the name of every arena.
const arenaPrefix = "lazaret-attack-"

// clearTime bounds one removal.
const clearTime = 2 * time.Minute

// hold marks the arena as in use for as long as this process lives. Programs
// that it starts do not inherit it.
func (a *arena) hold() (err error) {
	a.held, err = holdDir(a.dir)
	return err
}

func holdDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use: %w", dir, err)
	}
	return f, nil
}

// arenaYoung is the age before which an arena may not yet be held by its maker.
const arenaYoung = time.Minute

// sweepArenas removes the person's arenas that nobody holds: whoever made them
// was killed. One that cannot be removed is in nobody's way.
func sweepArenas(ctx context.Context, tmp, engine string, getenv func(string) string) {
	entries, err := filepath.Glob(filepath.Join(tmp, arenaPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range entries {
		fi, err := os.Lstat(dir)
		if err != nil || !fi.IsDir() || time.Since(fi.ModTime()) < arenaYoung {
			continue
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
			continue
		}
		held, err := holdDir(dir)
		if err != nil {
			continue
		}
		clearTree(ctx, dir, engine, getenv)
		held.Close()
	}
}

// remove takes everything away.
func (a *arena) remove() error {
	if a.ears != nil {
		a.ears.close()
	}
	if a.held != nil {
		defer a.held.Close()
	}
	return a.clear(a.dir)
}

// clear removes a directory of the arena's.
func (a *arena) clear(dir string) error {
	getenv := a.getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	return clearTree(context.Background(), dir, a.podman, getenv)
}

// clearTree removes a tree that sandboxes wrote in. What they left unreadable is
// made readable first; what belongs to their other users is removed in podman's
// namespace. A link is never followed.
func clearTree(ctx context.Context, dir, engine string, getenv func(string) string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != "." {
			root.Chmod(path, 0o700)
		}
		return nil
	})
	if err = os.RemoveAll(dir); err == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, clearTime)
	defer stop()
	if engine != "" {
		if _, err2 := proc.Output(ctx, proc.Cmd{Argv: []string{engine, "unshare", "rm", "-rf", "--", dir}, Env: podman.Environ(getenv, os.DevNull)}); err2 == nil {
			return nil
		}
	}
	return hinted{fmt.Errorf("removing what the attacks left: %w", err), "podman unshare rm -rf " + dir}
}
