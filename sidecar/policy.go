// Package sidecar is a sandbox's only way out: a router in a network namespace
// of its own, whose routing table is the policy. It owns what the policy means
// (Compile), how it travels (Policy.WriteTo, ReadPolicy), what the router does
// with it (Run) and what it reports (Event). It never asks the host for
// anything but its policy, and starts no programs.
package sidecar

import "net/netip"

// Policy is what a sandbox may reach, as the host tells it to the router.
type Policy struct {
	Blackhole bool           // swallow what is denied instead of answering it
	Open      bool           // names that Hosts does not list are resolved too
	Allow     []Endpoint     // reachable ranges
	Deny      []netip.Prefix // unreachable ranges: the longer prefix decides, a tie is denied
	Always    []netip.Prefix // likewise, but no config can take them out
	Hosts     []Host         // names whose addresses are reachable while their answer lives
	Self      []netip.Addr   // the host's own addresses, denied unless allowed one by one
	Link      Link
	// Uplink6 is what the uplink is to be given where its IPv6 address and
	// router are not its own business to find out; zero where they are, or
	// where there is no IPv6.
	Uplink6 Uplink6
}

// Endpoint is a range, with a port where only that is meant.
type Endpoint struct {
	Prefix netip.Prefix
	Service
}

// Service is a port of a protocol. Port 0 is everything, Proto "" both TCP
// and UDP.
type Service struct {
	Port  uint16
	Proto string // "", "tcp", "udp"
}

// Host is a name whose addresses may be reached at one port.
type Host struct {
	Name string // lower case, without the final dot; "*.x" stands for what is below x
	Service
}

// Link is the cable between router and sandbox.
type Link struct {
	Router4, Box4 netip.Addr // of one /30
	Router6, Box6 netip.Addr // of one /64; zero without IPv6
}

// Bits of the link's subnets.
const (
	linkBits4 = 30
	linkBits6 = 64
)

// IPv6 tells whether the sandbox has IPv6.
func (l Link) IPv6() bool { return l.Box6.IsValid() }

// Prefixes are the link's subnets.
func (l Link) Prefixes() []netip.Prefix {
	p := []netip.Prefix{netip.PrefixFrom(l.Router4, linkBits4).Masked()}
	if l.IPv6() {
		p = append(p, netip.PrefixFrom(l.Router6, linkBits6).Masked())
	}
	return p
}

// Uplink6 is a static IPv6 configuration of the uplink.
type Uplink6 struct {
	Address netip.Prefix
	Gateway netip.Addr
}
