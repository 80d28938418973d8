package lock

import (
	"fmt"
	"maps"
)

// HelperError is a helper program that is not this build's own, and may not
// be: nobody vouches for it, or the lock contradicts itself about it.
type HelperError struct {
	Name     string // "sidecar", "escalation client"
	Platform string
	Found    string // what the lock, or a registry, has
	Own      string // what this build carries
	Do       string // the way out; "" for the usual one
}

func (e *HelperError) Error() string {
	return fmt.Sprintf(`MISMATCH of a helper program: the %s for %s is not this lazaret's own
    found:    %s
    expected: %s`, e.Name, e.Platform, orNone(e.Found), orNone(e.Own))
}

// Hint says how both can be had to agree.
func (e *HelperError) Hint() string {
	if e.Do != "" {
		return e.Do
	}
	return `use the lazaret whose "lazaret version" shows what was found, or run "lazaret lock" with this one and review the difference`
}

func orNone(digest string) string {
	if digest == "" {
		return "none"
	}
	return digest
}

// Kinds of helper programs.
const (
	HelperSidecar = "sidecar"
	HelperClient  = "escalation client"
)

// Foreign is a helper program that a profile needs, that its lock pins, and
// that this build does not carry: another lazaret made the lock.
type Foreign struct {
	Kind     string // a Helper constant
	Platform string
	Ref      string // where the lock says it can be had, or ""
	Digest   string // what a person agrees to: the sidecar's image id, the client's bytes
	Own      string // what this build has in its place
}

// ForeignHelpers lists the helper programs that a profile needs for a platform
// and that are not this build's own. A lock that has this build's image with
// anything else about it differing was not made by any lazaret, and is a
// *HelperError.
func (f *File) ForeignHelpers(profile, platform string, own Helpers) ([]Foreign, error) {
	needs, err := f.Needs(profile)
	if err != nil {
		return nil, err
	}
	var list []Foreign
	k := PlatformKey(platform)
	locked, ours := f.Sidecar[k], own.Sidecar[k]
	if needs.Sidecar {
		if locked.Config == "" || ours.Config == "" {
			return nil, &HelperError{Name: HelperSidecar, Platform: platform, Found: locked.Config, Own: ours.Config}
		}
		if locked.Config != ours.Config {
			list = append(list, Foreign{HelperSidecar, platform, locked.Ref, locked.Config, ours.Config})
		} else if err := same(platform, locked, ours); err != nil {
			return nil, err
		}
	}
	if f.Profiles[profile].Escalation.Enabled {
		client, mine := f.Escalate[k].Binary, own.Escalate[k].Binary
		if client == "" || mine == "" {
			return nil, &HelperError{Name: HelperClient, Platform: platform, Found: client, Own: mine}
		}
		if client != mine {
			list = append(list, Foreign{HelperClient, platform, locked.Ref, client, mine})
		}
	}
	return list, nil
}

// same compares all that is said of one image.
func same(platform string, locked, ours Sidecar) error {
	for _, d := range []struct{ name, found, own string }{
		{"sidecar", locked.Binary, ours.Binary},
		{"sidecar layer", locked.Layer, ours.Layer},
		{"sidecar manifest", locked.Manifest, ours.Manifest},
	} {
		if d.found != d.own {
			return &HelperError{Name: d.name, Platform: platform, Found: d.found, Own: d.own}
		}
	}
	return nil
}

// helpers pins the helper programs: this build's own, or where the config says
// where they can be had, those that are pinned already. That is a pin like an
// image's, good for every lazaret that can get it, and only --update moves it.
// Without a place to get them from, no other lazaret could launch the lock.
func (b *builder) helpers(f *File) error {
	f.Sidecar = map[string]Sidecar{}
	f.Escalate = map[string]Binary{}
	for _, p := range b.Inputs.Platforms {
		k := PlatformKey(p)
		s, ok1 := b.Helpers.Sidecar[k]
		e, ok2 := b.Helpers.Escalate[k]
		if !ok1 || !ok2 {
			return fmt.Errorf("this lazaret carries no helper programs for %s", p)
		}
		s.Ref = b.Config.Network.Sidecar
		f.Sidecar[k], f.Escalate[k] = s, e
	}
	ref := b.Config.Network.Sidecar
	if ref == "" {
		return nil
	}
	if b.keepHelpers(ref) {
		own := *f
		f.Sidecar, f.Escalate = map[string]Sidecar{}, map[string]Binary{}
		for k := range own.Sidecar {
			f.Sidecar[k], f.Escalate[k] = b.Previous.Sidecar[k], b.Previous.Escalate[k]
		}
		if !maps.Equal(f.Sidecar, own.Sidecar) || !maps.Equal(f.Escalate, own.Escalate) {
			b.warnings = append(b.warnings, Warning{"network.sidecar",
				"the helper programs stay those of the lazaret that made the lock; \"lazaret lock --update\" pins this one's"})
		}
		return nil
	}
	// What a registry has is never pinned for having it: the reference only says
	// where others can have the same bytes.
	b.want(ref, "network.sidecar", func(i Image) error {
		for _, p := range b.Inputs.Platforms {
			k := PlatformKey(p)
			if got, own := i.Platforms[k], f.Sidecar[k]; got.Config != own.Config || got.Manifest != own.Manifest {
				return &HelperError{Name: "sidecar image " + quote(ref), Platform: p, Found: got.Config, Own: own.Config,
					Do: "publish this lazaret's with \"lazaret sidecar push " + ref + "\", under a tag of its own where others are in use"}
			}
		}
		return nil
	})
	return nil
}

// keepHelpers reports whether the lock that is there has all pins for a reference.
func (b *builder) keepHelpers(ref string) bool {
	if b.Previous == nil || b.UpdateAll {
		return false
	}
	for _, p := range b.Inputs.Platforms {
		k := PlatformKey(p)
		if b.Previous.Sidecar[k].Ref != ref || b.Previous.Sidecar[k].Config == "" || b.Previous.Escalate[k].Binary == "" {
			return false
		}
	}
	return true
}
