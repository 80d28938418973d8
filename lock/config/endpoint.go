package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ParseEndpoint reads an entry of default_allow or allow_egress: a CIDR, with
// a port and protocol where wanted.
//
//	10.20.0.0/16
//	10.0.0.5/32:5432
//	10.0.0.5/32:53/udp
//	2001:db8::/32
//	[2001:db8::/32]:443/tcp
//
// Only one way to write each is taken, because programs disagree about the
// others: leading zeros are octal to some, bits behind the prefix are dropped
// by some, and an IPv4 address inside an IPv6 one is two different routes.
func ParseEndpoint(s string) (Endpoint, error) {
	cidr, rest, bracketed := s, "", strings.HasPrefix(s, "[")
	if bracketed {
		var ok bool
		if cidr, rest, ok = strings.Cut(s[1:], "]"); !ok {
			return Endpoint{}, errorf("write [addr/len]:port", "%s has no ]", quote(s))
		}
		if rest == "" {
			return Endpoint{}, errorf("write "+quote(cidr), "%s: brackets are for a port that follows", quote(s))
		}
		if !strings.Contains(cidr, ":") {
			return Endpoint{}, errorf("write "+quote(cidr+rest), "%s: brackets are for IPv6", quote(s))
		}
		if !strings.HasPrefix(rest, ":") {
			return Endpoint{}, errorf("write "+quote("["+cidr+"]:443"), "%s: brackets are followed by :port", quote(s))
		}
		rest = rest[1:]
	} else if slash := strings.IndexByte(s, '/'); slash >= 0 {
		// The address ends at the slash, whatever it is, so a port starts at
		// the first colon after it.
		if i := strings.IndexByte(s[slash:], ':'); i >= 0 {
			cidr, rest = s[:slash+i], s[slash+i+1:]
			if strings.Contains(cidr[:slash], ":") {
				return Endpoint{}, errorf("write "+quote("["+cidr+"]:"+rest), "%s: an IPv6 range with a port needs brackets", quote(s))
			}
			if rest == "" {
				return Endpoint{}, errorf("write "+quote(cidr), "%s ends in a colon without a port", quote(s))
			}
		}
	}
	if trimmed, proto, ok := cutProto(cidr); ok {
		return Endpoint{}, errorf("write "+quote(trimmed+":53/"+proto), "%s: a protocol needs a port", quote(s))
	}
	prefix, err := ParseCIDR(cidr)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Prefix: prefix}
	if rest != "" || bracketed {
		if e.Port, e.Proto, err = parsePort(rest); err != nil {
			return Endpoint{}, err
		}
	}
	return e, nil
}

// String gives the text that ParseEndpoint reads back to the same Endpoint.
func (e Endpoint) String() string {
	switch {
	case e.Port == 0:
		return e.Prefix.String()
	case e.Prefix.Addr().Is6():
		return "[" + e.Prefix.String() + "]" + portSuffix(e.Port, e.Proto)
	}
	return e.Prefix.String() + portSuffix(e.Port, e.Proto)
}

