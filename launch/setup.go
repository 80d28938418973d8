package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lazaret/escalate/wire"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/overlay"
)

// setup is how the profile's set-up commands run before the sandbox: in one of
// their own, over the same mounts, but with layers of their own on the
// persistent directories, which are added to those when all has succeeded.
type setup struct {
	due    bool
	want   overlay.Setup
	stage  map[string]string // where the sandbox's mount lies, to where the set-up's does
	layers []step.Step       // the sandbox's own, for after
}

// setupOf finds out whether the set-up has to run.
func (r *resolver) setupOf() error {
	if len(r.profile.Setup) == 0 || r.opts.SkipSetup {
		return nil
	}
	if len(r.persistent()) == 0 && !r.keepsVolumes() {
		return refuse(fmt.Sprintf("add persistent_dirs to [profiles.%s], such as [\"/root\", \"/usr/local\"]", r.Record.Profile),
			"profiles.%s.setup: nothing of what it does would be kept", r.Record.Profile)
	}
	text, err := json.Marshal(r.profile.Setup)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	r.setup.want = overlay.Setup{Commands: "sha256:" + hex.EncodeToString(sum[:]), Image: r.pinned.Config, Done: r.Record.Started}
	r.setup.due = r.opts.Ephemeral || r.Host.Kept.Fresh(r.setup.want, r.persistent())
	r.setup.stage = map[string]string{}
	return nil
}

// keepsVolumes tells whether the profile keeps something in its own directory.
func (r *resolver) keepsVolumes() bool {
	for _, m := range r.profile.Mounts {
		if m.Kind == lock.KindBind && strings.HasPrefix(m.From, "{profile_dir}/") {
			return true
		}
	}
	return false
}

// staged tells whether the set-up gets layers of its own: what ends with the
// run needs none.
func (r *resolver) staged() bool { return r.setup.due && !r.opts.Ephemeral }

// stage adds the step that mounts the set-up's layer of a directory, and puts
// off the sandbox's own until that has been added to it.
func (r *resolver) stage(own step.Step, at string) {
	if !r.have("setup.place") {
		r.step(step.Step{
			Name: "setup.place", Needs: []string{"state"}, Op: MakeState{overlay.Staged(r.place, r.Record.ID)},
			Undo: []step.Undo{{Kind: undoDiscard, Base: baseData, Name: overlay.RunDir(r.Record.ID)}},
		})
	}
	l := own.Op.(Overlay).Layer
	kept := l.Place
	l.Below, l.Place = &kept, overlay.Staged(kept, r.Record.ID)
	if known, ok := r.Host.Kept.Layers[l.Name]; ok {
		l.Driver = known.Driver
	}
	target := filepath.Join(r.dir, mountsDir, strconv.Itoa(r.binds))
	r.binds++
	r.step(step.Step{
		Name: "setup.overlay " + l.Path, Where: step.Podman, Needs: append([]string{"setup.place"}, own.Needs...),
		Op:   Overlay{Layer: l, Target: target},
		Undo: []step.Undo{{Kind: undoOverlay, Name: l.Key()}},
	})
	r.setup.stage[at] = target
	own.Needs = append(own.Needs, "setup.keep")
	r.setup.layers = append(r.setup.layers, own)
}

// setUp adds the steps that run the set-up, from what the sandbox's run is.
func (r *resolver) setUp(run podman.Run, secrets map[string]string) {
	if !r.setup.due {
		return
	}
	run.Name += setupSuffix
	run.TTY = false
	run.IDFile, run.PIDFile = filepath.Join(r.dir, "setup.id"), filepath.Join(r.dir, "setup.pid")
	run.InitFile = "" // the network goes on after it
	run.Mounts = slices.DeleteFunc(slices.Clone(run.Mounts), func(m podman.Mount) bool { return forSession(m.Target) })
	for i, m := range run.Mounts {
		if at, ok := r.setup.stage[m.Source]; ok {
			run.Mounts[i].Source = at
		}
	}
	var names, needs []string
	for _, s := range r.Steps {
		needs = append(needs, s.Name)
	}
	r.step(step.Step{
		Name: "setup", Where: step.Podman, Needs: needs,
		Op:   Setup{Sandbox: Sandbox{Engine: r.Engine, Environ: r.environ, Run: run, Secrets: secrets, Tasks: r.tasks(), Store: r.Host.Known[r.pinned.Config].containers()}, Commands: r.profile.Setup},
		Undo: []step.Undo{{Kind: undoContainer, Name: run.Name}},
	})
	if r.uplink != nil {
		// gVisor took the addresses.
		r.step(step.Step{Name: "setup.cable", Where: step.Podman, Needs: []string{"setup"}, Op: Cable{Link: cable(), Again: true}})
	}
	if !r.staged() {
		return
	}
	for _, s := range r.setup.layers {
		names = append(names, s.Op.(Overlay).Layer.Name)
	}
	keep := []string{"setup"}
	r.step(step.Step{
		Name: "setup.keep", Where: step.Podman, Needs: keep,
		Op: KeepSetup{Place: r.place, Commit: overlay.Commit{Run: r.Record.ID, Names: names, Setup: r.setup.want}},
	})
	r.Steps = append(r.Steps, r.setup.layers...)
}

const setupSuffix = "-setup"

// forSession tells of a mount whether it is for a person at the sandbox only.
func forSession(target string) bool {
	for _, t := range []string{wire.CertsDir, wire.ClientPath, wire.Socket} {
		if target == t {
			return true
		}
	}
	return false
}

// stale lists the runs that left something in data_root and are no more: what
// undoes it was lost with the machine's memory.
func stale(dataRoot, runtimeDir string) (runs []string) {
	left, err := overlay.Leftovers(dataRoot)
	if err != nil {
		return nil // launching says what is wrong with it
	}
	for _, run := range left {
		if _, err := os.Lstat(filepath.Join(runtimeDir, "lazaret", run)); os.IsNotExist(err) {
			runs = append(runs, run)
		}
	}
	return runs
}
