package lock

import (
	"net/netip"
	"slices"

	"lazaret/lock/config"
)

// alwaysDeny lists what no sandbox reaches unless a range inside it is allowed
// by name: what leads to the machine itself, to its cloud's credentials, or to
// either of them in the guise of another address family. Sorted.
func alwaysDeny() []string {
	return []string{
		"0.0.0.0/8",          // "this network": Linux takes 0.0.0.0 for the machine itself
		"100.100.100.200/32", // a cloud's metadata service outside the link-local range
		"127.0.0.0/8",        // loopback
		"168.63.129.16/32",   // a cloud's host agent outside the link-local range
		"169.254.0.0/16",     // link-local: most clouds' metadata, and podman's own services
		"192.0.0.0/24",       // protocol assignments: DS-Lite's router, another cloud's metadata
		"192.88.99.0/24",     // 6to4 relays
		"224.0.0.0/4",        // multicast
		"255.255.255.255/32", // broadcast
		"::/96",              // unspecified, loopback, IPv4-compatible
		"::ffff:0.0.0.0/96",  // IPv4-mapped
		"64:ff9b::/96",       // NAT64
		"64:ff9b:1::/48",     // NAT64, local use
		"2001::/32",          // Teredo
		"2002::/16",          // 6to4
		"fd00:ec2::254/128",  // cloud metadata in the private range
		"fd20:ce::254/128",   // the same, another cloud
		"fe80::/10",          // link-local
		"fec0::/10",          // site-local: deprecated, still routed by some
		"ff00::/8",           // multicast
	}
}

// network derives a profile's reach. It warns of a range that is both allowed
// and denied, since only one of the two can have been meant.
func network(key string, n config.Network, p config.Profile) (Network, []Warning) {
	allow := sorted(slices.Concat(n.DefaultAllow, p.AllowEgress), config.Endpoint.Compare)
	deny := sorted(slices.Clone(n.DefaultDeny), netip.Prefix.Compare)
	hosts := sorted(slices.Concat(n.AllowHosts, p.AllowHosts), config.Host.Compare)
	out := Network{
		OnDeny:     n.OnDeny,
		DNS:        "listed",
		Allow:      texts(allow),
		Deny:       texts(deny),
		Hosts:      texts(hosts),
		AlwaysDeny: alwaysDeny(),
	}
	var warnings []Warning
	for _, e := range allow {
		_, denied := slices.BinarySearchFunc(deny, e.Prefix, netip.Prefix.Compare)
		if e.Prefix.Bits() == 0 && !denied {
			out.DNS = "open"
		}
		if slices.Contains(out.AlwaysDeny, e.Prefix.String()) {
			warnings = append(warnings, Warning{key + ".network", e.Prefix.String() + " is always denied: allow what is needed inside it"})
		}
		if denied {
			warnings = append(warnings, Warning{key + ".network", e.Prefix.String() + " is both allowed and denied: it is denied"})
		}
	}
	return out, warnings
}

// sorted sorts s in place and drops duplicates.
func sorted[T comparable](s []T, compare func(a, b T) int) []T {
	slices.SortFunc(s, compare)
	return slices.Compact(s)
}

// texts gives the canonical text of each element; never nil, so that an empty
// list is written as one.
func texts[T interface{ String() string }](s []T) []string {
	out := make([]string, 0, len(s))
	for _, v := range s {
		out = append(out, v.String())
	}
	return out
}

// validate checks that the lists are canonical: each entry written as lazaret
// writes it, sorted, none twice. What the lists may hold is for checkDerived.
func (n Network) validate(key string) error {
	key += ".network"
	if err := oneOf(key+".on_deny", n.OnDeny, "reject", "blackhole"); err != nil {
		return err
	}
	if err := oneOf(key+".dns", n.DNS, "listed", "open"); err != nil {
		return err
	}
	if err := canonicalList(key+".allow", n.Allow, config.ParseEndpoint, config.Endpoint.Compare); err != nil {
		return err
	}
	if err := canonicalList(key+".deny", n.Deny, config.ParseCIDR, netip.Prefix.Compare); err != nil {
		return err
	}
	return canonicalList(key+".hosts", n.Hosts, config.ParseHost, config.Host.Compare)
}

func canonicalList[T interface{ String() string }](key string, list []string, parse func(string) (T, error), compare func(a, b T) int) error {
	values := make([]T, 0, len(list))
	for _, s := range list {
		v, err := parse(s)
		if err != nil {
			return wrong(key, "%v", err)
		}
		if v.String() != s {
			return wrong(key, "holds an entry that is not written as lazaret writes it")
		}
		values = append(values, v)
	}
	if !strictlySorted(values, compare) {
		return wrong(key, "is not sorted, or says something twice")
	}
	return nil
}