// Compare orders IPv4 before IPv6, then by address, length, port and protocol.
func (e Endpoint) Compare(o Endpoint) int {
	return cmp.Or(comparePrefix(e.Prefix, o.Prefix), cmp.Compare(e.Port, o.Port), cmp.Compare(e.Proto, o.Proto))
}

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// ParseCIDR reads an address range strictly; see ParseEndpoint.
func ParseCIDR(s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, errorf("", "is empty")
	}
	addr, length, ok := strings.Cut(s, "/")
	if !ok {
		if a, err := netip.ParseAddr(s); err == nil {
			return netip.Prefix{}, errorf("write "+quote(only(a)), "%s is an address without a length", quote(s))
		}
		if ap, err := netip.ParseAddrPort(s); err == nil {
			e := Endpoint{Prefix: netip.PrefixFrom(ap.Addr().Unmap().WithZone(""), ap.Addr().Unmap().BitLen()), Port: ap.Port()}
			return netip.Prefix{}, errorf("write "+quote(e.String()), "%s is an address without a length", quote(s))
		}
		if h, err := ParseHost(s); err == nil {
			return netip.Prefix{}, errorf("put "+quote(h.String())+" into allow_hosts", "%s is a name, not an address range", quote(s))
		}
		return netip.Prefix{}, errorf("write an address range such as 10.20.0.0/16", "%s is not an address range", quote(s))
	}
	if i := strings.IndexByte(addr, '%'); i >= 0 {
		hint := "write it without the zone"
		if p, err := netip.ParsePrefix(addr[:i] + "/" + length); err == nil {
			hint = "write " + quote(p.Masked().String())
		}
		return netip.Prefix{}, errorf(hint, "%s: a zone means nothing on another machine", quote(s))
	}
	if fixed := stripZeros(addr); fixed != addr {
		return netip.Prefix{}, errorf("write "+quote(fixed+"/"+length), "%s: leading zeros are octal to some programs", quote(s))
	}
	a, err := netip.ParseAddr(addr)
	if err != nil {
		if long := addr + strings.Repeat(".0", max(0, 3-strings.Count(addr, "."))); long != addr && validIPv4(long) {
			return netip.Prefix{}, errorf("write "+quote(long+"/"+length), "%s: an address has four parts", quote(s))
		}
		return netip.Prefix{}, errorf("write an address range such as 10.20.0.0/16", "%s is not an address range", quote(s))
	}
	bits, err := strconv.Atoi(length)
	if err != nil || strconv.Itoa(bits) != length || bits < 0 || bits > a.BitLen() {
		hint := fmt.Sprintf("write a number from 0 to %d after the slash", a.BitLen())
		if ones, ok := maskLength(length); ok && a.Is4() {
			hint = "write " + quote(fmt.Sprintf("%s/%d", a, ones))
		}
		return netip.Prefix{}, errorf(hint, "%s: %s is not a length for this address", quote(s), quote(length))
	}
	p := netip.PrefixFrom(a, bits)
	if a.Is4In6() {
		v4 := netip.PrefixFrom(a.Unmap(), max(0, bits-96)).Masked()
		return netip.Prefix{}, errorf("write "+quote(v4.String()), "%s is an IPv4 address written as IPv6", quote(s))
	}
	if p != p.Masked() {
		return netip.Prefix{}, errorf("write "+quote(p.Masked().String())+", or "+quote(only(a))+" for the one address",
			"%s: the address goes on after its first %d bits", quote(s), bits)
	}
	return p, nil
}

// parseDeny reads an entry of default_deny, which takes no port: what is
// denied is denied whole.
func parseDeny(s string) (netip.Prefix, error) {
	if e, err := ParseEndpoint(s); err == nil && e.Port != 0 {
		return netip.Prefix{}, errorf("write "+quote(e.Prefix.String()), "%s: what is denied has no port", quote(s))
	}
	return ParseCIDR(s)
}

// only gives the range that holds one address.
func only(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen()).String()
}

var leadingZeros = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,3}$`)

// stripZeros removes leading zeros from the parts of a dotted address.
func stripZeros(addr string) string {
	if !leadingZeros.MatchString(addr) {
		return addr
	}
	parts := strings.Split(addr, ".")
	for i, p := range parts {
		if parts[i] = strings.TrimLeft(p, "0"); parts[i] == "" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, ".")
}

func validIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

// maskLength gives the prefix length of a netmask such as 255.255.0.0.
func maskLength(s string) (ones int, ok bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return 0, false
	}
	for n := range 33 {
		all := netip.AddrFrom4([4]byte{255, 255, 255, 255})
		if netip.PrefixFrom(all, n).Masked().Addr() == a {
			return n, true
		}
	}
	return 0, false
}

// parsePort reads "443", "443/tcp" or "53/udp".
func parsePort(s string) (port uint16, proto string, err error) {
	num, proto, slash := strings.Cut(s, "/")
	if slash && proto != "tcp" && proto != "udp" {
		hint := "write tcp or udp, or leave it out for both"
		return 0, "", errorf(hint, "%s is not a protocol", quote(proto))
	}
	port, err = portNumber(num)
	return port, proto, err
}

// portNumber reads a decimal port without sign or leading zeros.
func portNumber(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, errorf("write a number from 1 to 65535", "%s is not a port", quote(s))
	}
	return uint16(n), nil
}

// portSuffix is what parsePort reads, after a colon.
func portSuffix(port uint16, proto string) string {
	s := ":" + strconv.Itoa(int(port))
	if proto != "" {
		s += "/" + proto
	}
	return s
}

// cutProto finds a protocol that was written without a port: 10.0.0.0/8/udp.
func cutProto(s string) (rest, proto string, ok bool) {
	for _, proto := range []string{"tcp", "udp"} {
		if rest, ok := strings.CutSuffix(s, "/"+proto); ok {
			return rest, proto, true
		}
	}
	return "", "", false
}

// canonical sorts and removes duplicates, for lists whose order means nothing.
func canonical[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
