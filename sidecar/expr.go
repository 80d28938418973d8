package sidecar

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The words that the rules of filter.go are made of.

func one(e ...expr.Any) []expr.Any { return e }

func equal(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

func unequal(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data} }

// Verdicts.
func accept() []expr.Any { return one(&expr.Verdict{Kind: expr.VerdictAccept}) }
func drop() []expr.Any   { return one(&expr.Verdict{Kind: expr.VerdictDrop}) }

// reset and unreachable answer a packet and drop it.
func reset() []expr.Any {
	return one(&expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
}

// gVisor passes no other ICMP error on to a program than that of a port.
func unreachable() []expr.Any {
	return one(&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH})
}

// ifname is a name as the kernel compares it.
func ifname(s string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, s)
	return b
}

func from(name string) []expr.Any {
	return one(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, equal(ifname(name)...))
}

func notFrom(name string) []expr.Any {
	return one(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, unequal(ifname(name)...))
}

func to(name string) []expr.Any {
	return one(&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1}, equal(ifname(name)...))
}

func ip(fam int) []expr.Any {
	n := byte(unix.NFPROTO_IPV4)
	if fam == v6 {
		n = unix.NFPROTO_IPV6
	}
	return one(&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal(n))
}

func l4(proto byte) []expr.Any {
	return one(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal(proto))
}

// address loads a packet's source or destination into register r.
func address(fam int, source bool, r uint32) expr.Any {
	offset, size := uint32(16), uint32(4)
	if source {
		offset = 12
	}
	if fam == v6 {
		offset, size = 24, 16
		if source {
			offset = 8
		}
	}
	return &expr.Payload{DestRegister: r, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}
}

func source(a netip.Addr) []expr.Any {
	return append(ip(family(a)), address(family(a), true, 1), equal(a.AsSlice()...))
}

func notSource(a netip.Addr) []expr.Any {
	return append(ip(family(a)), address(family(a), true, 1), unequal(a.AsSlice()...))
}

func dest(a netip.Addr) []expr.Any {
	return append(ip(family(a)), address(family(a), false, 1), equal(a.AsSlice()...))
}

func dport(n uint16) []expr.Any {
	return one(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equal(binary.BigEndian.AppendUint16(nil, n)...))
}

// icmp compares the type of an ICMP or ICMPv6 packet with a range.
func icmp(proto byte, first, last byte) []expr.Any {
	return append(l4(proto), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: []byte{first}}, &expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: []byte{last}})
}

func state(bits uint32) []expr.Any {
	return one(&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		unequal(0, 0, 0, 0))
}

func setMark(n uint32) []expr.Any {
	return one(&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(n)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
}

func setConnMark(n uint32) []expr.Any {
	return one(&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(n)},
		&expr.Ct{Key: expr.CtKeyMARK, SourceRegister: true, Register: 1})
}

func connMark(n uint32) []expr.Any {
	return one(&expr.Ct{Key: expr.CtKeyMARK, Register: 1}, equal(binaryutil.NativeEndian.PutUint32(n)...))
}

// target loads the key of the sets for a packet: its destination, protocol
// and port. Without a port, it is 0.
func target(fam int, port bool) []expr.Any {
	words := uint32(1)
	if fam == v6 {
		words = 4
	}
	out := append(ip(fam),
		address(fam, false, reg0),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg0 + words})
	if port {
		return append(out, &expr.Payload{DestRegister: reg0 + words + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	}
	return append(out, &expr.Immediate{Register: reg0 + words + 1, Data: []byte{0, 0, 0, 0}})
}

func in(s *nftables.Set) []expr.Any {
	return one(&expr.Lookup{SourceRegister: reg0, SetName: s.Name, SetID: s.ID})
}

func count(s *nftables.Set) []expr.Any {
	return one(&expr.Dynset{
		SrcRegKey: reg0, SetName: s.Name, SetID: s.ID, Operation: unix.NFT_DYNSET_OP_UPDATE,
		Timeout: deniedTime, Exprs: []expr.Any{&expr.Counter{}},
	})
}
