package sidecar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// manyPolicy denies a hundred thousand ranges.
func manyPolicy() Policy {
	p := Policy{Link: labLink, Allow: []Endpoint{endpoint("192.0.2.0/24"), endpoint("10.0.0.5/32 5432/tcp")}}
	for i := range 100_000 {
		a := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x10000000+uint32(i)*32)))
		p.Deny = append(p.Deny, netip.PrefixFrom(a, 28))
	}
	return p
}

func BenchmarkReadPolicy(b *testing.B) {
	p := manyPolicy()
	var text bytes.Buffer
	if _, err := p.WriteTo(&text); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := ReadPolicy(bufio.NewReader(bytes.NewReader(text.Bytes()))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := manyPolicy()
	b.ReportAllocs()
	for b.Loop() {
		Compile(p, nil)
	}
}

func BenchmarkLookup(b *testing.B) {
	t := Compile(manyPolicy(), nil)
	a := netip.MustParseAddr("16.9.8.7")
	b.ReportAllocs()
	for b.Loop() {
		t.Lookup(a)
	}
}

func BenchmarkParseQuery(b *testing.B) {
	msg, err := ask(7, question("registry.example.org."))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, rcode, ok := parseQuery(msg); !ok || rcode != dnsmessage.RCodeSuccess {
			b.Fatal(rcode, ok)
		}
	}
}

func BenchmarkParseAnswer(b *testing.B) {
	q := question("registry.example.org.")
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, Response: true}, Questions: []dnsmessage.Question{q}}
	for i := range byte(8) {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, i}},
		})
	}
	msg, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		a, err := parseAnswer(msg, 7, q)
		if _, addrs := a.chain(q); err != nil || len(addrs) != 8 {
			b.Fatal(err, addrs)
		}
	}
}

// BenchmarkServices asks a list of a thousand names about one that it has and
// one that it has not.
func BenchmarkServices(b *testing.B) {
	var hosts []Host
	for i := range 1000 {
		hosts = append(hosts, Host{"h" + string(rune('a'+i%26)) + "." + string(rune('a'+i/26%26)) + ".example.org", Service{443, "tcp"}})
	}
	t := newHostTable(hosts)
	b.ReportAllocs()
	for b.Loop() {
		t.services("ha.a.example.org")
		t.services("other.example.com")
	}
}

func BenchmarkParseEvent(b *testing.B) {
	line := Event{Kind: EventDenied, N: 3, Proto: "tcp", Addr: netip.MustParseAddr("192.0.2.1"), Port: 443, Name: "registry.example.org"}.String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEvent(line); err != nil {
			b.Fatal(err)
		}
	}
}
