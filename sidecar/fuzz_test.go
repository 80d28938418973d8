package sidecar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzDenyMore: another denied range opens nothing that was shut, nowhere, and
// leaves nothing of itself open but what a narrower allowed range says.
func FuzzDenyMore(f *testing.F) {
	f.Add([]byte{1, 8, 10, 0, 2, 16, 10, 20, 3, 24, 10, 20}, []byte{10, 20, 3, 4}, byte(12))
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 3, 32, 255, 255}, []byte{255, 255, 255, 255}, byte(0))
	f.Add([]byte{4, 16, 3, 3, 3, 24, 3, 3}, []byte{3, 3, 3, 3, 3, 4, 0, 0}, byte(20))
	f.Fuzz(func(t *testing.T, rules, probe []byte, bits byte) {
		var p Policy
		for ; len(rules) >= 4 && len(p.Allow)+len(p.Deny) < 40; rules = rules[4:] {
			q, _ := netip.AddrFrom4([4]byte{rules[2] & 3, rules[3], rules[2], rules[3]}).Prefix(int(rules[1]) % 33)
			switch rules[0] % 4 {
			case 0:
				p.Allow = append(p.Allow, Endpoint{Prefix: q})
			case 1:
				p.Deny = append(p.Deny, q)
			case 2:
				p.Self = append(p.Self, q.Addr())
			case 3:
				p.Allow = append(p.Allow, Endpoint{q, Service{uint16(rules[0]) + 1, "tcp"}})
			}
		}
		if len(probe) < 4 {
			return
		}
		more, _ := netip.AddrFrom4([4]byte(probe)).Prefix(int(bits) % 33)
		less := p
		less.Deny = append(slices.Clone(p.Deny), more)
		before, after := Compile(p, nil), Compile(less, nil)
		for ; len(probe) >= 4; probe = probe[4:] {
			a := netip.AddrFrom4([4]byte(probe))
			was, is := before.Lookup(a), after.Lookup(a)
			if is.Open && !was.Open || was.Denied && !is.Denied {
				t.Fatalf("denying %s in %v makes of %s %+v what was %+v", more, p, a, is, was)
			}
			for _, s := range is.Ports {
				if !was.Open && !slices.Contains(was.Ports, s) {
					t.Fatalf("denying %s in %v opens port %v of %s", more, p, s, a)
				}
			}
			narrower := slices.ContainsFunc(p.Allow, func(e Endpoint) bool { return e.Prefix.Contains(a) && e.Prefix.Bits() > more.Bits() })
			if more.Contains(a) && !narrower && !slices.Contains(p.Self, a) && (is.Open || is.Ports != nil) {
				t.Fatalf("%s is denied in %v and %s is %+v", more, p, a, is)
			}
		}
	})
}

// FuzzHosts: a name opens what is listed for it or for a wildcard above it, and
// nothing else; other spellings of it are the same name.
func FuzzHosts(f *testing.F) {
	f.Add("a.test *.b.test", "x.b.test")
	f.Add("*.test", "test")
	f.Add("a.test", "A.Test.")
	f.Add("*.b.test b.test", ".b.test")
	f.Add("*.b.test", "evilb.test")
	f.Fuzz(func(t *testing.T, list, asked string) {
		var hosts []Host
		for i, name := range strings.Fields(list) {
			if listable(name) {
				hosts = append(hosts, Host{name, Service{uint16(i) + 1, ""}})
			}
		}
		name := lower(asked)
		var want []Service
		for _, h := range hosts {
			suffix, wild := strings.CutPrefix(h.Name, "*")
			if !wild && h.Name == name || wild && strings.HasSuffix(name, suffix) {
				want = append(want, h.Service)
			}
		}
		got := newHostTable(hosts).services(name)
		for _, list := range [][]Service{got, want} {
			slices.SortFunc(list, func(a, b Service) int { return int(a.Port) - int(b.Port) })
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q of %q opens %v, want %v", name, list, got, want)
		}
	})
}

