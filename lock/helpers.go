package lock

import "fmt"

// HelperError is a helper program that is not this build's own. Launching with
// it would run code that nobody vouches for.
type HelperError struct {
	Name     string // "sidecar", "escalation client"
	Platform string
	Found    string // what the lock, or a registry, has
	Own      string // what this build carries
}

func (e *HelperError) Error() string {
	return fmt.Sprintf(`MISMATCH of a helper program: the %s for %s is not this lazaret's own
    found:    %s
    expected: %s`, e.Name, e.Platform, orNone(e.Found), orNone(e.Own))
}

// Hint says how both can be had to agree.
func (e *HelperError) Hint() string {
	return `use the lazaret that the lock was made with, or run "lazaret lock" with this one and review the difference`
}

func orNone(digest string) string {
	if digest == "" {
		return "none"
	}
	return digest
}

// CheckHelpers compares the helper programs that f pins for a platform with
// this build's own. The first that differs is a *HelperError.
func CheckHelpers(f *File, platform string, own Helpers) error {
	k := PlatformKey(platform)
	locked, ours := f.Sidecar[k], own.Sidecar[k]
	for _, d := range []struct{ name, found, own string }{
		{"sidecar", locked.Binary, ours.Binary},
		{"sidecar layer", locked.Layer, ours.Layer},
		{"sidecar image", locked.Config, ours.Config},
		{"sidecar manifest", locked.Manifest, ours.Manifest},
		{"escalation client", f.Escalate[k].Binary, own.Escalate[k].Binary},
	} {
		if d.found != d.own || d.own == "" {
			return &HelperError{Name: d.name, Platform: platform, Found: d.found, Own: d.own}
		}
	}
	return nil
}
