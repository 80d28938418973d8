package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// Still makes the sandbox stand still, or go on. Podman's own pause needs
// cgroups, which rootless gVisor does not have.
type Still struct {
	Engine  podman.Engine
	Environ []string
	Name    string
	Runsc   string // where runsc keeps its state
	Resume  bool

	// mark keeps in mind what ends a container that stands still; nil once it
	// goes on. Podman says that it has removed one, and its processes live.
	mark func(name string, kill []string)
}

// suspendedFile is in the run directory while the sandbox stands still, for
// whoever cleans up after everybody was killed.
const suspendedFile = "suspended"

// runscRoot is where runsc keeps its state when podman starts it.
func runscRoot(runtimeDir string) string { return filepath.Join(runtimeDir, "runsc") }

// Do asks runsc.
func (o Still) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	id, err := containerByName(ctx, o.Engine, o.Environ, o.Name)
	if err != nil {
		return nil, err
	}
	if !o.Resume && o.mark != nil {
		o.mark(o.Name, o.argv("delete", "--force", id))
	}
	verb := "pause"
	if o.Resume {
		verb = "resume"
	}
	if _, err := proc.Output(ctx, proc.Cmd{Argv: o.argv(verb, id), Env: o.Environ}); err != nil {
		return nil, err
	}
	if o.Resume && o.mark != nil {
		o.mark(o.Name, nil)
	}
	return nil, nil
}

func containerByName(ctx context.Context, e podman.Engine, env []string, name string) (string, error) {
	out, err := proc.Output(ctx, proc.Cmd{Argv: e.Argv("container", "inspect", "--format", "{{.Id}}", "--", name), Env: env})
	return strings.TrimSpace(string(out)), err
}

func (o Still) argv(args ...string) []string {
	return append([]string{o.Engine.Runsc, "--root", o.Runsc}, args...)
}

// Show gives the command.
func (o Still) Show() []string {
	return []string{shown(o.argv(map[bool]string{false: "pause", true: "resume"}[o.Resume], "ID")...)}
}

// unfreeze ends a sandbox that stands still, which podman would remove from its
// own memory only.
func (u *undoer) unfreeze(ctx context.Context, engine podman.Engine, name string) {
	if _, err := os.Lstat(filepath.Join(u.runs, u.record.ID, suspendedFile)); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if id, err := containerByName(ctx, engine, u.env, name); err == nil {
		o := Still{Engine: engine, Runsc: runscRoot(filepath.Dir(u.runs))}
		proc.Output(ctx, proc.Cmd{Argv: o.argv("delete", "--force", id), Env: u.env})
	}
}
