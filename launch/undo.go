package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	undoHooks     = "hooks"     // remove an empty directory that hooks would be in
	undoTree      = "tree"      // remove a tree of lazaret's own below the cache directory
	undoSocket    = "socket"    // remove the run's socket
	undoGitStore  = "git-store" // remove what a run's git directories were made of
	undoOverlay   = "overlay"   // unmount a persistent directory
	undoUnmount   = "image"     // unmount the image
	undoDiscard   = "discard"   // remove the run's own directory in data_root
)

// Roots that an undo may name.
const (
	baseWorkspace = "workspace"
	baseCache     = "cache"
	baseSocket    = "socket" // the name is an absolute path
	baseData      = "data"
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
	// lazaret is this program, to be started again in podman's namespace.
	lazaret string
	git     string        // git's program; "" where there is none
	brought func(GitHome) // when set, told what came home
	// helper, when set, removes containers where they were made.
	helper *helper
}

func (u *undoer) undo(ctx context.Context, x step.Undo) error {
	switch x.Kind {
	case undoContainer:
		switch {
		case x.Base == "" && (x.Name == u.record.Container() || x.Name == u.record.Container()+setupSuffix):
			return u.removeContainer(ctx, u.podman, x.Name)
		case x.Base == "" && x.Name == u.record.Sidecar():
			return u.removeContainer(ctx, u.router, x.Name)
		}
		return fmt.Errorf("refusing to remove container %q, which is not of this run", x.Name)
	case undoRmdir:
		if x.Base != baseWorkspace || !slices.Contains(maskTargets, "/workspace/"+x.Name) {
			return fmt.Errorf("refusing to remove directory %q, which is no mask", x.Name)
		}
		return u.removeMask(x.Name)
	case undoHooks:
		// Where git looks for hooks can be anywhere; only what is empty goes.
		if x.Base != baseWorkspace || !filepath.IsLocal(x.Name) || filepath.Clean(x.Name) != x.Name || x.Name == "." || split(x.Name)[0] == ".git" {
			return fmt.Errorf("refusing to remove directory %q, where no hooks can be", x.Name)
		}
		return u.removeMask(x.Name)
	case undoTree:
		if x.Base != baseCache || x.Name != layoutName(u.record.ID) && x.Name != sidecarLayoutName(u.record.ID) {
			return fmt.Errorf("refusing to remove %q, which is not of this run", x.Name)
		}
		if err := removeTree(u.cache, x.Name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if x.Kind == undoSocket && x.Base == baseSocket {
		return u.removeSocket(x.Name)
	}
	if x.Kind == undoGitStore {
		if x.Base != baseData || x.Name != filepath.Join(gitStores, u.record.ID) {
			return fmt.Errorf("refusing to remove %q, which is not of this run", x.Name)
		}
		return u.bringHome(ctx, x.Name)
	}
	switch x.Kind {
	case undoOverlay, undoUnmount, undoDiscard:
		return u.undoState(ctx, x)
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
	if name == u.record.Container() {
		u.unfreeze(ctx, engine, name)
	}
	var err error
	for range 3 {
		if _, err = proc.Output(ctx, proc.Cmd{Argv: engine.Remove(name), Env: u.env, Dir: "/"}); err == nil {
			return endOrphans(ctx, engine, name, u.env, []string{engine.Podman, "unshare"})
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
	root, err := os.OpenRoot(dir + "/")
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
