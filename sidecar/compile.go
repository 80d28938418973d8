package sidecar

import (
	"iter"
	"net/netip"
	"slices"
	"sort"
)

// Table is a compiled Policy: pure data, the same for the same policy.
type Table struct {
	Ports []Window // reachable ports where not all are; windows do not overlap

	entries []entry // sorted by address, wider first; one default for each family
}

// Routes are the lines of the routing table, wider ranges before those inside
// them.
func (t *Table) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		for _, e := range t.entries {
			if !yield(Route{e.prefix, e.verdict.Open}) {
				return
			}
		}
	}
}

// Route is one line of the routing table for packets from the sandbox.
type Route struct {
	Prefix netip.Prefix
	Open   bool // via the uplink, all ports; else prohibited
}

// Window is one port of a range of addresses.
type Window struct {
	First, Last netip.Addr
	Port        uint16
	Proto       string // "tcp" or "udp"
}

// Verdict is what a policy says of one address.
type Verdict struct {
	Open  bool      // every port
	Ports []Service // else these
	// Denied: a range that is denied, not merely not allowed, covers the
	// address, whatever narrower range allows it again. No name opens it.
	Denied bool
}

// entry is what holds in a range. There may be a hundred thousand, most of them
// with the same verdict.
type entry struct {
	prefix  netip.Prefix
	parent  int32 // index of the next wider entry, -1 for a default
	verdict *Verdict
}

// The verdicts of nearly all entries.
var (
	allClosed = &Verdict{}
	allDenied = &Verdict{Denied: true}
)

// last is the highest address of a range.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// rule is what the policy says of exactly one range.
type rule struct {
	prefix   netip.Prefix
	deny     bool
	services []Service // allowed; the zero Service is all
}

// Compile works out what p means. own are further subnets of the router (the
// uplink's), denied like p.Always.
//
// At an address, the longest denied range that covers it decides how narrow an
// allowed range must be to count: only those with a longer prefix do, and all
// of them do. So a tie is denied, and a port given for part of a range takes
// nothing away from the range.
func Compile(p Policy, own []netip.Prefix) Table {
	rules := collect(p, own)
	var t Table
	t.entries = make([]entry, 0, len(rules))
	var stack []int
	var next netip.Addr // first address no window was made for yet
	leave := func() {
		e := t.entries[stack[len(stack)-1]]
		end := last(e.prefix)
		t.windows(e, next, end)
		next = end.Next() // invalid after the family's last; a default follows then
		stack = stack[:len(stack)-1]
	}
	for _, r := range rules {
		for len(stack) > 0 && !covers(t.entries[stack[len(stack)-1]].prefix, r.prefix) {
			leave()
		}
		e := entry{prefix: r.prefix, parent: -1, verdict: allClosed}
		if len(stack) > 0 {
			above := t.entries[stack[len(stack)-1]]
			e.parent, e.verdict = int32(stack[len(stack)-1]), above.verdict
			if next.IsValid() && next.Less(r.prefix.Addr()) {
				t.windows(above, next, r.prefix.Addr().Prev())
			}
		}
		next = r.prefix.Addr()
		e.verdict = r.apply(e.verdict)
		stack = append(stack, len(t.entries))
		t.entries = append(t.entries, e)
	}
	for len(stack) > 0 {
		leave()
	}
	return t
}

func (r rule) apply(above *Verdict) *Verdict {
	switch {
	case r.deny && !above.Denied && r.prefix.Bits() == 0:
		// A denial of everything is what holds anyway: it does not keep a
		// name from opening an address.
		return allClosed
	case r.deny:
		return allDenied
	}
	v := *above
	ports := slices.Clone(v.Ports)
	for _, s := range r.services {
		if s.Port == 0 {
			v.Open = true
		}
		ports = append(ports, s)
	}
	v.Ports = nil
	if !v.Open && len(ports) > 0 {
		v.Ports = ports
	}
	return &v
}

