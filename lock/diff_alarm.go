package lock

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"lazaret/lock/config"
)

// Where state and sockets lie by the book. A config that says otherwise aims
// what lazaret keeps at another part of the host.
const (
	usualDataRoot  = "~/.local/share/lazaret"
	usualSocketDir = "{runtime_dir}/lazaret"
)

// alarm reports whether an atom grants something of the host, beyond what a
// sandbox has by its nature: these stand out from the rest.
func (d *diff) alarm(a atom) bool {
	p, kept := d.new.Profiles[a.profile()]
	if a.field.less {
		return a.op() == "-" && kept
	}
	if !a.new.IsValid() {
		// A mask or a read-only bind that is gone.
		return kept && a.at("profiles", "*", "mounts", "*", "*") && !d.own(a) && hasFixed(d.new, p, a.path[3])
	}
	switch {
	case a.at("storage", "data_root"):
		return a.new.String() != usualDataRoot
	case a.at("sidecar", "*", "ref"):
		return true
	case a.at("profiles", "*", "env", "*"):
		return fromHost(a.new)
	case a.at("profiles", "*", "git", "mode"):
		return a.new.String() == "writeback"
	case a.at("profiles", "*", "network", "allow") && !a.order:
		return reachesPrivate(a.new.String(), p.Network.Deny)
	case a.at("profiles", "*", "escalation", "socket_dir"):
		return a.new.String() != usualSocketDir
	case a.at("profiles", "*", "escalation", "auto_approve"), a.at("profiles", "*", "escalation", "auto_approve_exact"):
		return !a.order
	case a.at("profiles", "*", "mounts", "*", "*"):
		m := p.Mounts[a.path[3]]
		return !d.own(a) && (hasFixed(d.new, p, a.path[3]) || m.Kind != KindOverlay &&
			!strings.HasPrefix(m.From, "{profile_dir}/") && !within(m.From, "{workspace_dir}"))
	case a.at("profiles", "*", "runtime"), a.at("profiles", "*", "capabilities"):
		return !d.own(a)
	}
	return false
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func hasFixed(f *File, p Profile, target string) bool {
	_, ok := fixedMounts(Inputs{}, p.Git.Mode, p.Escalation.Enabled)[target]
	return ok
}

// own reports whether an atom is the part of a profile that no config can
// change, and both sides have it just as this build makes it.
func (d *diff) own(a atom) bool {
	name := a.profile()
	if name == "" {
		return false
	}
	return ownIn(d.old, name, a, a.old) && ownIn(d.new, name, a, a.new)
}

func ownIn(f *File, name string, a atom, v reflect.Value) bool {
	p, ok := f.Profiles[name]
	if !ok {
		return true // with the profile, its part of everything is gone
	}
	switch {
	case a.order:
		return false
	case a.at("profiles", "*", "mounts", "*", "*"):
		// Where the --config FILE is mounted, the lock says itself: it is told.
		fixed, is := fixedMounts(Inputs{}, p.Git.Mode, p.Escalation.Enabled)[a.path[3]]
		m, has := p.Mounts[a.path[3]]
		return is == has && fixed == m
	case a.at("profiles", "*", "network", "always_deny"):
		return slices.Equal(p.Network.AlwaysDeny, alwaysDeny())
	case a.at("profiles", "*", "capabilities"):
		return slices.Equal(p.Capabilities, capabilities())
	case a.at("profiles", "*", "runtime"):
		return slices.Equal(p.Runtime, runtimeArgs(p.Escalation.Enabled))
	}
	return false
}

// private are the ranges behind which a person's own network and machine lie,
// under whatever other name too: what is always denied is so because it leads
// there, and a narrower range that is allowed lifts that.
var private = prefixes(append([]string{
	"10.0.0.0/8",
	"100.64.0.0/10",
	"172.16.0.0/12",
	"192.168.0.0/16",
	"::1/128",
	"fc00::/7",
}, alwaysDeny()...))

var alwaysDenied = prefixes(alwaysDeny())

func prefixes(texts []string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// reachesPrivate reports whether an allowed range leads into a private one
// that no denied range takes out of it again. The longest prefix wins, and the
// same prefix in both lists is denied.
func reachesPrivate(allow string, deny []string) bool {
	e, err := config.ParseEndpoint(allow)
	if err != nil {
		return true
	}
	for _, p := range private {
		if !p.Overlaps(e.Prefix) {
			continue
		}
		common := p
		if e.Prefix.Bits() > p.Bits() {
			common = e.Prefix
		}
		covers := func(d netip.Prefix) bool {
			return d.Bits() >= e.Prefix.Bits() && d.Bits() <= common.Bits() && d.Overlaps(common)
		}
		covered := slices.ContainsFunc(deny, func(s string) bool {
			d, err := netip.ParsePrefix(s)
			return err == nil && covers(d)
		})
		if !covered && !slices.ContainsFunc(alwaysDenied, covers) {
			return true
		}
	}
	return false
}
