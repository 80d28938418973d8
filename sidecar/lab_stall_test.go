package sidecar

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// shoot sends a UDP packet to each of n addresses of 10.9.0.0/16 from the box,
// no faster than a busy machine's queues take them.
func (l *lab) shoot(n int) {
	l.try("tcp", "10.9.0.0:1") // so that the router's link address is known
	l.box.do(func() {
		c, err := net.ListenPacket("udp4", "0.0.0.0:0")
		must(l.t, err)
		defer c.Close()
		for i := range n {
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
			_, err := c.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 9, byte(i>>8), byte(i)), Port: 5000})
			must(l.t, err)
		}
	})
}

// TestStalledHost: a host that stands still for a while loses no report, and
// the sandbox neither its network nor what closes it.
func TestStalledHost(t *testing.T) {
	if !inLab(t) {
		return
	}
	const denied = 2000
	l := newLab(t, false)
	l.policy.Deny = prefixes([]string{"10.0.0.0/8"})
	l.policy.Allow = endpoints("192.0.2.0/24")
	l.policy.Hosts = []Host{{"api.test", Service{443, ""}}}
	l.names.set("api.test", "60 A 198.51.100.7")
	l.start()
	l.shoot(denied)
	time.Sleep(sendTime + 2*pollTime)
	if got := l.lookup("udp", "api.test", typeA, 0); got != "Success 198.51.100.7" {
		t.Errorf("a name meanwhile: %s", got)
	}
	if got := l.try("tcp", "198.51.100.7:443"); got != works {
		t.Errorf("what it opened: %s", got)
	}
	_, err := io.WriteString(l.conn, Flush+"\n"+SelfCommand(netip.MustParseAddr("192.0.2.9"))+"\n")
	must(t, err)
	got := ""
	for end := time.Now().Add(patience); got != refused && time.Now().Before(end); {
		got = l.try("tcp", "192.0.2.9:80")
	}
	if got != refused {
		t.Errorf("an address that is to be closed meanwhile: %s", got)
	}
	seen := map[netip.Addr]uint64{}
	for flushed := false; !flushed; {
		e := l.event()
		flushed = e.Kind == EventFlushed
		if e.Proto == "udp" {
			seen[e.Addr] += e.N
		}
	}
	for i := range denied {
		a := netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
		if seen[a] != 1 {
			t.Fatalf("%v was reported %d times", a, seen[a])
		}
	}
	l.flush()
	l.stop()
}

// TestStoppedForGood: a router that has to end does not wait for the host.
func TestStoppedForGood(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.policy.Deny = prefixes([]string{"10.0.0.0/8"})
	l.start()
	l.shoot(2000)
	time.Sleep(2 * pollTime)
	_, err := io.WriteString(l.conn, "nonsense\n")
	must(t, err)
	select {
	case err := <-l.ended:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(time.Minute):
		t.Fatal("still there")
	}
	// Nothing follows a line that was cut.
	for {
		_, err := ReadEvent(l.lines)
		if err == nil {
			continue
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
		return
	}
}

// TestFilterAtOnce: names open while denials are read, and each is answered
// with its own answer.
func TestFilterAtOnce(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.policy.Deny = prefixes([]string{"10.0.0.0/8"})
	l.start()
	l.shoot(3000) // more than one message of the kernel
	f := l.routerFilter()
	end := time.Now().Add(2 * time.Second)
	var wg sync.WaitGroup
	many := func(what string, do func(i int) error) {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				if err := do(i); err != nil {
					t.Errorf("%s, time %d: %v", what, i, err)
					return
				}
			}
		})
	}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	many("reading denials", func(int) error {
		got, err := f.denials()
		if err == nil && len(got) != 3001 {
			err = fmt.Errorf("%d denials", len(got))
		}
		return err
	})
	many("opening", func(i int) error { return f.open([]grant{{addr(i % 4000), "tcp", 443}}, nil, time.Minute) })
	many("denying", func(i int) error { return f.deny(addr(i)) })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("one waits for an answer that another has read")
	}
}
