package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// StateCommand is the hidden command that works on what profiles keep, in
// podman's namespace: only there do the sandboxes' files belong to somebody.
const StateCommand = "namespace-state"

// StateTask is what it is to do.
type StateTask struct {
	Do       string // usage, diff, reset, export, import
	Place    overlay.Place
	Names    []string // of layers
	Run      string   // an id for what is in the making, and for the lock
	Runs     string   // where the records of runs lie
	Driver   string   // import: storage.overlay
	Fuse     string   // import: fuse-overlayfs
	Podman   string
	Holder   overlay.Holder
	Compress bool // export and import: gzip
}

// Kept is the state of one profile, or of one profile in one workspace.
type Kept struct {
	Dir   string // its directory in data_root: PROFILE or PROFILE@NAME-DIGEST
	Place overlay.Place
	overlay.Known
}

// Profile is the profile's name.
func (k Kept) Profile() string {
	name, _, _ := strings.Cut(k.Dir, "@")
	return name
}

var statePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,31}(@[A-Za-z0-9_-]{1,60})?$`)

// StateRoot finds data_root of a lock. It needs no workspace.
func StateRoot(f *lock.File, e Env) (string, error) {
	dir, err := config.Expand(f.Storage.DataRoot, config.Tokens{Home: e.Getenv("HOME")})
	if err == nil {
		dir, err = resolve(dir)
	}
	if err != nil {
		return "", fmt.Errorf("storage.data_root: %w", err)
	}
	return dir, nil
}

// AllKept lists what is kept in data_root, sorted.
func AllKept(dataRoot string) ([]Kept, error) {
	entries, err := os.ReadDir(filepath.Join(dataRoot, overlay.Own, "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Kept
	for _, e := range entries {
		if !e.IsDir() || !statePattern.MatchString(e.Name()) {
			continue
		}
		k := Kept{Dir: e.Name(), Place: overlay.Kept(dataRoot, e.Name())}
		if k.Known, err = k.Place.Read(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		if len(k.Layers) > 0 {
			out = append(out, k)
		}
	}
	return out, nil
}

// OneKept finds the state of a profile of the lock as it is used in a workspace,
// or of a directory in data_root by its name.
func OneKept(f *lock.File, dataRoot, name, workspace string) (Kept, error) {
	if !statePattern.MatchString(name) {
		return Kept{}, refuse(`"lazaret state ls" lists what is kept`, "%q is no profile and no directory of data_root", config.Show(name))
	}
	dir := name
	if p, ok := f.Profiles[name]; ok {
		dir = stateName(p.State, name, workspace)
	}
	k := Kept{Dir: dir, Place: overlay.Kept(dataRoot, dir)}
	var err error
	k.Known, err = k.Place.Read()
	return k, err
}

// RunState has a task done in podman's namespace.
func RunState(ctx context.Context, e Env, t StateTask, stdin, stdout, stderr *os.File) ([]byte, error) {
	pod, err := lookPath("podman", e.Getenv("PATH"), e.Workspace)
	if err != nil {
		return nil, err
	}
	dir, err := runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
	if err != nil {
		return nil, err
	}
	t.Podman, t.Runs = pod, filepath.Join(dir, "lazaret")
	t.Fuse, _ = lookPath("fuse-overlayfs", podman.SearchPath, e.Workspace)
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return proc.Output(ctx, proc.Cmd{
		// A mount namespace of its own: whatever ends it, no mount stays.
		Argv:  []string{pod, "unshare", "unshare", "--mount", "--propagation", "slave", "--", e.Lazaret, StateCommand, string(text)},
		Env:   podman.Environ(e.Getenv, os.DevNull),
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
	})
}

// ServeState does a task, in podman's namespace.
func ServeState(ctx context.Context, text string, environ []string, in io.Reader, out, talk io.Writer) error {
	var t StateTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	if t.Do == "usage" || t.Do == "diff" {
		return t.look(ctx, environ, enc)
	}
	held, err := t.Place.Hold(t.Holder, func(run string) bool {
		_, err := os.Lstat(filepath.Join(t.Runs, run))
		return !idPattern.MatchString(run) || errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return err
	}
	defer overlay.Release(held)
	if t.Do == "reset" {
		return t.Place.Reset(t.Names, t.Run) // which may be the way out of the next
	}
	if err := t.Place.Recover(); err != nil {
		return err
	}
	switch t.Do {
	case "export":
		left, err := t.Place.Export(out)
		for _, l := range left {
			fmt.Fprintf(talk, "lazaret: warning: left out: %s: %s\n", config.Show(l.Path), l.Why)
		}
		return err
	case "import":
		return t.Place.Import(ctx, in, t.Run, t.Driver, t.Fuse)
	}
	return fmt.Errorf("no task is called %q", t.Do)
}

// look answers what changes nothing.
func (t StateTask) look(ctx context.Context, environ []string, enc *json.Encoder) error {
	k, err := t.Place.Read()
	if err != nil {
		return err
	}
	var errs []error // one directory that cannot be looked through hides no other
	for _, name := range t.Names {
		r := k.Layers[name]
		if t.Do == "usage" {
			u, err := t.Place.Usage(name, r.Driver)
			if err == nil {
				err = enc.Encode(u)
			}
			errs = append(errs, err)
			continue
		}
		if err := t.diff(ctx, name, r, environ, enc); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Path, err))
		}
	}
	return errors.Join(errs...)
}

// StateLine is one line of the answer to diff: a change, or which image it is
// compared with.
type StateLine struct {
	Layer  string          `json:"layer"`
	Image  string          `json:"image,omitempty"` // "" in the first line of a layer: it is gone
	Change *overlay.Change `json:"change,omitempty"`
}

func (t StateTask) diff(ctx context.Context, name string, r overlay.Record, environ []string, enc *json.Encoder) error {
	engine := podman.Engine{Podman: t.Podman}
	root := ""
	if isImageID(r.Image.Config) {
		mount := ImageRoot{Engine: engine, Environ: environ, Image: r.Image.Config, Value: rootValue, Optional: true}
		out, err := mount.Do(ctx, nil)
		if err != nil {
			return err
		}
		if root = out[rootValue]; root != "" {
			defer ImageUnmount{engine, environ, r.Image.Config}.Do(context.WithoutCancel(ctx), nil)
		}
	}
	head := StateLine{Layer: name}
	if root != "" {
		head.Image = r.Image.Config
	}
	if err := enc.Encode(head); err != nil {
		return err
	}
	return t.Place.Changes(name, root, func(c overlay.Change) error { return enc.Encode(StateLine{Layer: name, Change: &c}) })
}
