package launch

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
)

// mounts adds the steps that the profile's mount table needs and returns what
// podman mounts, parents first. A new kind of mount is one case here: a lock that
// promises one, and a sandbox without, would be a cover that is not there.
func (r *resolver) mounts() ([]podman.Mount, error) {
	var out []podman.Mount
	for _, target := range slices.Sorted(maps.Keys(r.profile.Mounts)) {
		switch m := r.profile.Mounts[target]; m.Kind {
		case lock.KindBind:
			src := r.Host.Sources[target]
			if !src.Exists && strings.HasPrefix(target, "/workspace/lazaret.") {
				continue // a personal lock and its config lie elsewhere
			}
			switch {
			case target == "/workspace" && r.treeDir() != "":
				out = append(out, r.bindAfter(target, Source{Path: r.treeDir(), Exists: true, Dir: true}, m.Mode, "git.store"))
			case !r.leftOut(target):
				out = append(out, r.bind(target, src, m.Mode))
			}
		case lock.KindTmpfs:
			if r.treeDir() != "" && strings.HasPrefix(target, "/workspace/") {
				out = append(out, podman.Mount{Kind: "tmpfs", Target: target, Size: m.Size})
				continue
			}
			if mode, there := r.Host.Masked[target]; there && !mode.IsDir() {
				// Nothing can be mounted over a file but a file: itself, read-only.
				out = append(out, r.itself(target, mode))
				continue
			}
			out = append(out, r.mask(target, m.Size))
		case lock.KindOverlay:
			out = append(out, r.overlay(target, m.Name))
		case lock.KindGit:
			out = append(out, r.gitMount(target, m.Size)...)
		case lock.KindEscalate, lock.KindEscalateSocket, lock.KindCerts:
			if m, ok := r.escalateMount(target, m.Kind); ok {
				out = append(out, m)
			}
		case lock.KindGitShadow: // gitMounts has it
		default:
			return nil, fmt.Errorf("mounting %s: launch knows no mount of kind %q", target, m.Kind)
		}
	}
	out = append(out, r.nestedMounts()...)
	return append(out, r.gitMounts()...), nil
}

// bind mounts a source of the host by way of the run directory.
func (r *resolver) bind(target string, src Source, mode string) podman.Mount {
	return r.bindAfter(target, src, mode)
}

// bindAfter is bind for what earlier steps make.
func (r *resolver) bindAfter(target string, src Source, mode string, after ...string) podman.Mount {
	needs := append([]string{"helper"}, after...)
	if within(src.Path, r.Host.DataRoot) && !within(src.Path, filepath.Join(r.Host.DataRoot, ownState)) {
		needs = append(needs, r.stateDir(target, src))
	}
	at := filepath.Join(r.dir, mountsDir, strconv.Itoa(r.binds))
	r.binds++
	r.step(step.Step{
		Name: "bind " + target, Where: step.Podman, Needs: needs,
		Op: Bind{Source: src.Path, Target: at, Dir: src.Dir},
	})
	r.hideSockets(target, src, at, "bind "+target)
	m := podman.Mount{Kind: "bind", Source: at, Target: target}
	for _, opt := range strings.Split(mode, ",") {
		switch opt {
		case "ro":
			m.ReadOnly = true
		case "z", "Z":
			if r.Host.SELinux {
				m.Relabel = opt
			}
		}
	}
	return m
}

// stateDir makes a volume's directory below data_root, or closes the profile's
// to others if it is there, and returns the step.
func (r *resolver) stateDir(target string, src Source) string {
	path := src.Path
	if !src.Dir {
		path = filepath.Dir(path)
	}
	name, _ := filepath.Rel(r.Host.DataRoot, path)
	s := "state " + target
	r.step(step.Step{Name: s, Op: StateDir{DataRoot: r.Host.DataRoot, Name: name}})
	return s
}

// mask covers a directory of the workspace. Where there is none, an empty one
// is made and taken away again: without a mask, the agent could make it, and
// the host's editor would run what it says.
func (r *resolver) mask(target, size string) podman.Mount {
	if _, there := r.Host.Masked[target]; !there {
		r.makeMask(strings.TrimPrefix(target, "/workspace/"), undoRmdir)
	}
	return podman.Mount{Kind: "tmpfs", Target: target, Size: size}
}

// makeMask makes an empty directory in the workspace for as long as the run.
func (r *resolver) makeMask(name, undo string) {
	s := step.Step{
		Name: "mask /workspace/" + name, Op: MaskDir{r.Host.Workspace, name, filepath.Dir(r.dir)},
		Undo: []step.Undo{{Kind: undo, Base: baseWorkspace, Name: name}},
	}
	if up := "mask /workspace/" + filepath.Dir(name); slices.ContainsFunc(r.Steps, func(s step.Step) bool { return s.Name == up }) {
		s.Needs = []string{up}
	}
	r.step(s)
}

// itself mounts what lies at a path of the workspace over that path, read-only.
func (r *resolver) itself(target string, mode fs.FileMode) podman.Mount {
	path := filepath.Join(r.Host.Workspace, strings.TrimPrefix(target, "/workspace/"))
	return r.bind(target, Source{Path: path, Exists: true, Dir: mode.IsDir()}, "ro")
}
