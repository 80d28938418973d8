package sidecar

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var always = []string{
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::/96", "::ffff:0.0.0.0/96", "64:ff9b::/96", "2002::/16", "fe80::/10", "ff00::/8",
}

func prefixes(list []string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, prefix(s))
	}
	return out
}

func endpoints(list ...string) (out []Endpoint) {
	for _, s := range list {
		out = append(out, endpoint(s))
	}
	return out
}

// TestReach: the policy decides by every protocol and family, at once, and
// what it decides is reported.
func TestReach(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, true)
	l.policy.Always = prefixes(always)
	l.policy.Allow = endpoints("0.0.0.0/0", "10.20.0.0/16", "10.20.3.4/32", "172.16.5.0/24 5432/tcp", "172.16.5.9/32", "192.168.0.0/16",
		"2001:db8::/32", "2001:db8:5:6::/64", "169.254.7.7/32", "10.0.2.0/28", "10.0.2.9/32", "203.0.113.9/32", "fd12::/64 443", "fd13::/64 5000/udp")
	l.policy.Deny = prefixes([]string{"10.0.0.0/8", "10.20.3.0/24", "172.16.0.0/12", "192.168.0.0/16", "2001:db8:5::/48", "198.51.100.0/24"})
	l.policy.Self = []netip.Addr{netip.MustParseAddr("203.0.113.8"), netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8::8")}
	ready := l.start()
	if ready.N < 30 {
		t.Errorf("%d routes", ready.N)
	}
	for _, tt := range []struct{ network, addr, want string }{
		{"tcp", "192.0.2.1:80", works},
		{"tcp", "192.0.2.1:443", works},
		{"udp", "192.0.2.1:5000", works},
		{"ping", "192.0.2.1", works},

		{"tcp", "10.1.2.3:80", refused},     // 10/8 denied
		{"udp", "10.1.2.3:5000", refused},   //
		{"ping", "10.1.2.3", refused},       //
		{"tcp", "10.20.1.1:80", works},      // allowed inside
		{"udp", "10.20.1.1:5000", works},    //
		{"tcp", "10.20.3.1:80", refused},    // denied inside that
		{"tcp", "10.20.3.4:80", works},      // one address of it allowed
		{"tcp", "192.168.1.1:80", refused},  // a tie
		{"tcp", "198.51.100.1:80", refused}, // denied inside 0/0
		{"tcp", "203.0.113.1:80", works},

		{"tcp", "172.16.5.1:5432", works}, // one port
		{"tcp", "172.16.5.1:80", refused}, //
		{"udp", "172.16.5.1:5000", refused},
		{"ping", "172.16.5.1", refused},
		{"tcp", "172.16.5.9:80", works}, // all ports of one address in it
		{"tcp", "172.16.4.1:5432", refused},

		{"tcp", "169.254.169.254:80", refused}, // under 0.0.0.0/0
		{"udp", "169.254.169.254:5000", refused},
		{"tcp", "169.254.7.7:80", works}, // named
		{"tcp", "10.0.2.2:80", refused},  // the uplink's gateway
		{"tcp", "10.0.2.3:53", refused},  // its name server
		{"udp", "10.0.2.3:53", refused},
		{"tcp", "10.0.2.15:80", refused},      // the router's own address
		{"tcp", "10.0.2.9:80", works},         // named
		{"tcp", "198.19.255.253:80", refused}, // its end of the link
		{"ping", "198.19.255.253", refused},
		{"tcp", "203.0.113.8:80", refused}, // the host
		{"tcp", "203.0.113.9:80", works},   // the host, named
		{"tcp", "127.0.0.53:53", refused},  // nothing listens in the sandbox itself

		{"tcp", "[2001:db8::1]:80", works},
		{"udp", "[2001:db8::1]:5000", works},
		{"ping", "2001:db8::1", works},
		{"tcp", "[2001:db8:5::1]:80", refused},
		{"udp", "[2001:db8:5::1]:5000", refused},
		{"ping", "2001:db8:5::1", refused},
		{"tcp", "[2001:db8:5:6::1]:80", works},
		{"tcp", "[2001:db8::8]:80", refused},
		{"tcp", "[2a00::1]:80", refused}, // not allowed
		{"tcp", "[fd12::1]:443", works},
		{"tcp", "[fd12::1]:80", refused},
		{"udp", "[fd13::1]:5000", works},
		{"udp", "[fd13::1]:5001", refused},
		{"tcp", "[fd00::2]:80", refused},
		{"tcp", "[fd6c:617a::1]:80", refused},
		{"tcp", "[2002:a9fe:a9fe::1]:80", refused},  // 6to4 of the metadata service
		{"tcp", "[64:ff9b::a9fe:a9fe]:80", refused}, // NAT64 of it
		{"tcp", "[::a9fe:a9fe]:80", refused},
	} {
		most := patience
		if tt.want == silence {
			most = silenceTime
		}
		if got := l.tryFor(tt.network, tt.addr, most); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.network, tt.addr, got, tt.want)
		}
	}
	t.Run("at once every time", func(t *testing.T) {
		for i := range 30 {
			if got := l.try("tcp", "10.1.2.3:81"); got != refused {
				t.Fatalf("connection %d: %s", i, got)
			}
		}
	})
	events := l.flush()
	for _, want := range []Event{
		{Kind: EventDenied, N: 30, Proto: "tcp", Addr: netip.MustParseAddr("10.1.2.3"), Port: 81},
		{Kind: EventDenied, N: 1, Proto: "udp", Addr: netip.MustParseAddr("10.1.2.3"), Port: 5000},
		{Kind: EventDenied, N: 1, Proto: "icmp", Addr: netip.MustParseAddr("10.1.2.3")},
		{Kind: EventDenied, N: 1, Proto: "tcp", Addr: netip.MustParseAddr("2001:db8:5::1"), Port: 80},
	} {
		n := uint64(0)
		for _, e := range events {
			if e.Addr == want.Addr && e.Port == want.Port && e.Proto == want.Proto && e.Kind == want.Kind {
				n += e.N
			}
		}
		if n < want.N {
			t.Errorf("reported %d of %v, in %v", n, want, events)
		}
	}
	if slices.ContainsFunc(events, func(e Event) bool { return e.Addr == netip.MustParseAddr("192.0.2.1") }) {
		t.Errorf("reported what works: %v", events)
	}

	t.Run("a new address of the host", func(t *testing.T) {
		if got := l.try("tcp", "203.0.113.77:80"); got != works {
			t.Fatalf("before: %s", got)
		}
		if got := l.try("tcp", "172.16.5.44:5432"); got != works {
			t.Fatalf("before, by port: %s", got)
		}
		for _, a := range []string{"203.0.113.77", "172.16.5.44"} {
			l.conn.Write([]byte(SelfCommand(netip.MustParseAddr(a)) + "\n"))
		}
		l.flush()
		if got := l.try("tcp", "172.16.5.44:5432"); got != refused {
			t.Errorf("after, by port: %s", got)
		}
		if got := l.try("tcp", "203.0.113.77:80"); got != refused {
			t.Errorf("after: %s", got)
		}
		if got := l.try("tcp", "203.0.113.78:80"); got != works {
			t.Errorf("its neighbour: %s", got)
		}
	})
	t.Run("frames by hand", func(t *testing.T) { l.rawFrames(t) })
	t.Run("advertised routes", func(t *testing.T) { l.advertise(t) })
}

