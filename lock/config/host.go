package config

import (
	"cmp"
	"net/netip"
	"strings"
	"unicode"
)

// HTTPS is the port of an allow_hosts entry that names none. A name opens an
// address that may be shared with anybody (a CDN's), so it opens one port.
const HTTPS = 443

// ParseHost reads an entry of allow_hosts: a DNS name, or *.suffix for the
// names below it, with a port and protocol where wanted.
//
//	pypi.org            the same as pypi.org:443
//	*.example.org:8443
//	ntp.example.org:123/udp
//
// Names are ASCII: an international name is written as DNS has it (xn--…), so
// that two letters that look alike cannot stand for each other.
func ParseHost(s string) (Host, error) {
	if s == "" {
		return Host{}, errorf("", "is empty")
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		name, _, _ := strings.Cut(rest, "/")
		hint := "write the name alone"
		if h, err := ParseHost(name); err == nil && (scheme == "https" || scheme == "http") {
			if scheme == "http" && !strings.Contains(name, ":") {
				h.Port = 80
			}
			hint = "write " + quote(h.String())
		}
		return Host{}, errorf(hint, "%s is a URL, not a name", quote(s))
	}
	if err := refuseAddress(s); err != nil {
		return Host{}, err
	}
	name, rest, hasPort := strings.Cut(s, ":")
	h := Host{Port: HTTPS}
	if hasPort {
		var err error
		if h.Port, h.Proto, err = parsePort(rest); err != nil {
			return Host{}, err
		}
	}
	name = strings.TrimSuffix(asciiLower(name), ".")
	if err := checkName(name); err != nil {
		return Host{}, err
	}
	h.Name = name
	return h, nil
}

// String gives the text that ParseHost reads back to the same Host.
func (h Host) String() string { return h.Name + portSuffix(h.Port, h.Proto) }

// Compare orders by name, port and protocol.
func (h Host) Compare(o Host) int {
	return cmp.Or(cmp.Compare(h.Name, o.Name), cmp.Compare(h.Port, o.Port), cmp.Compare(h.Proto, o.Proto))
}

// refuseAddress finds IP addresses, with a port or without.
func refuseAddress(s string) error {
	hint := func(a netip.Addr, port uint16) error {
		a = a.Unmap().WithZone("")
		e := Endpoint{Prefix: netip.PrefixFrom(a, a.BitLen()), Port: port}
		return errorf("put "+quote(e.String())+" into allow_egress", "%s is an address, not a name", quote(s))
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return errorf("put "+quote(p.Masked().String())+" into allow_egress", "%s is an address range, not a name", quote(s))
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return hint(ap.Addr(), ap.Port())
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return hint(a, HTTPS)
	}
	return nil
}

func checkName(name string) error {
	const example = "write a name such as pypi.org or *.example.org"
	rest := strings.TrimPrefix(name, "*.")
	for _, r := range name {
		if r > unicode.MaxASCII {
			return errorf("write it as DNS has it, with xn--", "%s is not ASCII", quote(name))
		}
	}
	switch {
	case name == "*":
		return errorf(`put "0.0.0.0/0" and "::/0" into allow_egress`, "* would be every name")
	case strings.Contains(rest, "*"):
		return errorf("write *.example.org", "%s: * stands only for the whole first part", quote(name))
	case strings.ContainsAny(name, "/?#@"):
		return errorf(example, "%s is not a name", quote(name))
	case rest == "localhost" || strings.HasSuffix(rest, ".localhost"):
		return errorf("", "%s is the sandbox itself", quote(name))
	case len(name) > 253:
		return errorf("", "a name has at most 253 characters")
	}
	labels := strings.Split(rest, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return errorf(example, "%s has an empty part", quote(name))
		case len(label) > 63:
			return errorf("", "%s: a part has at most 63 characters", quote(name))
		case label[0] == '-' || label[len(label)-1] == '-':
			return errorf(example, "%s: a part starts or ends with -", quote(name))
		case strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return errorf(example, "%s is not a name", quote(name))
		}
	}
	// Resolvers take 127.1, 2130706433 and 0x7f.1 for addresses.
	last := labels[len(labels)-1]
	if hex := strings.TrimPrefix(last, "0x"); strings.Trim(last, "0123456789") == "" ||
		hex != last && strings.Trim(hex, "0123456789abcdef") == "" {
		return errorf("write four decimal parts and /32 in allow_egress", "%s is an address to resolvers, not a name", quote(name))
	}
	return nil
}

// asciiLower lowers A to Z only: Unicode's rules would turn the Kelvin sign
// into a k.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
