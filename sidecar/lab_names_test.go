package sidecar

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	typeA    = dnsmessage.TypeA
	typeAAAA = dnsmessage.TypeAAAA
)

// TestNames: a listed name opens what it stands for, and names are no way out.
func TestNames(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, true)
	l.policy.Always = prefixes(always)
	l.policy.Deny = prefixes([]string{"10.0.0.0/8", "192.168.0.0/16", "fc00::/7", "0.0.0.0/0"})
	l.policy.Allow = endpoints("10.20.0.0/16 5432", "192.0.2.200/32")
	l.policy.Hosts = []Host{
		{"api.test", Service{443, ""}}, {"api.test", Service{5432, "tcp"}}, {"*.cdn.test", Service{80, "tcp"}},
		{"evil.test", Service{80, ""}}, {"db.test", Service{80, ""}}, {"gone.test", Service{443, ""}},
		{"mixed.test", Service{80, ""}}, {"open.test", Service{80, ""}}, {"big.test", Service{80, ""}},
	}
	z := l.names
	z.set("api.test", "300 CNAME edge.else.test.")
	z.set("edge.else.test", "300 A 192.0.2.10", "300 AAAA 2001:db8::10")
	z.set("a.b.cdn.test", "5 A 192.0.2.20")
	z.set("cdn.test", "5 A 192.0.2.21")
	z.set("evil.test", "5 A 10.1.2.3", "5 AAAA ::ffff:10.1.2.3")
	z.set("db.test", "5 A 10.20.0.7")
	z.set("mixed.test", "5 A 169.254.169.254", "5 A 192.0.2.30")
	z.set("open.test", "5 A 192.0.2.200")
	z.set("loop.cdn.test", "5 CNAME loop2.cdn.test.")
	z.set("loop2.cdn.test", "5 CNAME loop.cdn.test.")
	z.set("secret.attacker.test", "5 A 192.0.2.66", "5 TXT hello")
	var big []string
	for i := range 32 {
		big = append(big, fmt.Sprintf("60 A 192.0.2.%d", 100+i))
	}
	z.set("big.test", big...)
	l.start()

	tries := func(t *testing.T, list ...string) {
		t.Helper()
		for _, s := range list {
			w := strings.Fields(s)
			if got := l.try(w[0], w[1]); got != w[2] {
				t.Errorf("%s %s: %s, want %s", w[0], w[1], got, w[2])
			}
		}
	}
	looks := func(t *testing.T, network, name string, kind dnsmessage.Type, size int, want string) {
		t.Helper()
		if got := l.lookup(network, name, kind, size); got != want {
			t.Errorf("%s %v over %s: %q, want %q", name, kind, network, got, want)
		}
	}
	t.Run("a name opens its address at its port", func(t *testing.T) {
		tries(t, "tcp 192.0.2.10:443 refused", "tcp [2001:db8::10]:443 refused")
		looks(t, "udp", "API.test", typeA, 1232, "Success CNAME 192.0.2.10")
		tries(t, "tcp 192.0.2.10:443 works", "tcp 192.0.2.10:5432 works", "tcp 192.0.2.10:80 refused", "ping 192.0.2.10 refused",
			"tcp 192.0.2.11:443 refused", "tcp [2001:db8::10]:443 refused")
		looks(t, "tcp", "api.test", typeAAAA, 0, "Success CNAME 2001:db8::10")
		tries(t, "tcp [2001:db8::10]:443 works")
		looks(t, "udp", "api.test", dnsmessage.TypeCNAME, 0, "Success CNAME")
	})
	t.Run("wildcards", func(t *testing.T) {
		looks(t, "udp", "a.b.cdn.test", typeA, 0, "Success 192.0.2.20")
		tries(t, "tcp 192.0.2.20:80 works")
		looks(t, "udp", "cdn.test", typeA, 0, "Refused")
		tries(t, "tcp 192.0.2.21:80 refused")
		looks(t, "udp", "x.cdn.test", typeA, 0, "NameError")
		looks(t, "udp", "loop.cdn.test", typeA, 0, "Success")
	})
	t.Run("rebinding", func(t *testing.T) {
		looks(t, "udp", "evil.test", typeA, 0, "Refused")
		looks(t, "udp", "evil.test", typeAAAA, 0, "Refused")
		tries(t, "tcp 10.1.2.3:80 refused")
		looks(t, "udp", "mixed.test", typeA, 0, "Success 192.0.2.30")
		tries(t, "tcp 169.254.169.254:80 refused", "tcp 192.0.2.30:80 works")
		// Allowed by range: the name is told, and opens nothing more.
		looks(t, "udp", "db.test", typeA, 0, "Success 10.20.0.7")
		tries(t, "tcp 10.20.0.7:80 refused", "tcp 10.20.0.7:5432 works")
		looks(t, "udp", "open.test", typeA, 0, "Success 192.0.2.200")
		tries(t, "tcp 192.0.2.200:443 works")
	})
	t.Run("no tunnel", func(t *testing.T) {
		before := len(z.asked())
		looks(t, "udp", "secret.attacker.test", typeA, 0, "Refused")
		looks(t, "tcp", "secret.attacker.test", dnsmessage.TypeTXT, 0, "Refused")
		looks(t, "udp", "api.test", dnsmessage.TypeTXT, 0, "Refused")
		looks(t, "udp", "api.test", dnsmessage.TypeALL, 0, "Refused")
		looks(t, "udp", "api.test", dnsmessage.TypeNS, 0, "Refused")
		looks(t, "udp", "api.test", typeHTTPS, 0, "Success")
		looks(t, "udp", "4.3.2.10.in-addr.arpa", dnsmessage.TypePTR, 0, "Refused")
		looks(t, "udp", "localhost", typeA, 0, "Success 127.0.0.1")
		if got := z.asked()[before:]; len(got) != 0 {
			t.Errorf("the world was asked %v", got)
		}
		// Other servers, even the uplink's own.
		for _, server := range []string{"10.0.2.3:53", "192.0.2.1:53", "198.19.255.253:5353"} {
			for _, network := range []string{"udp", "tcp"} {
				l.box.do(func() {
					if got := askFor(network, server, "secret.attacker.test", typeA, 0); got != "no answer" {
						t.Errorf("%s over %s said %q", server, network, got)
					}
				})
			}
		}
		if slices.ContainsFunc(z.asked(), func(s string) bool { return strings.Contains(s, "attacker") }) {
			t.Errorf("the world was asked %v", z.asked())
		}
	})
	t.Run("no tunnel by the case of letters", func(t *testing.T) {
		looks(t, "udp", "aPi.TeSt", typeA, 0, "Success CNAME 192.0.2.10")
		looks(t, "tcp", "X.cDN.test", typeAAAA, 0, "NameError")
		z.mu.Lock()
		defer z.mu.Unlock()
		for _, name := range z.raw {
			if name != strings.ToLower(name) {
				t.Errorf("the world was asked for %s", name)
			}
		}
	})
	t.Run("size", func(t *testing.T) {
		looks(t, "udp", "big.test", typeA, 0, "Success truncated")
		if got := l.lookup("udp", "big.test", typeA, 1232); strings.Count(got, "192.0.2.1") != 32 {
			t.Errorf("with EDNS: %s", got)
		}
		if got := l.lookup("tcp", "big.test", typeA, 0); strings.Count(got, "192.0.2.1") != 32 {
			t.Errorf("over TCP: %s", got)
		}
	})
	t.Run("events", func(t *testing.T) {
		events := l.flush()
		for _, want := range []string{"refused % secret.attacker.test", "rebound 10.1.2.3 evil.test", "denied 192.0.2.10 api.test"} {
			w := strings.Fields(want)
			if !slices.ContainsFunc(events, func(e Event) bool {
				return e.Kind == w[0] && e.Name == w[2] && (w[1] == "%" || e.Addr == netip.MustParseAddr(w[1]))
			}) {
				t.Errorf("no %q in %v", want, events)
			}
		}
	})
	t.Run("rotating", func(t *testing.T) {
		for i := range 20 {
			addr := fmt.Sprintf("192.0.2.%d", 40+i)
			z.set("r.cdn.test", "0 A "+addr)
			looks(t, "udp", "r.cdn.test", typeA, 0, "Success "+addr)
			tries(t, "tcp "+addr+":80 works")
		}
		tries(t, "tcp 192.0.2.40:80 works") // answers are used a little longer than they live
	})
	t.Run("a thousand names", func(t *testing.T) {
		start := time.Now()
		for i := range 1000 {
			addr := fmt.Sprintf("203.0.%d.%d", i/250, i%250)
			z.mu.Lock()
			z.zone[fmt.Sprintf("n%d.cdn.test", i)] = func(dnsmessage.Type) []string { return []string{"60 A " + addr} }
			z.mu.Unlock()
		}
		l.box.do(func() {
			for i := range 1000 {
				want := fmt.Sprintf("Success 203.0.%d.%d", i/250, i%250)
				if got := askFor("udp", "198.19.255.253:53", fmt.Sprintf("n%d.cdn.test", i), typeA, 0); got != want {
					t.Fatalf("name %d: %s", i, got)
				}
			}
		})
		t.Logf("%v each", time.Since(start)/1000)
		tries(t, "tcp 203.0.3.249:80 works", "tcp 203.0.0.0:80 works")
	})
}

