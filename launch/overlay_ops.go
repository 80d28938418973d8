package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/overlay"
)

// held is the lock of a profile's state.
type held struct{ file *os.File }

// release gives the lock back: nothing of the run writes any more.
func (h *held) release() error {
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file = nil
	return overlay.Release(f)
}

// drop lets go of the lock, which goes on naming the run.
func (h *held) drop() {
	if h.file != nil {
		h.file.Close()
		h.file = nil
	}
}

// HoldState makes the directories of a profile's state and takes their lock.
type HoldState struct {
	Place  overlay.Place
	Holder overlay.Holder
	Runs   string // where the records of runs lie

	held *held
}

// Do takes the lock, or says who has it.
func (o HoldState) Do(context.Context, step.Values) (step.Values, error) {
	f, err := o.Place.Hold(o.Holder, func(run string) bool {
		_, err := os.Lstat(filepath.Join(o.Runs, run))
		return !idPattern.MatchString(run) || errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return nil, err
	}
	o.held.file = f
	return nil, nil
}

// Show gives the commands that would do the same.
func (o HoldState) Show() []string {
	return []string{
		"mkdir -p " + shown(filepath.Join(o.Place.DataRoot, o.Place.Dir), filepath.Join(o.Place.DataRoot, o.Place.Records)),
		"flock " + shown(filepath.Join(o.Place.DataRoot, o.Place.Records, "lock")),
	}
}

// MakeState makes the directories of a state that ends with the run.
type MakeState struct{ Place overlay.Place }

// Do makes them.
func (o MakeState) Do(context.Context, step.Values) (step.Values, error) { return nil, o.Place.Make() }

// Show gives the command that would do the same.
func (o MakeState) Show() []string {
	return []string{"mkdir -p " + shown(filepath.Join(o.Place.DataRoot, o.Place.Dir))}
}

var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func isImageID(s string) bool { return imageID.MatchString(s) }

// ImageRoot mounts an image, to be read by the helper.
type ImageRoot struct {
	Engine   podman.Engine
	Environ  []string
	Image    string // its id
	Value    string // the Value that gets its root directory
	Optional bool   // there need not be such an image any more
}

func (o ImageRoot) argv() []string { return o.Engine.Argv("image", "mount", o.Image) }

// Do gives the directory; "" where there is no such image.
func (o ImageRoot) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	if o.Optional {
		if _, err := proc.Output(ctx, proc.Cmd{Argv: o.Engine.Argv("image", "exists", o.Image), Env: o.Environ}); err != nil {
			return nil, ctx.Err()
		}
	}
	out, err := proc.Output(ctx, proc.Cmd{Argv: o.argv(), Env: o.Environ})
	if err != nil {
		return nil, err
	}
	root := strings.TrimSuffix(string(out), "\n")
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("podman image mount answers %q", root)
	}
	return step.Values{o.Value: root}, nil
}

// Show gives the command.
func (o ImageRoot) Show() []string { return []string{shown(o.argv()...)} }

// ImageUnmount takes back one ImageRoot: podman counts.
type ImageUnmount struct {
	Engine  podman.Engine
	Environ []string
	Image   string
}

func (o ImageUnmount) argv() []string { return o.Engine.Argv("image", "unmount", o.Image) }

// Do unmounts the image. That it is gone altogether is no error.
func (o ImageUnmount) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	_, err := proc.Output(ctx, proc.Cmd{Argv: o.argv(), Env: o.Environ})
	if err == nil {
		return nil, nil
	}
	if _, gone := proc.Output(ctx, proc.Cmd{Argv: o.Engine.Argv("image", "exists", o.Image), Env: o.Environ}); proc.ExitStatus(gone) == 1 {
		return nil, nil
	}
	return nil, err
}

// Show gives the command.
func (o ImageUnmount) Show() []string { return []string{shown(o.argv()...)} }

// Overlay mounts a persistent directory.
type Overlay struct {
	Layer  overlay.Layer
	Target string // where podman mounts it from

	mounts *overlay.Mounts
}

// Do mounts it, and tells what a person should know about it.
func (o Overlay) Do(ctx context.Context, in step.Values) (step.Values, error) {
	now, before, err := o.mounts.Up(ctx, o.Layer, in[rootValue], func(id string) string { return in[oldRootValue+id] }, o.Target)
	if err != nil {
		return nil, err
	}
	out := step.Values{}
	for i, s := range drift(o.Layer, now, before) {
		out[fmt.Sprintf("%s%s %d", toldValue, o.Layer.Name, i)] = s
	}
	return out, nil
}

// Show gives the command that would do the same.
func (o Overlay) Show() []string {
	at := func(suffix string) string {
		return filepath.Join(o.Layer.Place.DataRoot, o.Layer.Place.Dir, o.Layer.Name+suffix)
	}
	lower := late(rootValue) + o.Layer.Path
	return []string{
		"mount -t overlay (" + o.Layer.Driver + ") lowerdir=" + shown(lower) + " upperdir=" + shown(at("_changes")) + " workdir=" + shown(at("_work")) + " on " + shown(at("_merged")),
		"mount --bind " + shown(at("_merged"), o.Target),
	}
}

// Discard removes a run's own directory in data_root.
type Discard struct{ DataRoot, Run string }

// Do removes it.
func (o Discard) Do(context.Context, step.Values) (step.Values, error) {
	return nil, overlay.Discard(o.DataRoot, o.Run)
}

// Show gives the command that would do the same.
func (o Discard) Show() []string {
	return []string{"podman unshare rm -rf " + shown(filepath.Join(o.DataRoot, overlay.RunDir(o.Run)))}
}
