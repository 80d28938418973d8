package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/overlay"
)

// Values of the image mounts: root directories, as paths in the helper.
const (
	rootValue    = "image.root"
	oldRootValue = "image.root." // followed by the image's id
)

// stateName is the name of a profile's directory in data_root: the profile's
// own, or with state = "workspace" one for each workspace, whose name no
// profile can have.
func stateName(state, profile, workspace string) string {
	if state != "workspace" {
		return profile
	}
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(workspace))
	sum := sha256.Sum256([]byte(workspace))
	return profile + "@" + base[:min(len(base), 40)] + "-" + hex.EncodeToString(sum[:6])
}

// probeOverlays looks at what persistent directories need.
func (h *Host) probeOverlays() error {
	// Without it, the kernel's own driver may still do.
	h.FuseOverlay, _ = lookPath("fuse-overlayfs", podman.SearchPath, h.Workspace)
	var err error
	if h.Kept, err = overlay.Kept(h.DataRoot, filepath.Base(h.ProfileDir)).Read(); err != nil {
		return fmt.Errorf("reading what is recorded of the persistent directories: %w", err)
	}
	h.Fleeting = overlay.Fleeting(h.DataRoot)
	h.Stale = stale(h.DataRoot, h.RuntimeDir)
	return nil
}

// persistent lists the names of the profile's persistent directories.
func (r *resolver) persistent() (names []string) {
	for _, target := range slices.Sorted(maps.Keys(r.profile.Mounts)) {
		if m := r.profile.Mounts[target]; m.Kind == lock.KindOverlay {
			names = append(names, m.Name)
		}
	}
	return names
}

// state adds the step that makes the persistent directories this run's, before
// the helper starts: it holds their lock for as long as a sandbox can write.
func (r *resolver) state() bool {
	if len(r.persistent()) == 0 && !r.setup.due {
		return false
	}
	if r.opts.Ephemeral {
		r.place = overlay.Thrown(r.Host.DataRoot, r.Record.ID)
		r.step(step.Step{
			Name: "state", Op: MakeState{r.place},
			Undo: []step.Undo{{Kind: undoDiscard, Base: baseData, Name: overlay.RunDir(r.Record.ID)}},
		})
		return true
	}
	r.place = overlay.Kept(r.Host.DataRoot, filepath.Base(r.Host.ProfileDir))
	r.step(step.Step{Name: "state", Op: HoldState{
		Place: r.place, Runs: filepath.Dir(r.dir), held: &r.held,
		Holder: overlay.Holder{Run: r.Record.ID, Workspace: r.Record.Workspace, Since: r.Record.Started, Doing: "lazaret launch " + r.Record.Profile},
	}})
	return true
}

// roots adds the steps that show the image to the helper, and the images that
// the persistent directories were last used on, where those are others.
func (r *resolver) roots() {
	if r.have("image.root") {
		return
	}
	root := step.Step{
		Name: "image.root", Where: step.Podman, Needs: []string{"image"},
		Op:   ImageRoot{Engine: r.Engine, Environ: r.environ, Image: r.pinned.Config, Value: rootValue},
		Undo: []step.Undo{{Kind: undoUnmount, Name: r.pinned.Config}},
	}
	if layers := r.Host.Known[r.pinned.Config].Layers; len(layers) > 0 {
		// The mount, if it takes one, goes with the helper.
		root.Op = ImageLayers{Image: r.pinned.Config, Layers: layers, At: filepath.Join(r.dir, mountsDir, "image"), Value: rootValue}
		root.Undo = nil
	}
	r.step(root)
	sweep := Sweep{DataRoot: r.Host.DataRoot, Runs: r.Host.Stale}
	if r.Host.Kept.Commit != nil && !r.opts.Ephemeral {
		sweep.Place = &r.place
	}
	if sweep.Place != nil || len(sweep.Runs) > 0 {
		r.step(step.Step{Name: "state.sweep", Where: step.Podman, Needs: []string{"helper"}, Op: sweep})
	}
	if r.opts.Ephemeral {
		return
	}
	for _, name := range r.persistent() {
		old := r.Host.Kept.Layers[name].Image.Config
		if was := "image.root " + old; old != "" && old != r.pinned.Config && isImageID(old) && !r.have(was) {
			r.step(step.Step{
				Name: was, Where: step.Podman, Needs: []string{"helper"},
				Op:   ImageRoot{Engine: r.Engine, Environ: r.environ, Image: old, Value: oldRootValue + old, Optional: true},
				Undo: []step.Undo{{Kind: undoUnmount, Name: old}},
			})
		}
	}
}

func (r *resolver) have(name string) bool { return r.Plan.has(name) }

// overlay adds the step that mounts a persistent directory.
func (r *resolver) overlay(target, name string) podman.Mount {
	r.roots()
	needs := []string{"image.root"}
	if r.have("state.sweep") {
		needs = append(needs, "state.sweep")
	}
	if old := "image.root " + r.Host.Kept.Layers[name].Image.Config; r.have(old) {
		needs = append(needs, old)
	}
	at := filepath.Join(r.dir, mountsDir, strconv.Itoa(r.binds))
	r.binds++
	l := r.layer(target, name)
	s := step.Step{
		Name: "overlay " + target, Where: step.Podman, Needs: needs,
		Op:   Overlay{Layer: l, Target: at},
		Undo: []step.Undo{{Kind: undoOverlay, Name: l.Key()}},
	}
	if r.staged() {
		r.stage(s, at)
	} else {
		r.step(s)
	}
	return podman.Mount{Kind: "bind", Source: at, Target: target}
}

// label is what SELinux lets every container of the person's read and write,
// as the z of a volume does.
const label = "system_u:object_r:container_file_t:s0"

func (r *resolver) layer(target, name string) overlay.Layer {
	l := overlay.Layer{
		Place: r.place, Name: name, Path: target, Run: r.Record.ID,
		Image:  overlay.Image{Ref: r.profile.Image.Ref, Config: r.pinned.Config},
		Driver: r.file.Storage.Overlay, Program: r.Host.FuseOverlay,
	}
	if r.Host.SELinux {
		l.Label = label
	}
	for _, other := range slices.Sorted(maps.Keys(r.profile.Mounts)) {
		if rel, ok := strings.CutPrefix(other, target+"/"); ok {
			l.Under = append(l.Under, rel)
		}
	}
	return l
}
