package sidecar

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// TestTooMuch: a question too many is not one that is not allowed.
func TestTooMuch(t *testing.T) {
	f := &forwarder{
		router: &router{}, hosts: newHostTable([]Host{{"a.test", Service{443, ""}}}),
		tokens: -rate * 60, filled: time.Now(),
		refused: map[string]uint64{}, rebound: map[rebound]uint64{},
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{question("A.test.")}}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if out := f.answer(t.Context(), msg, true); out != nil {
		t.Errorf("over UDP: %x", out)
	}
	if err := m.Unpack(f.answer(t.Context(), msg, false)); err != nil || m.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("over TCP: %v, %v", m.RCode, err)
	}
	if got := f.drain(); len(got) > 0 {
		t.Errorf("reported %v", got)
	}
}

// TestManyRefused: names beyond the limit do not hide those that are known, nor
// what was rebound.
func TestManyRefused(t *testing.T) {
	f := &forwarder{refused: map[string]uint64{}, rebound: map[rebound]uint64{}}
	f.refuse("known.test")
	for i := range refusedLimit + 10 {
		f.refuse(fmt.Sprintf("n%d.test", i))
	}
	f.refuse("known.test")
	addOne(f.rebound, rebound{name: "evil.test"})
	if n := f.refused["known.test"]; n != 2 {
		t.Errorf("a known name was counted %d times", n)
	}
	if got := f.drain(); len(got) != refusedLimit+1 {
		t.Errorf("%d events", len(got))
	}
}
