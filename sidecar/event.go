package sidecar

import (
	"bufio"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Kinds of Event.
const (
	EventHello   = "hello"   // first: the uplink is Uplink, its MTU is MTU
	EventReady   = "ready"   // the policy holds, checked by reading it back: N routes
	EventFailed  = "failed"  // last: Text says why there is no network
	EventDenied  = "denied"  // N packets from the sandbox to Addr, Proto and Port were denied
	EventRefused = "refused" // N questions for Name were not answered
	EventRebound = "rebound" // N times, Name had address Addr, which is denied
	EventFlushed = "flushed" // answers Flush
)

// Event is something the router reports. To the host it is hostile text: a
// sandbox chooses names and addresses, and a router could be broken.
type Event struct {
	Kind   string
	Uplink string
	MTU    int
	N      uint64
	Text   string
	Proto  string // tcp, udp, icmp, icmpv6 or a number
	Addr   netip.Addr
	Port   uint16 // 0 where the protocol has none
	Name   string // any bytes: the last name asked for that had Addr, or ""
}

// String is the event as a line, without its end.
func (e Event) String() string {
	n := strconv.FormatUint(e.N, 10)
	switch e.Kind {
	case EventHello:
		return words(e.Kind, e.Uplink, strconv.Itoa(e.MTU))
	case EventReady:
		return words(e.Kind, n)
	case EventFailed:
		return words(e.Kind, escape(e.Text))
	case EventDenied:
		return words(e.Kind, n, e.Proto, e.Addr.String(), strconv.Itoa(int(e.Port)), escape(e.Name))
	case EventRefused:
		return words(e.Kind, n, escape(e.Name))
	case EventRebound:
		return words(e.Kind, n, e.Addr.String(), escape(e.Name))
	}
	return e.Kind
}

func words(w ...string) string { return strings.Join(w, " ") }

// ReadEvent reads the next event.
func ReadEvent(r *bufio.Reader) (Event, error) {
	l, err := readLine(r)
	if err != nil {
		return Event{}, err
	}
	return ParseEvent(l)
}

var errEvent = errors.New("the router said something that means nothing")

// ParseEvent reads what String wrote.
func ParseEvent(line string) (e Event, err error) {
	w := strings.Split(line, " ")
	e.Kind = w[0]
	arity := map[string]int{
		EventHello: 3, EventReady: 2, EventFailed: 2, EventDenied: 6, EventRefused: 3, EventRebound: 4, EventFlushed: 1,
	}
	if n, ok := arity[e.Kind]; !ok || len(w) != n {
		return Event{}, errEvent
	}
	fail := func(bad error) {
		if bad != nil && err == nil {
			err = errEvent
		}
	}
	number := func(s string) {
		n, bad := strconv.ParseUint(s, 10, 64)
		fail(bad)
		e.N = n
	}
	text := func(s string) string {
		t, bad := unescape(s)
		fail(bad)
		return t
	}
	address := func(s string) {
		a, bad := parseAddr(s)
		fail(bad)
		e.Addr = a
	}
	switch e.Kind {
	case EventHello:
		mtu, bad := strconv.ParseUint(w[2], 10, 16)
		fail(bad)
		e.Uplink, e.MTU = w[1], int(mtu)
		if !plain(e.Uplink) || len(e.Uplink) > 15 {
			err = errEvent
		}
	case EventReady:
		number(w[1])
	case EventFailed:
		e.Text = text(w[1])
	case EventDenied:
		number(w[1])
		e.Proto = w[2]
		address(w[3])
		port, bad := strconv.ParseUint(w[4], 10, 16)
		fail(bad)
		e.Port, e.Name = uint16(port), text(w[5])
		if !plain(e.Proto) || len(e.Proto) > 8 {
			err = errEvent
		}
	case EventRefused:
		number(w[1])
		e.Name = text(w[2])
	case EventRebound:
		number(w[1])
		address(w[2])
		e.Name = text(w[3])
	}
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// plain tells whether s is made of letters, digits and a few signs only.
func plain(s string) bool {
	for i := range len(s) {
		if !plainByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.*:/", c) >= 0
}

// escape makes one plain word of any bytes: others than plainByte become %XX,
// and nothing becomes a lone %.
func escape(s string) string {
	if s == "" {
		return "%"
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func unescape(s string) (string, error) {
	if s == "%" {
		return "", nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case plainByte(c):
			b.WriteByte(c)
		case c == '%' && i+2 < len(s):
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", errEvent
			}
			b.WriteByte(byte(n))
			i += 2
		default:
			return "", errEvent
		}
	}
	return b.String(), nil
}
