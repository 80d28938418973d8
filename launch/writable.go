package launch

import (
	"maps"
	"slices"
	"strings"

	"lazaret/lock"
)

// Writable lists the directories of this machine that the plan's
// sandbox can write to and whose names programs of the host come upon: the
// workspace and the writable volumes. What lies below data_root is the
// profile's own, where nobody works.
func (p *Plan) Writable() []string { return p.writable }

func writable(profile lock.Profile, h Host) []string {
	out := []string{h.Workspace}
	for _, target := range slices.Sorted(maps.Keys(profile.Mounts)) {
		m, src := profile.Mounts[target], h.Sources[target]
		if m.Kind != lock.KindBind || !strings.HasPrefix(m.Mode, "rw") || !src.Exists || !src.Dir || within(src.Path, h.DataRoot) {
			continue
		}
		if !slices.Contains(out, src.Path) {
			out = append(out, src.Path)
		}
	}
	return out
}

// WritableOf finds what Writable lists for a profile that is not launched.
func WritableOf(f *lock.File, profile string, e Env) ([]string, error) {
	h, err := probeMounts(f, profile, e)
	if err != nil {
		return nil, err
	}
	return writable(f.Profiles[profile], h), nil
}