func TestBlackhole(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.policy.Blackhole = true
	l.policy.Allow = endpoints("192.0.2.0/24")
	l.start()
	for _, tt := range []struct{ network, addr, want string }{
		{"tcp", "192.0.2.1:80", works},
		{"tcp", "10.1.2.3:80", silence},
		{"udp", "10.1.2.3:5000", silence},
		{"ping", "10.1.2.3", silence},
		{"tcp", "[2001:db8::1]:80", silence}, // no IPv6 at all
	} {
		most := patience
		if tt.want == silence {
			most = silenceTime
		}
		if got := l.tryFor(tt.network, tt.addr, most); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.network, tt.addr, got, tt.want)
		}
	}
}

// TestEnd: without the host there is no router, and the host sees a policy
// that cannot hold refused.
func TestEnd(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.start()
	l.conn.Close()
	if err := <-l.ended; err != nil {
		t.Errorf("got error %v", err)
	}
}

func TestRefusesAnOpenLink(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	writeSysctl(t, "ipv4/conf/lan0/accept_source_route", "1")
	a, b := socketPair(t)
	go Run(t.Context(), a, Options{Link: "lan0", ResolvConf: "/dev/null"})
	l.conn, l.lines = b, nil
	l.conn = b
	l.lines = newLines(b)
	l.event()
	l.policy.WriteTo(b)
	if e := l.event(); e.Kind != EventFailed {
		t.Errorf("got %v", e)
	}
}

// rawFrames sends what no socket would from the sandbox's interface.
func (l *lab) rawFrames(t *testing.T) {
	type frame struct {
		src, dst string
		what     string
		arrives  bool
	}
	frames := []frame{
		{"198.19.255.254", "192.0.2.1", "raw-allowed", true},
		{"198.19.255.254", "10.1.2.3", "raw-denied", false},
		{"10.0.2.15", "192.0.2.1", "raw-as-router", false},
		{"192.0.2.99", "192.0.2.1", "raw-spoofed", false},
		{"127.0.0.1", "192.0.2.1", "raw-loopback", false},
		{"10.0.2.77", "192.0.2.1", "raw-neighbour", false},
		{"fd6c:617a::2", "2001:db8::1", "raw6-allowed", true},
		{"fd6c:617a::2", "2001:db8:5::1", "raw6-denied", false},
		{"fd6c:617a::99", "2001:db8::1", "raw6-spoofed", false},
		{"fe80::99", "2001:db8::1", "raw6-linklocal", false},
		{"fd00::77", "2001:db8::1", "raw6-neighbour", false},
	}
	l.box.do(func() {
		for _, f := range frames {
			must(t, sendFrame(netip.MustParseAddr(f.src), netip.MustParseAddr(f.dst), 5000, []byte(f.what)))
		}
	})
	for _, f := range frames {
		for end := time.Now().Add(patience); f.arrives && l.hits.get("udp "+f.what) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	l.settle()
	for _, f := range frames {
		if got := l.hits.get("udp "+f.what) > 0; got != f.arrives {
			t.Errorf("%s to %s (%s): arrived: %v, want %v", f.src, f.dst, f.what, got, f.arrives)
		}
	}
}

// advertise offers the router a better way: a router advertisement, which a
// fresh interface would believe.
func (l *lab) advertise(t *testing.T) {
	l.box.do(func() { must(t, sendAdvertisement()) })
	l.settle()
	if g, ok, err := defaultGateway(unix.AF_INET6, 0); err != nil || !ok || g.via != netip.MustParseAddr("fd00::2") {
		t.Errorf("the router now goes by %v, %v, %v", g, ok, err)
	}
}