// TestExpiry: what a name opened closes again, but not for what is under way.
func TestExpiry(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.start()
	// The filter itself, without waiting for the minute that answers live at least.
	f := l.routerFilter()
	a := netip.MustParseAddr("192.0.2.10")
	g := []grant{{a, "tcp", 80}}
	const life = 5 * time.Second // in which to connect
	must(t, f.open(g, nil, life))
	var held *session
	l.box.do(func() { held = openSession(t, "192.0.2.10:80") })
	got := works
	for end := time.Now().Add(life + patience); got == works && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		got = l.try("tcp", "192.0.2.10:80")
	}
	if got != refused {
		t.Errorf("after its time: %s", got)
	}
	if err := held.say("still there"); err != nil {
		t.Errorf("a connection that began in time: %v", err)
	}
	// Renewed after it has timed out, and before.
	must(t, f.open(nil, g, life))
	if got := l.try("tcp", "192.0.2.10:80"); got != works {
		t.Errorf("opened again: %s", got)
	}
	must(t, f.open(nil, g, 10*time.Minute))
	time.Sleep(life + 500*time.Millisecond)
	if got := l.try("tcp", "192.0.2.10:80"); got != works {
		t.Errorf("given more time: %s", got)
	}
}

// TestOpenNames: where everything is allowed, every name is answered.
func TestOpenNames(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.policy.Open = true
	l.policy.Allow = endpoints("0.0.0.0/0")
	l.names.set("any.test", "5 A 192.0.2.1", "5 TXT hello")
	l.start()
	for kind, want := range map[dnsmessage.Type]string{
		typeA: "Success 192.0.2.1", dnsmessage.TypeTXT: "Success TXT", dnsmessage.TypeAXFR: "Refused", typeAAAA: "Success",
	} {
		if got := l.lookup("udp", "any.test", kind, 0); got != want {
			t.Errorf("%v: %q, want %q", kind, got, want)
		}
	}
	if got := l.lookup("udp", "none.test", typeA, 0); got != "NameError" {
		t.Errorf("none.test: %q", got)
	}
}
