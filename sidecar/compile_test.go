package sidecar

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// verdict is a Verdict as text.
func (v Verdict) text() string {
	switch {
	case v.Open:
		return "open"
	case v.Ports != nil:
		var w []string
		for _, s := range v.Ports {
			w = append(w, strings.TrimSuffix(strings.ReplaceAll(s.words(), " ", "/"), "/-"))
		}
		return strings.Join(w, " ")
	case v.Denied:
		return "denied"
	}
	return "closed"
}

func TestLookup(t *testing.T) {
	p := Policy{
		Link: labLink,
		Allow: endpoints("0.0.0.0/0 443", "10.20.0.0/16", "10.20.3.4/32 22/tcp", "192.168.0.0/16", "172.16.0.0/24 80", "172.16.0.0/24 81/udp",
			"203.0.113.0/24", "203.0.113.0/25 8080", "2001:db8::/32", "198.51.100.7/32", "198.51.100.8/32 22"),
		Deny:   prefixes([]string{"10.0.0.0/8", "10.20.3.0/24", "172.16.0.0/12", "192.168.0.0/16", "2001:db8:1::/48"}),
		Always: prefixes(always),
		Self:   []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.8"), netip.MustParseAddr("198.51.100.9")},
	}
	table := Compile(p, prefixes([]string{"10.20.9.0/24"}))
	for addr, want := range map[string]string{
		"8.8.8.8":         "443",
		"10.1.1.1":        "denied",
		"10.20.1.1":       "open",
		"10.20.3.1":       "denied",
		"10.20.3.4":       "22/tcp", // the port is of the narrower range only
		"10.20.9.1":       "denied", // the uplink's
		"192.168.1.1":     "denied", // a tie
		"172.16.0.9":      "80 81/udp",
		"172.16.1.9":      "denied",
		"203.0.113.9":     "open", // a port for a part takes nothing away
		"203.0.113.200":   "open",
		"127.0.0.1":       "denied",
		"169.254.169.254": "denied",
		"198.19.255.253":  "denied", // the link
		"198.51.100.7":    "open",   // the host, named
		"198.51.100.8":    "443 22",
		"198.51.100.9":    "denied",
		"255.255.255.255": "443",
		"2001:db8::1":     "open",
		"2001:db8:1::1":   "denied",
		"2a00::1":         "closed",
		"::ffff:8.8.8.8":  "denied",
		"64:ff9b::1":      "denied",
		"fe80::1":         "denied",
	} {
		if got := table.Lookup(netip.MustParseAddr(addr)).text(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	late := netip.MustParsePrefix("10.20.7.7/32")
	table.deny(late)
	for addr, want := range map[string]string{"10.20.7.7": "denied", "10.20.7.8": "open", "10.20.7.6": "open", "203.0.113.9": "open", "2001:db8:1::1": "denied"} {
		if got := table.Lookup(netip.MustParseAddr(addr)).text(); got != want {
			t.Errorf("after a late denial, %s: %s, want %s", addr, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, deny := range [][]netip.Prefix{nil, prefixes([]string{"0.0.0.0/0", "::/0"})} {
		table := Compile(Policy{Deny: deny}, nil)
		want := []Route{{prefix("0.0.0.0/0"), false}, {prefix("::/0"), false}}
		if got := slices.Collect(table.Routes()); !slices.Equal(got, want) {
			t.Errorf("routes %v", got)
		}
		// A denial of everything leaves names their meaning.
		if got := table.Lookup(netip.MustParseAddr("8.8.8.8")); got.Denied {
			t.Errorf("got %v", got)
		}
	}
}

func TestWindows(t *testing.T) {
	p := Policy{
		Allow: endpoints("10.0.0.0/24 80/tcp", "10.0.0.64/26", "10.0.0.128/30 22/tcp", "255.255.255.0/24 9/udp"),
		Deny:  prefixes([]string{"10.0.0.200/29"}),
	}
	var got []string
	for _, w := range Compile(p, nil).Ports {
		got = append(got, fmt.Sprintf("%s-%s %d/%s", w.First, w.Last, w.Port, w.Proto))
	}
	want := []string{
		"10.0.0.0-10.0.0.63 80/tcp",
		"10.0.0.128-10.0.0.131 80/tcp", "10.0.0.128-10.0.0.131 22/tcp",
		"10.0.0.132-10.0.0.199 80/tcp",
		"10.0.0.208-10.0.0.255 80/tcp",
		"255.255.255.0-255.255.255.255 9/udp",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// slow says of an address what the policy says, by going through all of it.
func slow(p Policy, a netip.Addr) Verdict {
	longest := -1
	var v Verdict
	for _, q := range slices.Concat(p.Deny, p.Always) {
		if q.Contains(a) {
			longest = max(longest, q.Bits())
			v.Denied = v.Denied || q.Bits() > 0
		}
	}
	for _, e := range p.Allow {
		if e.Prefix.Contains(a) && e.Prefix.Bits() > longest {
			if e.Port == 0 {
				v.Open = true
			}
			v.Ports = append(v.Ports, e.Service)
		}
	}
	if v.Open {
		v.Ports = nil
	}
	return v
}

// FuzzCompile compares routes, windows and Lookup with what the policy says.
func FuzzCompile(f *testing.F) {
	f.Add([]byte{1, 8, 10, 0, 2, 16, 10, 20, 3, 24, 10, 20}, []byte{10, 20, 3, 4})
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 3, 32, 255, 255}, []byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, rules, probe []byte) {
		var p Policy
		for ; len(rules) >= 4 && len(p.Allow)+len(p.Deny) < 50; rules = rules[4:] {
			q, _ := netip.AddrFrom4([4]byte{rules[2] & 3, rules[3], rules[2], rules[3]}).Prefix(int(rules[1]) % 33)
			switch rules[0] % 5 {
			case 0:
				p.Allow = append(p.Allow, Endpoint{Prefix: q})
			case 1:
				p.Deny = append(p.Deny, q)
			case 2:
				p.Always = append(p.Always, q)
			case 3:
				p.Allow = append(p.Allow, Endpoint{q, Service{uint16(rules[0]) + 1, "tcp"}})
			case 4:
				p.Allow = append(p.Allow, Endpoint{q, Service{uint16(rules[0]) + 1, ""}})
			}
		}
		table := Compile(p, nil)
		for ; len(probe) >= 4; probe = probe[4:] {
			a := netip.AddrFrom4([4]byte(probe))
			want := slow(p, a)
			got := table.Lookup(a)
			if got.Open != want.Open || got.Denied != want.Denied || len(got.Ports) != len(want.Ports) {
				t.Fatalf("%s in %v: %v, want %v", a, p, got, want)
			}
			// The longest route says the same.
			best := Route{}
			for r := range table.Routes() {
				if r.Prefix.Contains(a) && (!best.Prefix.IsValid() || r.Prefix.Bits() > best.Prefix.Bits()) {
					best = r
				}
			}
			if best.Open != want.Open {
				t.Fatalf("%s in %v: route %v", a, p, best)
			}
			// So do the windows, and no two overlap.
			open := map[Service]int{}
			for _, w := range table.Ports {
				if w.First.Compare(a) <= 0 && a.Compare(w.Last) <= 0 {
					open[Service{w.Port, w.Proto}]++
				}
			}
			for _, s := range want.Ports {
				for _, proto := range protocols(s.Proto) {
					if open[Service{s.Port, proto}] != 1 {
						t.Fatalf("%s in %v: windows %v, want %v once", a, p, open, s)
					}
				}
			}
			if len(want.Ports) == 0 && len(open) > 0 {
				t.Fatalf("%s in %v: windows %v", a, p, open)
			}
		}
	})
}

func TestWire(t *testing.T) {
	p := Policy{
		Blackhole: true, Open: true, Allow: endpoints("10.20.0.0/16", "10.0.0.5/32 53/udp", "2001:db8::/32 443"),
		Deny: prefixes([]string{"10.0.0.0/8"}), Always: prefixes(always),
		Hosts: []Host{{"*.example.org", Service{443, ""}}, {"x_y.test", Service{22, "tcp"}}},
		Self:  []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")},
		Link:  labLink, Uplink6: Uplink6{netip.MustParsePrefix("fd00::100/64"), netip.MustParseAddr("fd00::2")},
	}
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadPolicy(bufio.NewReader(&b))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got %v %v, want %v", got, err, p)
	}
}

func TestWireRefuses(t *testing.T) {
	const link = "link 10.0.3.1 10.0.3.2\n"
	for _, body := range []string{
		"",                              // no link
		link + "allow 10.0.0.1/8 0 -\n", // two ways to say a range
		link + "allow 10.0.0.0/8 0 tcp\n",
		link + "allow 10.0.0.0/8 70000 -\n",
		link + "allow 10.0.0.0/8\n",
		link + "permit 10.0.0.0/8\n",
		link + "host a..b; 443 -\n",
		link + "host a.test 0 -\n",
		link + "self fe80::1%eth0\n",
		link + "link 10.0.3.1 10.0.3.1\n",
		link + "link 10.0.3.1 10.0.4.1\n",
		link + "link 10.0.3.1 fd00::1\n",
		link + "uplink 10.0.0.1/8 10.0.0.2\n",
		link + "deny " + strings.Repeat("1", 5000) + "\n",
		link + "\n",
	} {
		if _, err := ReadPolicy(bufio.NewReader(strings.NewReader(policyHead + "\n" + body + policyEnd + "\n"))); err == nil {
			t.Errorf("%.60q: no error", body)
		}
	}
	if _, err := ReadPolicy(bufio.NewReader(strings.NewReader(policyHead + "\n" + link))); err == nil {
		t.Error("a policy that was cut off: no error")
	}
	if _, err := ReadPolicy(bufio.NewReader(strings.NewReader("policy 2\n"))); err == nil {
		t.Error("another version: no error")
	}
}

func TestEventText(t *testing.T) {
	for _, e := range []Event{
		{Kind: EventHello, Uplink: "tap0", MTU: 65520},
		{Kind: EventReady, N: 22},
		{Kind: EventFailed, Text: "no\nroute \x1b[2J\u202e"},
		{Kind: EventDenied, N: 3, Proto: "tcp", Addr: netip.MustParseAddr("10.0.0.1"), Port: 443, Name: "a b\n%\xff"},
		{Kind: EventDenied, N: 3, Proto: "icmpv6", Addr: netip.MustParseAddr("fe80::1")},
		{Kind: EventRefused, N: 1, Name: ""},
		{Kind: EventRebound, N: 1, Name: "x.test", Addr: netip.MustParseAddr("10.0.0.1")},
		{Kind: EventFlushed},
	} {
		line := e.String()
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is not plain", line)
		}
		if got, err := ParseEvent(line); err != nil || got != e {
			t.Errorf("%q: got %v %v", line, got, err)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, s := range []string{"hello tap0 1500", "denied 1 tcp 10.0.0.1 443 %", "refused 1 a%20b", "failed %", "denied 1 tcp 10.0.0.1 443 %4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseEvent(line)
		if err != nil {
			return
		}
		if again, err := ParseEvent(e.String()); err != nil || again != e {
			t.Fatalf("%q: %v, then %v %v", line, e, again, err)
		}
	})
}

func FuzzPolicy(f *testing.F) {
	f.Add("policy 1\nlink 10.0.3.1 10.0.3.2\nallow 10.0.0.0/8 443 -\nend\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPolicy(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		var b bytes.Buffer
		p.WriteTo(&b)
		if again, err := ReadPolicy(bufio.NewReader(&b)); err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%q: %v, then %v %v", text, p, again, err)
		}
	})
}

// FuzzMessages: neither the sandbox nor a name server can make the name
// service fail.
func FuzzMessages(f *testing.F) {
	q, _ := ask(7, question("a.test."))
	f.Add(q)
	f.Fuzz(func(t *testing.T, msg []byte) {
		if q, rcode, ok := parseQuery(msg); ok {
			q.pack(reply{rcode: rcode}, q.size)
		}
		if len(msg) > 2 {
			id := uint16(msg[0])<<8 | uint16(msg[1])
			if a, err := parseAnswer(msg, id, question("a.test.")); err == nil {
				records, _ := a.chain(question("a.test."))
				query{question: question("a.test."), size: 512}.pack(reply{resources: records}, 512)
			}
		}
	})
}
