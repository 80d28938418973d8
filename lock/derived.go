package lock

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"lazaret/lock/config"
)

// DerivedError is a lock that says what no config can make lazaret say:
// somebody wrote it by hand, or another version derived it differently.
type DerivedError struct {
	Key    string // dotted
	Reason string
}

func (e *DerivedError) Error() string { return e.Key + ": " + e.Reason }

// Hint is the next command.
func (e *DerivedError) Hint() string {
	return `this lock was changed by hand or made by another lazaret: run "lazaret lock" and review the difference`
}

// CheckDerived refuses a profile that no config could have led to. The lock
// shows everything, so that a person can read it, but runtime, flags, masks,
// read-only binds, capabilities and denied ranges are not its to decide, and
// neither is anything that a config is refused for. Rather than keeping a list
// of what to look at, the profile is turned back into the config it claims to
// come from, and derived from that again; whatever comes out different is a
// *DerivedError naming the first such key. An unknown profile is an
// *UnknownProfileError.
func (f *File) CheckDerived(name string) error {
	locked, err := f.Profile(name)
	if err != nil {
		return err
	}
	key := "profiles." + name
	claimed, err := claim(f, name, locked)
	if err != nil {
		return fmt.Errorf("checking %s: %w", key, err)
	}
	c, err := config.Load([]config.Layer{{Kind: config.User, Name: "the lock", Data: claimed}})
	if err != nil {
		return refused(key, err)
	}
	derived, _, err := profile(key, f.Inputs, c, c.Profiles[name])
	if err != nil {
		return refused(key, err)
	}
	derived.Image = locked.Image // digests are checked against the image itself
	d := &differ{}
	d.storage(f.Storage, Storage{DataRoot: c.Storage.DataRoot, Overlay: c.Storage.Overlay})
	d.profile([]string{"profiles", name}, locked, derived)
	if len(d.list) > 0 {
		return &DerivedError{d.list[0].Key, d.list[0].Why}
	}
	return nil
}

// refused turns the config's complaint into one about the lock.
func refused(key string, err error) error {
	var ce *config.Error
	if errors.As(err, &ce) {
		return &DerivedError{ce.Key, "no config can say this: " + ce.Msg}
	}
	var ke *KeyError
	if errors.As(err, &ke) {
		return &DerivedError{ke.Key, "no config can say this: " + ke.Reason}
	}
	return &DerivedError{key, "no config can say this"}
}

// claim writes the config that a profile claims to come from, as TOML.
func claim(f *File, name string, p Profile) ([]byte, error) {
	type table = map[string]any
	prof := table{
		"image":           p.Image.Ref,
		"allow_egress":    p.Network.Allow,
		"allow_hosts":     p.Network.Hosts,
		"setup":           p.Setup,
		"ports":           p.Ports,
		"git":             p.Git.Mode,
		"branch":          p.Git.Branch,
		"tree":            p.Git.Tree,
		"state":           p.State,
		"persistent_dirs": overlayTargets(p.Mounts),
	}
	if len(p.Command) > 0 {
		prof["command"] = p.Command
	}
	if len(p.Env) > 0 {
		prof["env"] = p.Env
	}
	if l := p.Limits; l != nil {
		for key, v := range map[string]string{"memory": l.Memory, "cpus": l.CPUs} {
			if v != "" {
				prof[key] = v
			}
		}
		if l.PIDs != 0 {
			prof["pids"] = l.PIDs
		}
	}
	fixed := fixedMounts(f.Inputs, p.Git.Mode, p.Escalation.Enabled)
	volumes := []table{}
	for _, target := range slices.Sorted(maps.Keys(p.Mounts)) {
		m := p.Mounts[target]
		if _, ours := fixed[target]; !ours && m.Kind == KindBind {
			volumes = append(volumes, table{"host": m.From, "container": target, "mode": m.Mode})
		}
	}
	prof["volumes"] = volumes

	esc := table{"enabled": p.Escalation.Enabled, "socket_dir": "/nowhere/lazaret"}
	if p.Escalation.Enabled {
		esc = table{
			"enabled":            true,
			"socket_dir":         p.Escalation.SocketDir,
			"timeout":            p.Escalation.Timeout,
			"max_output":         p.Escalation.MaxOutput,
			"auto_approve":       commands(p.Escalation.AutoApprove),
			"auto_approve_exact": commands(p.Escalation.AutoApproveExact),
		}
	}
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(table{
		"storage":    table{"data_root": f.Storage.DataRoot, "overlay": f.Storage.Overlay},
		"network":    table{"default_allow": []string{}, "default_deny": p.Network.Deny, "on_deny": p.Network.OnDeny},
		"escalation": esc,
		"profiles":   table{name: prof},
	})
	return b.Bytes(), err
}

// overlayTargets lists where overlays are mounted.
func overlayTargets(m map[string]Mount) []string {
	out := []string{}
	for _, target := range slices.Sorted(maps.Keys(m)) {
		if m[target].Kind == KindOverlay {
			out = append(out, target)
		}
	}
	return out
}

// commands writes argument vectors as the config takes them. Single quotes
// keep everything but themselves.
func commands(vectors [][]string) []string {
	out := []string{}
	for _, v := range vectors {
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}
