package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"lazaret/launch"
	"lazaret/launch/trust"
	"lazaret/lock"
	"lazaret/lock/config"
)

// workspaceConfig reads a workspace's lazaret.toml. What is there but cannot be read is not
// the same as what could.
func workspaceConfig(workspace string) (exists bool, text []byte) {
	text, err := config.ReadFile(filepath.Join(workspace, lock.WorkspacePath))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, []byte("\x00" + err.Error())
	}
	return true, text
}

// beginSession records what the config is while no agent has had the chance to
// change it.
func (d *deps) beginSession() error {
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	exists, text := workspaceConfig(d.cwd)
	return store.Begin(trust.Session{Workspace: d.cwd, Since: time.Now().Truncate(time.Second), Exists: exists, Config: string(text)})
}

// endSession forgets the session of a workspace where the config is still what
// it was. Where it is not, or where another sandbox runs, the record stays for
// the person to settle.
func (d *deps) endSession(ctx context.Context, workspace string) error {
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	m, err := store.Session(workspace)
	if err != nil || m == nil || !m.Same(workspaceConfig(workspace)) || d.live(ctx, workspace) {
		return err
	}
	return store.Settle(workspace)
}

// live reports whether a sandbox of a workspace is running.
func (d *deps) live(ctx context.Context, workspace string) bool {
	if !filepath.IsAbs(d.env("XDG_RUNTIME_DIR")) {
		return false
	}
	env, err := d.launchEnv()
	if err != nil {
		return true // who knows
	}
	runs, err := launch.Runs(ctx, env)
	if err != nil {
		return true // who knows
	}
	for _, r := range runs {
		if r.Workspace == workspace {
			return true
		}
	}
	return false
}

// changedConfig is a config that an agent may have written.
type changedConfig struct{ session trust.Session }

func (e *changedConfig) Error() string {
	what := "changed"
	if !e.session.Exists {
		what = "appeared"
	}
	return fmt.Sprintf("%s %s since a sandbox began to run here on %s: the agent may have written it", lock.WorkspacePath, what, when(e.session.Since))
}

// Hint is the next command.
func (e *changedConfig) Hint() string {
	return `look at it, then "lazaret trust --config" says that it is yours; on a terminal "lazaret lock" asks`
}

// askConfig lets lock go on where the config is the person's own, asking on a
// terminal where that is not certain.
func (d *deps) askConfig(cmd *cobra.Command, yes bool) error {
	if d.stateDir() == "" {
		return nil
	}
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	m, err := store.Session(d.cwd)
	if err != nil {
		return err
	}
	exists, text := workspaceConfig(d.cwd)
	if m == nil || m.Same(exists, text) {
		return nil
	}
	changed := &changedConfig{*m}
	to := cmd.OutOrStdout()
	if !yes {
		stdin, _, _ := files(cmd)
		if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
			return changed
		}
		tty, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY, 0)
		if err != nil {
			return changed
		}
		defer tty.Close()
		to = tty
	}
	changed.tell(to, d, exists, string(text))
	if !yes {
		stdin, _, _ := files(cmd)
		switch ok, err := confirm(stdin, to, "Is this yours?"); {
		case err != nil:
			return err
		case !ok:
			return errNothingDone
		}
	}
	if d.live(cmd.Context(), d.cwd) {
		// It may change again: what was looked at is the new beginning.
		if err := store.Settle(d.cwd); err != nil {
			return err
		}
		return store.Begin(trust.Session{Workspace: d.cwd, Since: time.Now().Truncate(time.Second), Exists: exists, Config: string(text)})
	}
	return store.Settle(d.cwd)
}
