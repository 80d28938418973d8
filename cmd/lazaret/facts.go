package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

// facts says in a few words what a sandbox is given, by the rows of a board.
// Much of it was chosen by whoever wrote the lock.
func facts(p *launch.Plan, f *lock.File, ephemeral bool) map[string]string {
	prof := f.Profiles[p.Record.Profile]
	out := map[string]string{
		rowImage:   imageFact(prof.Image, p.Host.Platform),
		rowNetwork: networkFact(prof.Network, prof.Ports),
		rowGit:     gitFact(prof.Git, p.Branch(), p.Repository()),
		rowState:   stateFact(prof.Mounts, ephemeral),
		rowAsks:    asksFact(prof.Escalation),
		rowSetup:   count(len(prof.Setup), "command"),
		rowSandbox: "gVisor " + strings.TrimPrefix(p.Host.Runsc.Version, "release-"),
	}
	for k, v := range out {
		out[k] = config.Show(v)
	}
	return out
}

// shortDigest is how much of a digest is shown of one that was checked.
const shortDigest = 12

func imageFact(i lock.Image, platform string) string {
	ref, _, _ := strings.Cut(i.Ref, "@")
	id := strings.TrimPrefix(i.Platforms[lock.PlatformKey(platform)].Config, "sha256:")
	return ref + " " + id[:min(len(id), shortDigest)]
}

func networkFact(n lock.Network, ports []string) string {
	var parts []string
	switch {
	case len(n.Allow)+len(n.Hosts) == 0:
		parts = append(parts, "none")
	case slices.Contains(n.Allow, "0.0.0.0/0") || slices.Contains(n.Allow, "::/0"):
		parts = append(parts, "everything")
		if len(n.Deny) > 0 {
			parts[0] += " but " + count(len(n.Deny), "range")
		}
	default:
		var reach []string
		if len(n.Hosts) > 0 {
			reach = append(reach, count(len(n.Hosts), "host"))
		}
		if len(n.Allow) > 0 {
			reach = append(reach, count(len(n.Allow), "range"))
		}
		parts = append(parts, strings.Join(reach, " and ")+" allowed")
		if len(n.Deny) > 0 {
			parts = append(parts, count(len(n.Deny), "range")+" denied")
		}
	}
	if len(ports) > 0 {
		parts = append(parts, "publishes "+strings.Join(ports, " "))
	}
	return strings.Join(parts, ", ")
}

func gitFact(g lock.Git, branch string, repository bool) string {
	switch {
	case g.Mode == "none":
		return "none"
	case !repository:
		return "no repository here"
	case branch == "":
		return g.Mode
	case g.Mode == "writeback":
		return branch + ", written to your repository itself"
	}
	return branch
}

// kept are the directories that persist.
func kept(mounts map[string]lock.Mount) (dirs []string) {
	for _, path := range slices.Sorted(maps.Keys(mounts)) {
		if mounts[path].Kind == lock.KindOverlay {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

func stateFact(mounts map[string]lock.Mount, ephemeral bool) string {
	dirs := kept(mounts)
	switch {
	case len(dirs) == 0:
		return ""
	case ephemeral:
		return strings.Join(dirs, " ") + ", empty and not kept"
	}
	return strings.Join(dirs, " ")
}

func asksFact(e lock.Escalation) string {
	if !e.Enabled {
		return ""
	}
	if n := len(e.AutoApprove) + len(e.AutoApproveExact); n > 0 {
		return fmt.Sprintf("commands of this machine, you decide on all but %d", n)
	}
	return "commands of this machine, you decide"
}
