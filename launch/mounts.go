package launch

import (
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
// podman mounts, parents first. A new kind of mount is one case here.
func (r *resolver) mounts() []podman.Mount {
	var out []podman.Mount
	for _, target := range slices.Sorted(maps.Keys(r.profile.Mounts)) {
		switch m := r.profile.Mounts[target]; m.Kind {
		case lock.KindBind:
			if src := r.Host.Sources[target]; src.Exists || src.Dir {
				out = append(out, r.bind(target, src, m.Mode))
			}
		case lock.KindTmpfs:
			out = append(out, r.mask(target, m.Size))
		case lock.KindGit:
			out = append(out, r.git(target, m.Size))
		}
		// The git shadow, overlays and the escalation's mounts come with the
		// parts that fill them; until then the sandbox has less, never more.
	}
	return out
}

// bind mounts a source of the host by way of the run directory.
func (r *resolver) bind(target string, src Source, mode string) podman.Mount {
	needs := []string{"helper"}
	if !src.Exists {
		needs = append(needs, r.stateDir(target, src.Path))
	}
	at := filepath.Join(r.dir, mountsDir, strconv.Itoa(r.binds))
	r.binds++
	r.step(step.Step{
		Name: "bind " + target, Where: step.Podman, Needs: needs,
		Op: Bind{Source: src.Path, Target: at, Dir: src.Dir},
	})
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

// stateDir makes a volume's directory below data_root and returns its step.
func (r *resolver) stateDir(target, path string) string {
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
		name := strings.TrimPrefix(target, "/workspace/")
		r.step(step.Step{
			Name: "mask " + target, Op: MaskDir{r.Host.Workspace, name},
			Undo: []step.Undo{{Kind: undoRmdir, Base: baseWorkspace, Name: name}},
		})
	}
	return podman.Mount{Kind: "tmpfs", Target: target, Size: size}
}

// git shows the repository read-only: hooks and config cannot be written, and
// neither can a .git file be pointed elsewhere.
func (r *resolver) git(target, size string) podman.Mount {
	mode, there := r.Host.Masked[target]
	if !there {
		return r.mask(target, size)
	}
	src := Source{Path: filepath.Join(r.Host.Workspace, ".git"), Exists: true, Dir: mode.IsDir()}
	return r.bind(target, src, "ro")
}