// windows adds the ports of e for the addresses from first to last.
func (t *Table) windows(e entry, first, last netip.Addr) {
	if !first.IsValid() || last.Less(first) {
		return
	}
	var seen []Service
	for _, s := range e.verdict.Ports {
		for _, proto := range protocols(s.Proto) {
			one := Service{s.Port, proto}
			if !slices.Contains(seen, one) {
				seen = append(seen, one)
				t.Ports = append(t.Ports, Window{first, last, s.Port, proto})
			}
		}
	}
}

func protocols(proto string) []string {
	if proto == "" {
		return []string{"tcp", "udp"}
	}
	return []string{proto}
}

// collect gathers what is said of each range, sorted: IPv4 first, then by
// address, wider ranges before those inside them.
func collect(p Policy, own []netip.Prefix) []rule {
	rules := make([]rule, 0, len(p.Allow)+len(p.Deny)+len(p.Always)+len(p.Self)+len(own)+4)
	deny := func(q netip.Prefix) { rules = append(rules, rule{prefix: q, deny: true}) }
	// What is not said is denied; this also gives each family its default.
	rules = append(rules,
		rule{prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0)},
		rule{prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0)})
	named := map[netip.Prefix]bool{}
	for _, e := range p.Allow {
		rules = append(rules, rule{prefix: e.Prefix, services: []Service{e.Service}})
		if e.Prefix.IsSingleIP() {
			named[e.Prefix] = true
		}
	}
	for _, list := range [][]netip.Prefix{p.Deny, p.Always, own, p.Link.prefixesOrNone()} {
		for _, q := range list {
			deny(q)
		}
	}
	for _, a := range p.Self {
		// Nothing is narrower than an address: the host is reachable by
		// naming exactly that.
		if q := netip.PrefixFrom(a, a.BitLen()); !named[q] {
			deny(q)
		}
	}
	slices.SortStableFunc(rules, func(a, b rule) int {
		if c := a.prefix.Addr().Compare(b.prefix.Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	// One rule a range. A tie is denied.
	out := rules[:0]
	for _, r := range rules {
		if n := len(out); n > 0 && out[n-1].prefix == r.prefix {
			out[n-1].deny = out[n-1].deny || r.deny
			out[n-1].services = append(out[n-1].services, r.services...)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (l Link) prefixesOrNone() []netip.Prefix {
	if !l.Router4.IsValid() {
		return nil
	}
	return l.Prefixes()
}

// covers tells whether inner lies in outer.
func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// Lookup gives the verdict on an address. An IPv4 address inside an IPv6 one
// is looked up as IPv6, since that is how it would be sent.
func (t *Table) Lookup(a netip.Addr) Verdict {
	i := t.find(a.WithZone(""))
	if i < 0 {
		return Verdict{}
	}
	return *t.entries[i].verdict
}

// find gives the index of the narrowest entry that holds a, or -1.
func (t *Table) find(a netip.Addr) int {
	// The last entry at or below a is inside that one, or is it.
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].prefix.Addr().Compare(a) > 0 }) - 1
	for i >= 0 && !t.entries[i].prefix.Contains(a) {
		i = int(t.entries[i].parent)
	}
	return i
}

// has tells whether the policy says anything of exactly this range.
func (t *Table) has(q netip.Prefix) bool {
	i := t.find(q.Addr())
	return i >= 0 && t.entries[i].prefix == q
}

// deny adds a single address that is denied.
func (t *Table) deny(q netip.Prefix) {
	parent := t.find(q.Addr())
	at := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].prefix.Addr().Compare(q.Addr()) > 0 })
	t.entries = slices.Insert(t.entries, at, entry{q, int32(parent), allDenied})
	for i := range t.entries[at+1:] {
		if e := &t.entries[at+1+i]; int(e.parent) >= at {
			e.parent++
		}
	}
}
