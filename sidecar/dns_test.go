package sidecar

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func question(name string) dnsmessage.Question {
	return dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
}

func TestServices(t *testing.T) {
	h := newHostTable([]Host{{"a.test", Service{443, ""}}, {"*.a.test", Service{80, "tcp"}}, {"*.test", Service{22, "tcp"}}})
	for name, want := range map[string]string{
		"a.test": "[{443 } {22 tcp}]", "x.a.test": "[{80 tcp} {22 tcp}]", "y.x.a.test": "[{80 tcp} {22 tcp}]",
		"test": "[]", "xa.test": "[{22 tcp}]", "b.test.com": "[]", "": "[]", ".": "[]", "a.test.": "[]",
	} {
		if got := fmt.Sprint(h.services(name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := lower("Ab.K\u212aTest."); got != "ab.k\u212atest" {
		t.Errorf("lower: %q", got)
	}
}

// TestChain: what a name server adds to its answer means nothing.
func TestChain(t *testing.T) {
	a := func(name, addr string) dnsmessage.Resource {
		return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 9},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()}}
	}
	c := func(name, to string) dnsmessage.Resource {
		return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeCNAME, Class: dnsmessage.ClassINET, TTL: 9},
			Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)}}
	}
	for _, tt := range []struct {
		what    string
		answers []dnsmessage.Resource
		want    []string
	}{
		{"plain", []dnsmessage.Resource{a("A.test.", "192.0.2.1")}, []string{"192.0.2.1"}},
		{"another name's address", []dnsmessage.Resource{a("b.test.", "192.0.2.1")}, nil},
		{"in any order", []dnsmessage.Resource{a("c.test.", "192.0.2.1"), c("b.test.", "c.test."), c("a.test.", "b.test.")}, []string{"192.0.2.1"}},
		{"a chain that is not the name's", []dnsmessage.Resource{c("b.test.", "c.test."), a("c.test.", "192.0.2.1")}, nil},
		{"an address beside an alias", []dnsmessage.Resource{c("a.test.", "b.test."), a("a.test.", "192.0.2.9"), a("b.test.", "192.0.2.1")}, []string{"192.0.2.1"}},
		{"in a circle", []dnsmessage.Resource{c("a.test.", "b.test."), c("b.test.", "a.test."), a("a.test.", "192.0.2.1")}, nil},
	} {
		_, addrs := found{resources: tt.answers}.chain(question("a.test."))
		var got []string
		for _, x := range addrs {
			got = append(got, x.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	alias := question("a.test.")
	alias.Type = dnsmessage.TypeCNAME
	records, addrs := found{resources: []dnsmessage.Resource{c("x.test.", "a.test."), c("A.test.", "b.test."), c("a.test.", "c.test."), c("b.test.", "c.test."), a("a.test.", "10.0.0.1")}}.chain(alias)
	if len(records) != 1 || records[0].Body.(*dnsmessage.CNAMEResource).CNAME.String() != "b.test." || addrs != nil {
		t.Errorf("a question for the alias: %v", records)
	}
}

// TestForgedAnswers: an answer must be to the question, with its number.
func TestForgedAnswers(t *testing.T) {
	q := query{id: 7, question: question("a.test.")}
	good, err := q.pack(reply{}, 512)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseAnswer(good, 7, question("A.TEST.")); err != nil {
		t.Errorf("the answer: %v", err)
	}
	for what, f := range map[string]func() ([]byte, uint16, dnsmessage.Question){
		"another number": func() ([]byte, uint16, dnsmessage.Question) { return good, 8, question("a.test.") },
		"another name":   func() ([]byte, uint16, dnsmessage.Question) { return good, 7, question("b.test.") },
		"another type": func() ([]byte, uint16, dnsmessage.Question) {
			x := question("a.test.")
			x.Type = dnsmessage.TypeAAAA
			return good, 7, x
		},
		"a question": func() ([]byte, uint16, dnsmessage.Question) {
			b, _ := ask(7, question("a.test."))
			return b, 7, question("a.test.")
		},
	} {
		if _, err := parseAnswer(f()); err == nil {
			t.Errorf("%s: taken for the answer", what)
		}
	}
}

func TestLifetime(t *testing.T) {
	for ttl, want := range map[uint32]string{
		0: "0 1m30s", 5: "5 1m30s", 300: "300 5m30s", 86400: "3600 1h0m30s", 1<<31 - 1: "3600 1h0m30s",
	} {
		answer, open := lifetime(ttl)
		if got := fmt.Sprint(answer, " ", open); got != want {
			t.Errorf("%d: %s, want %s", ttl, got, want)
		}
	}
}

// TestGrants: the number is bounded, and what has timed out makes room.
func TestGrants(t *testing.T) {
	now := time.Unix(0, 0)
	var added, renewed int
	g := &grants{now: func() time.Time { return now }, until: map[grant]time.Time{}, open: func(add, renew []grant, _ time.Duration) error {
		added, renewed = added+len(add), renewed+len(renew)
		return nil
	}}
	https := []Service{{443, ""}}
	addr := func(i int) []netip.Addr { return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})} }
	if err := g.grant(append(addr(1), addr(1)...), https, time.Minute); err != nil || added != 2 {
		t.Fatalf("%v, %d added", err, added)
	}
	if err := g.grant(addr(1), https, 30*time.Second); err != nil || added != 2 || renewed != 0 {
		t.Fatalf("open longer already: %v, %d added, %d renewed", err, added, renewed)
	}
	now = now.Add(30 * time.Second)
	if err := g.grant(addr(1), https, time.Minute); err != nil || added != 2 || renewed != 2 {
		t.Fatalf("renewing: %v, %d added, %d renewed", err, added, renewed)
	}
	var err error
	n := 2
	for ; n < namesLimit && err == nil; n++ {
		err = g.grant(addr(n), https, time.Minute)
	}
	if !errors.Is(err, errGrants) || len(g.until) > namesLimit/2 {
		t.Fatalf("after %d: %v, %d open", n, err, len(g.until))
	}
	now = now.Add(2 * time.Minute)
	if err := g.grant(addr(n), https, time.Minute); err != nil || len(g.until) != 2 {
		t.Errorf("after all timed out: %v, %d open", err, len(g.until))
	}
}
