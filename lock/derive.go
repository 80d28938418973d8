package lock

import (
	"slices"
	"strings"

	"lazaret/lock/config"
)

// Fixed places inside every sandbox.
const (
	workspace = "/workspace"
	runDir    = "/run/lazaret"
)

// fixedMounts is the part of the mount table that no config can change: the
// project, the masks over what a host program would run or obey, lazaret's own
// files, and the --config FILE where that lies in the workspace.
func fixedMounts(in Inputs, gitMode string, escalation bool) map[string]Mount {
	m := map[string]Mount{
		workspace:                   {Kind: KindBind, From: "{workspace_dir}", Mode: "rw,z"},
		workspace + "/.idea":        {Kind: KindTmpfs, Size: "16m"},
		workspace + "/.vscode":      {Kind: KindTmpfs, Size: "16m"},
		workspace + "/lazaret.lock": {Kind: KindBind, From: "{workspace_dir}/lazaret.lock", Mode: "ro"},
		workspace + "/lazaret.toml": {Kind: KindBind, From: "{workspace_dir}/lazaret.toml", Mode: "ro"},
	}
	if in.Override != nil && !strings.HasPrefix(in.Override.Path, "/") && !strings.HasPrefix(in.Override.Path, "~/") {
		readOnly(m, in.Override.Path)
	}
	if gitMode == "none" {
		// Still masked: a .git made inside would carry hooks to the host.
		m[workspace+"/.git"] = Mount{Kind: KindTmpfs, Size: "16m"}
	} else {
		m[workspace+"/.git"] = Mount{Kind: KindGit, Size: "256m"}
		m[runDir+"/git"] = Mount{Kind: KindGitShadow, Mode: "ro"}
	}
	if escalation {
		m[runDir+"/certs"] = Mount{Kind: KindCerts, Mode: "ro"}
		m[runDir+"/escalate"] = Mount{Kind: KindEscalate, Mode: "ro"}
		m[runDir+"/escalate.sock"] = Mount{Kind: KindEscalateSocket, Mode: "ro"}
	}
	return m
}

// readOnly puts a file of the workspace there to be read only. A mount does not
// keep the directories above it from being renamed, which would leave another
// file under the old name: so each of them is mounted on itself.
func readOnly(m map[string]Mount, path string) {
	for i, c := range path {
		if dir := path[:i]; c == '/' {
			if _, taken := m[workspace+"/"+dir]; !taken {
				m[workspace+"/"+dir] = Mount{Kind: KindBind, From: "{workspace_dir}/" + dir, Mode: "rw"}
			}
		}
	}
	m[workspace+"/"+path] = Mount{Kind: KindBind, From: "{workspace_dir}/" + path, Mode: "ro"}
}

// mounts derives a profile's mount table. Two things at one place are an error.
func mounts(key string, in Inputs, c *config.Config, p config.Profile) (map[string]Mount, error) {
	m := fixedMounts(in, p.Git, c.Escalation.Enabled)
	add := func(field, target string, mount Mount) error {
		if have, taken := m[target]; taken {
			return wrong(key+"."+field, "%s is taken: %s there", quote(target), describe(have))
		}
		m[target] = mount
		return nil
	}
	for _, dir := range p.PersistentDirs {
		if err := add("persistent_dirs", dir, Mount{Kind: KindOverlay, Name: overlayName(dir)}); err != nil {
			return nil, err
		}
	}
	for _, v := range p.Volumes {
		mode := "rw"
		if v.ReadOnly {
			mode = "ro"
		}
		if v.Relabel != "" {
			mode += "," + v.Relabel
		}
		if err := add("volumes", v.Container, Mount{Kind: KindBind, From: v.Host, Mode: mode}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// describe says what a mount is, for a message.
func describe(m Mount) string {
	switch m.Kind {
	case KindBind:
		return quote(m.From) + " is mounted"
	case KindOverlay:
		return "a persistent directory is"
	default:
		return "lazaret's own " + m.Kind + " mount is"
	}
}

// overlayName is the NAME of NAME_changes for a persistent directory.
func overlayName(dir string) string {
	return strings.ReplaceAll(strings.TrimPrefix(dir, "/"), "/", "_")
}

// runtimeArgs is the runtime and the flags that are no fact of the host.
func runtimeArgs(escalation bool) []string {
	if escalation {
		return []string{"runsc", "host-uds=open"} // else the socket refuses connections
	}
	return []string{"runsc"}
}

// capabilities are those a sandbox keeps, inside gVisor and its own user
// namespace: podman's defaults without raw sockets, device nodes and audit.
func capabilities() []string {
	return []string{
		"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE",
		"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
}

// profile derives everything of a profile but the image's digests.
func profile(key string, in Inputs, c *config.Config, p config.Profile) (Profile, []Warning, error) {
	m, err := mounts(key, in, c, p)
	if err != nil {
		return Profile{}, nil, err
	}
	n, warnings := network(key, c.Network, p)
	out := Profile{
		Command:      emptyNotNil(p.Command),
		Setup:        slices.Clone(p.Setup),
		Runtime:      runtimeArgs(c.Escalation.Enabled),
		Capabilities: capabilities(),
		State:        p.State,
		Ports:        texts(p.Ports),
		Image:        Image{Ref: p.Image},
		Git:          Git{Mode: p.Git, Branch: p.Branch, Tree: p.Tree},
		Env:          p.Env,
		Network:      n,
		Escalation:   escalation(c.Escalation),
		Mounts:       m,
	}
	if l := (Limits{Memory: p.Memory, CPUs: p.CPUs, PIDs: p.PIDs}); l != (Limits{}) {
		out.Limits = &l
	}
	return out, warnings, nil
}

func escalation(e config.Escalation) Escalation {
	if !e.Enabled {
		return Escalation{}
	}
	return Escalation{
		Enabled:          true,
		SocketDir:        e.SocketDir,
		Timeout:          durationText(e.Timeout),
		MaxOutput:        e.MaxOutput,
		AutoApprove:      vectors(e.AutoApprove),
		AutoApproveExact: vectors(e.AutoApproveExact),
	}
}

// vectors sorts argument vectors and drops duplicates.
func vectors(v [][]string) [][]string {
	v = slices.Clone(v)
	slices.SortFunc(v, slices.Compare)
	return slices.CompactFunc(v, slices.Equal)
}

func emptyNotNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return slices.Clone(s)
}
