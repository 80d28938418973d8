package sidecar

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Types of ICMP and ICMPv6 messages.
const (
	icmpUnreachable = 3
	icmpExceeded    = 11
	icmpParameter   = 12

	icmp6FirstError = 1
	icmp6LastError  = 4
	icmp6Solicit    = 135 // neighbour solicitation
	icmp6Advertise  = 136 // neighbour advertisement
	icmp6LinkFirst  = 133 // router and neighbour discovery, redirects:
	icmp6LinkLast   = 137 // for a link itself
	icmp6GroupFirst = 130 // multicast listener queries and reports,
	icmp6GroupLast  = 134 // router solicitations and advertisements
	icmp6GroupV2    = 143
)

func (f *filter) base(name string, typ nftables.ChainType, hook *nftables.ChainHook, prio *nftables.ChainPriority, policy nftables.ChainPolicy) *nftables.Chain {
	return f.conn.AddChain(&nftables.Chain{Table: f.table, Name: name, Type: typ, Hooknum: hook, Priority: prio, Policy: &policy})
}

// closed makes the chains that let through only what a rule of theirs accepts,
// or finds them: they may be there.
func (f *filter) closed() (input, forward *nftables.Chain) {
	return f.base("input", nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter, nftables.ChainPolicyDrop),
		f.base("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter, nftables.ChainPolicyDrop)
}

// chains makes the rules. They run in the order in which they are made.
func (f *filter) chains(p Policy, link, uplink string) {
	denied := f.conn.AddChain(&nftables.Chain{Table: f.table, Name: "denied"})
	f.denial(denied, p.Blackhole)
	// After connection tracking, before address translation.
	pre := f.base("before-routing", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle, nftables.ChainPolicyAccept)
	f.beforeRouting(pre, denied, p.Link, link)
	input, forward := f.closed()
	f.input(input, p.Link, link)
	f.forward(forward, p.Link, link, uplink)
	post := f.base("after-routing", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, nftables.ChainPolicyAccept)
	f.rule(post, to(uplink), source(p.Link.Box4), one(&expr.Masq{}))
	if p.Link.IPv6() {
		f.rule(post, to(uplink), source(p.Link.Box6), one(&expr.Masq{}))
	}
}

// denial counts a packet and answers it.
func (f *filter) denial(c *nftables.Chain, silent bool) {
	for fam, s := range f.denied {
		f.rule(c, l4(unix.IPPROTO_TCP), target(fam, true), count(s))
		f.rule(c, l4(unix.IPPROTO_UDP), target(fam, true), count(s))
		f.rule(c, notL4(unix.IPPROTO_TCP), notL4(unix.IPPROTO_UDP), target(fam, false), count(s))
	}
	if !silent {
		f.rule(c, l4(unix.IPPROTO_TCP), reset())
		f.rule(c, unreachable())
	}
	f.rule(c, drop())
}

func notL4(proto byte) []expr.Any {
	return one(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, unequal(proto))
}

// beforeRouting decides which table routes a packet from the sandbox, and asks
// the table what it will say. What is accepted here is only not answered yet:
// the table and the later chains still hold.
func (f *filter) beforeRouting(c, denied *nftables.Chain, l Link, link string) {
	f.rule(c, notFrom(link), accept())
	f.rule(c, setMark(policyMark))
	// Groups are a matter of a network with more than one member.
	f.rule(c, l4(unix.IPPROTO_IGMP), drop())
	f.rule(c, icmp(unix.IPPROTO_ICMPV6, icmp6GroupFirst, icmp6GroupLast), drop())
	f.rule(c, icmp(unix.IPPROTO_ICMPV6, icmp6GroupV2, icmp6GroupV2), drop())
	if l.IPv6() {
		// These come from and go to addresses of the link itself.
		f.rule(c, icmp(unix.IPPROTO_ICMPV6, icmp6Solicit, icmp6Advertise), accept())
		f.rule(c, notSource(l.Box6), drop())
	} else {
		f.rule(c, ip(v6), drop())
	}
	f.rule(c, notSource(l.Box4), drop())
	f.rule(c, state(expr.CtStateBitINVALID), drop())
	f.toRouter(c, l, nil)
	for fam, s := range f.self {
		f.rule(c, ip(fam), one(address(fam, false, 1), &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID},
			&expr.Verdict{Kind: expr.VerdictGoto, Chain: denied.Name}))
	}
	// What a name opened stays open for the connections that began in time.
	f.rule(c, connMark(grantMark), setMark(grantMark))
	for fam := range f.ports {
		f.rule(c, target(fam, true), in(f.ports[fam]), setMark(grantMark))
		f.rule(c, target(fam, true), in(f.names[fam]), setMark(grantMark), setConnMark(grantMark))
	}
	for _, fam := range []int{v4, v6} {
		f.rule(c, ip(fam), one(
			&expr.Fib{Register: 1, FlagDADDR: true, FlagMARK: true, ResultOIF: true},
			equal(0, 0, 0, 0),
			&expr.Verdict{Kind: expr.VerdictGoto, Chain: denied.Name},
		))
	}
}

// toRouter accepts the little that the sandbox may say to the router itself.
func (f *filter) toRouter(c *nftables.Chain, l Link, first []expr.Any) {
	f.rule(c, first, dest(l.Router4), l4(unix.IPPROTO_UDP), dport(53), accept())
	f.rule(c, first, dest(l.Router4), l4(unix.IPPROTO_TCP), dport(53), accept())
	for _, t := range []byte{icmpUnreachable, icmpExceeded, icmpParameter} {
		f.rule(c, first, dest(l.Router4), icmp(unix.IPPROTO_ICMP, t, t), accept())
	}
	// Answers to what the router began: published ports.
	f.rule(c, first, dest(l.Router4), state(expr.CtStateBitESTABLISHED), accept())
	if l.IPv6() {
		f.rule(c, first, dest(l.Router6), icmp(unix.IPPROTO_ICMPV6, icmp6FirstError, icmp6LastError), accept())
	}
}

// input is what reaches the router itself.
func (f *filter) input(c *nftables.Chain, l Link, link string) {
	f.rule(c, from("lo"), accept())
	f.toRouter(c, l, from(link))
	f.rule(c, notFrom(link), state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept())
	f.rule(c, icmp(unix.IPPROTO_ICMPV6, icmp6Solicit, icmp6Advertise), accept())
}

// forward is what passes through. From the sandbox, only the uplink can be
// reached, and only by what was given a table to be routed by.
func (f *filter) forward(c *nftables.Chain, l Link, link, uplink string) {
	// Accepted before they were checked, for the router; and their addresses are
	// never translated.
	f.rule(c, icmp(unix.IPPROTO_ICMPV6, icmp6LinkFirst, icmp6LinkLast), drop())
	f.rule(c, state(expr.CtStateBitINVALID), drop())
	marked := one(&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, unequal(0, 0, 0, 0))
	f.rule(c, from(link), to(uplink), marked, source(l.Box4), accept())
	if l.IPv6() {
		f.rule(c, from(link), to(uplink), marked, source(l.Box6), accept())
	}
	f.rule(c, from(uplink), to(link), state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept())
}
