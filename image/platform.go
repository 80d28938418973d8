package image

import (
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// platform is an operating system and architecture, as "linux/arm64/v8".
type platform struct{ OS, Arch, Variant string }

func parsePlatform(s string) (platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return platform{}, fmt.Errorf("platform %q is not of the form os/arch", s)
	}
	p := platform{OS: parts[0], Arch: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p.canonical(), nil
}

func platformOf(p *v1.Platform) platform {
	if p == nil {
		return platform{}
	}
	return platform{p.OS, p.Architecture, p.Variant}.canonical()
}

// canonical drops the variant that every machine of the architecture has, so
// that linux/arm64 and linux/arm64/v8 are one platform, as they are one machine.
func (p platform) canonical() platform {
	if p.Arch == "arm64" && p.Variant == "v8" || p.Arch == "amd64" && p.Variant == "v1" {
		p.Variant = ""
	}
	return p
}

// real is false for the unknown/unknown under which builders file attestations.
func (p platform) real() bool {
	return p.OS != "" && p.Arch != "" && p.OS != "unknown" && p.Arch != "unknown"
}

func (p platform) String() string {
	s := p.OS + "/" + p.Arch
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// key is the platform as a lockfile key: "linux-amd64".
func (p platform) key() string { return strings.ReplaceAll(p.String(), "/", "-") }
