package lock

import (
	"net/netip"

	"lazaret/lock/config"
)

// Exceptions tells which allowed ranges lie inside denied ones: what was meant
// in most cases, and worth a look in the others.
func (n Network) Exceptions() (out []string) {
	for _, s := range n.Allow {
		e, err := config.ParseEndpoint(s)
		if err != nil {
			continue
		}
		for _, list := range []struct {
			ranges []string
			how    string
		}{{n.Deny, "denied"}, {n.AlwaysDeny, "always denied"}} {
			if d, ok := narrowest(list.ranges, e.Prefix); ok {
				out = append(out, s+" is allowed inside "+d.String()+", which is "+list.how)
			}
		}
	}
	return out
}

// narrowest finds the longest of the ranges that q lies in and is not.
func narrowest(ranges []string, q netip.Prefix) (best netip.Prefix, ok bool) {
	for _, s := range ranges {
		p, err := netip.ParsePrefix(s)
		if err == nil && p.Bits() < q.Bits() && p.Contains(q.Addr()) && (!ok || p.Bits() > best.Bits()) {
			best, ok = p, true
		}
	}
	return best, ok
}