// FuzzChain: whatever a name server answers, the addresses that are taken are
// those at the end of the chain of aliases that begins at the question.
func FuzzChain(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0, 2, 1, 1, 1, 9, 2, 0, 0}, byte(0))
	f.Add([]byte{1, 0, 7, 1, 1, 8}, byte(0)) // an address of another name
	f.Add([]byte{0, 1, 1, 1, 1, 0}, byte(0)) // round and round
	f.Fuzz(func(t *testing.T, plan []byte, kind byte) {
		names := []string{"a.test.", "b.test.", "c.test.", "D.test.", "d.TEST.", "other.example."}
		q := question("a.test.")
		q.Type = []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeCNAME}[kind%3]
		msg := dnsmessage.Message{Header: dnsmessage.Header{ID: 9, Response: true}, Questions: []dnsmessage.Question{q}}
		owner := map[netip.Addr][]string{}
		next := map[string][]string{}
		for ; len(plan) >= 3 && len(msg.Answers) < 60; plan = plan[3:] {
			from := names[int(plan[1])%len(names)]
			h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(from), Class: dnsmessage.ClassINET, TTL: uint32(plan[2])}
			var body dnsmessage.ResourceBody
			switch plan[0] % 3 {
			case 0:
				to := names[int(plan[2])%len(names)]
				body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)}
				next[lower(from)] = append(next[lower(from)], lower(to))
			case 1:
				a := netip.AddrFrom4([4]byte{192, 0, 2, plan[2]})
				body = &dnsmessage.AResource{A: a.As4()}
				owner[a] = append(owner[a], lower(from))
			case 2:
				a := netip.AddrFrom16([16]byte{0x20, 1, 15: plan[2]})
				body = &dnsmessage.AAAAResource{AAAA: a.As16()}
				owner[a] = append(owner[a], lower(from))
			}
			msg.Answers = append(msg.Answers, dnsmessage.Resource{Header: h, Body: body})
		}
		wire, err := msg.Pack()
		if err != nil {
			t.Skip()
		}
		found, err := parseAnswer(wire, 9, q)
		if err != nil {
			t.Fatal(err)
		}
		records, addrs := found.chain(q)
		reached := map[string]bool{"a.test": true}
		for range names {
			for from := range reached {
				for _, to := range next[from] {
					reached[to] = true
				}
			}
		}
		for _, a := range addrs {
			if !slices.ContainsFunc(owner[a], func(n string) bool { return reached[n] }) || a.Is4() != (q.Type == dnsmessage.TypeA) {
				t.Fatalf("%s is taken, which is of %q", a, owner[a])
			}
		}
		at := "a.test"
		for _, r := range records {
			if lower(r.Header.Name.String()) != at {
				t.Fatalf("a record of %s where %s was due", r.Header.Name, at)
			}
			if c, ok := r.Body.(*dnsmessage.CNAMEResource); ok {
				at = lower(c.CNAME.String())
			}
		}
		if _, err := parseAnswer(wire, 8, q); err == nil {
			t.Fatal("an answer to another question is taken")
		}
	})
}

// FuzzQueries: an answer fits, is one to the question, and carries nothing of
// the client's message but the question.
func FuzzQueries(f *testing.F) {
	for _, name := range []string{"a.test.", "MiXed.Test.", "."} {
		q, _ := ask(7, question(name))
		f.Add(q, uint16(1))
	}
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}, uint16(300))
	f.Fuzz(func(t *testing.T, msg []byte, many uint16) {
		q, rcode, ok := parseQuery(msg)
		if !ok {
			return
		}
		var r reply
		r.rcode = rcode
		if rcode == dnsmessage.RCodeSuccess {
			plain, err := q.plain()
			if err != nil {
				return
			}
			if name := plain.Name.String(); name != lower(name)+"." && name != "." {
				t.Fatalf("the world is asked %q", name)
			}
			for i := range many % 400 {
				r.resources = append(r.resources, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{192, 0, byte(i >> 8), byte(i)}},
				})
			}
		}
		for _, limit := range []int{q.size, messageMost} {
			out, err := q.pack(r, limit)
			if err != nil {
				continue
			}
			var back dnsmessage.Message
			if err := back.Unpack(out); err != nil {
				t.Fatalf("%x is answered with %x: %v", msg, out, err)
			}
			if len(out) > limit && limit >= udpDefault || !back.Response || back.ID != binary.BigEndian.Uint16(msg) || len(back.Questions) > 1 ||
				len(back.Questions) == 1 && back.Questions[0] != q.question || len(back.Answers) > 0 && back.Truncated {
				t.Fatalf("%x is answered, for %d bytes, with %d: %+v", msg, limit, len(out), back.Header)
			}
		}
	})
}

// FuzzStream: the router's and the host's readers of lines stop at their limit.
func FuzzStream(f *testing.F) {
	f.Add([]byte("hello tap0 1500\nready 3\n"))
	f.Add([]byte("policy 1\nlink 10.0.3.1 10.0.3.2\nallow 10.0.0.0/8 443 -\nend\n"))
	f.Add(bytes.Repeat([]byte("x"), 5000))
	f.Add([]byte{0, 3, 'a', 'b', 'c', 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			l, err := readLine(r)
			if err != nil {
				break
			}
			if len(l) > lineLimit || strings.Contains(l, "\n") {
				t.Fatalf("a line of %d bytes", len(l))
			}
		}
		in := bytes.NewReader(data)
		for {
			msg, err := readStream(in)
			if err != nil {
				break
			}
			var out bytes.Buffer
			if err := writeStream(&out, msg); err != nil {
				t.Fatal(err)
			}
			if again, err := readStream(&out); err != nil || !bytes.Equal(again, msg) {
				t.Fatalf("%x, then %x %v", msg, again, err)
			}
		}
	})
}
