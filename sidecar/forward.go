package sidecar

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Limits of the name service. The sandbox is the only client.
const (
	queriesAtOnce = 128
	streamsAtOnce = 64
	streamIdle    = 10 * time.Second
	serverTime    = 2 * time.Second // for one name server to answer
	burst         = 1000            // questions at once,
	rate          = 200             // and a second after that
	nameOfLimit   = 4096            // addresses whose name is remembered
	refusedLimit  = 1000            // names that are counted one by one
)

// forwarder is the sandbox's only name server. It answers from the uplink's
// name servers, and opens what a listed name stands for before it says so.
type forwarder struct {
	router  *router
	servers []netip.Addr
	hosts   hostTable
	grants  *grants
	slots   chan struct{}

	mu      sync.Mutex
	tokens  float64
	filled  time.Time
	asked   map[netip.Addr]string // last name that had the address
	refused map[string]uint64
	rebound map[rebound]uint64
}

type rebound struct {
	name string
	addr netip.Addr
}

func newForwarder(r *router, servers []netip.Addr) *forwarder {
	return &forwarder{
		router: r, servers: servers, hosts: newHostTable(r.policy.Hosts),
		grants: &grants{open: r.filter.open, now: time.Now, until: map[grant]time.Time{}},
		slots:  make(chan struct{}, queriesAtOnce), tokens: burst, filled: time.Now(),
		asked: map[netip.Addr]string{}, refused: map[string]uint64{}, rebound: map[rebound]uint64{},
	}
}

// listen answers on the link's address until ctx ends.
func (f *forwarder) listen(ctx context.Context, addr netip.Addr) error {
	at := net.JoinHostPort(addr.String(), "53")
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(ctx, "udp", at)
	if err != nil {
		return fmt.Errorf("serving names: %w", err)
	}
	tcp, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		udp.Close()
		return fmt.Errorf("serving names: %w", err)
	}
	context.AfterFunc(ctx, func() { udp.Close(); tcp.Close() })
	go f.serveUDP(ctx, udp)
	go f.serveTCP(ctx, tcp)
	return nil
}

func (f *forwarder) serveUDP(ctx context.Context, c net.PacketConn) {
	for {
		b := make([]byte, 4096)
		n, from, err := c.ReadFrom(b)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			continue // an ICMP error of an earlier answer
		}
		select {
		case f.slots <- struct{}{}:
		default:
			continue // as if it had been lost: the client asks again
		}
		go func() {
			defer func() { <-f.slots }()
			if out := f.answer(ctx, b[:n], true); out != nil {
				c.WriteTo(out, from)
			}
		}()
	}
}

func (f *forwarder) serveTCP(ctx context.Context, l net.Listener) {
	slots := make(chan struct{}, streamsAtOnce)
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			c.Close()
			continue
		}
		go func() {
			defer func() { c.Close(); <-slots }()
			for {
				c.SetDeadline(time.Now().Add(streamIdle))
				msg, err := readStream(c)
				if err != nil {
					return
				}
				out := f.answer(ctx, msg, false)
				if out == nil || writeStream(c, out) != nil {
					return
				}
			}
		}()
	}
}

func readStream(r io.Reader) ([]byte, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(n[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

func writeStream(w io.Writer, msg []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...))
	return err
}

// answer gives the answer to a client's message, or nil for none.
func (f *forwarder) answer(ctx context.Context, msg []byte, udp bool) []byte {
	q, rcode, ok := parseQuery(msg)
	if !ok {
		return nil
	}
	r := reply{rcode: rcode}
	if rcode == dnsmessage.RCodeSuccess {
		if r = f.resolve(ctx, q); r.late && udp {
			return nil // as if it had been lost: the client asks again
		}
	}
	limit := messageMost
	if udp {
		limit = q.size
	}
	out, err := q.pack(r, limit)
	if err != nil {
		// Names from the world that cannot be written again.
		out, _ = q.pack(reply{rcode: dnsmessage.RCodeServerFailure}, limit)
	}
	return out
}

func (f *forwarder) resolve(ctx context.Context, q query) reply {
	if q.name == "localhost" || strings.HasSuffix(q.name, ".localhost") {
		return localhost(q.question)
	}
	services := f.hosts.services(q.name)
	listed := len(services) > 0
	kind := q.question.Type
	switch {
	case !listed && !f.router.policy.Open, kind == dnsmessage.TypeALL, kind == dnsmessage.TypeAXFR, kind == typeIXFR:
		return f.refuse(q.name)
	case listed && (kind == typeHTTPS || kind == typeSVCB):
		// These can carry addresses, which would not be open: without the
		// record, clients ask for addresses.
		return reply{}
	case listed && !f.router.policy.Open && kind != dnsmessage.TypeA && kind != dnsmessage.TypeAAAA && kind != dnsmessage.TypeCNAME:
		return f.refuse(q.name)
	case !f.admit():
		// Not refused: later, the name is answered.
		return reply{rcode: dnsmessage.RCodeServerFailure, late: true}
	}
	asked, err := q.plain()
	if err != nil {
		return reply{rcode: dnsmessage.RCodeFormatError}
	}
	a, err := f.exchange(ctx, asked)
	if err != nil {
		return reply{rcode: dnsmessage.RCodeServerFailure}
	}
	if kind != dnsmessage.TypeA && kind != dnsmessage.TypeAAAA && !(listed && kind == dnsmessage.TypeCNAME) {
		return reply{rcode: a.rcode, resources: a.resources}
	}
	records, addrs := a.chain(q.question)
	f.remember(q.name, addrs)
	ttl, life := lifetime(minTTL(records))
	if listed {
		records, addrs = f.screen(q.name, records, addrs)
		if addrs == nil {
			return f.refuse(q.name)
		}
		if err := f.grants.grant(f.grantable(addrs), services, life); err != nil {
			return reply{rcode: dnsmessage.RCodeServerFailure}
		}
	}
	for i := range records {
		records[i].Header.TTL = min(records[i].Header.TTL, ttl)
	}
	return reply{rcode: a.rcode, resources: records}
}

// screen takes out addresses in ranges that are denied or private, unless a
// narrower range is allowed: whoever owns a name could make it mean any machine here.
// addrs is nil where none is left of some.
func (f *forwarder) screen(name string, records []dnsmessage.Resource, addrs []netip.Addr) ([]dnsmessage.Resource, []netip.Addr) {
	f.router.mu.RLock()
	defer f.router.mu.RUnlock()
	kept, clean := []netip.Addr{}, records[:0:0]
	for _, r := range records {
		a, ok := addressOf(r)
		if ok {
			if v := f.router.table.Lookup(a); (v.Denied || private(a)) && !v.Open && v.Ports == nil {
				f.mu.Lock()
				addOne(f.rebound, rebound{name, a})
				f.mu.Unlock()
				continue
			}
			kept = append(kept, a)
		}
		clean = append(clean, r)
	}
	if len(kept) == 0 && len(addrs) > 0 {
		return nil, nil
	}
	return clean, kept
}

// grantable leaves out what no name opens: a narrower allowed range says what
// of it can be reached, or it is open anyway.
func (f *forwarder) grantable(addrs []netip.Addr) (out []netip.Addr) {
	f.router.mu.RLock()
	defer f.router.mu.RUnlock()
	for _, a := range addrs {
		if v := f.router.table.Lookup(a); !v.Open && !v.Denied && !private(a) {
			out = append(out, a)
		}
	}
	return out
}

// shared is what providers and overlay networks number their customers' and
// members' machines from (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// private tells whether an address is one of somebody's own network, which a
// name of the Internet has no business to mean.
func private(a netip.Addr) bool { return a.IsPrivate() || shared.Contains(a) }

func localhost(q dnsmessage.Question) reply {
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 3600}
	switch q.Type {
	case dnsmessage.TypeA:
		return reply{resources: []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}}
	case dnsmessage.TypeAAAA:
		return reply{resources: []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}}}}
	}
	return reply{}
}

func (f *forwarder) refuse(name string) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	addOne(f.refused, name)
	return reply{rcode: dnsmessage.RCodeRefused}
}

// addOne counts k, unless it is new and there are too many others.
func addOne[K comparable](counts map[K]uint64, k K) {
	if _, known := counts[k]; known || len(counts) < refusedLimit {
		counts[k]++
	}
}

// admit limits how much can be asked: a name can carry out 200 bytes.
func (f *forwarder) admit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.tokens = min(burst, f.tokens+now.Sub(f.filled).Seconds()*rate)
	f.filled = now
	if f.tokens < 1 {
		return false
	}
	f.tokens--
	return true
}

func (f *forwarder) remember(name string, addrs []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addrs {
		if _, ok := f.asked[a]; !ok && len(f.asked) >= nameOfLimit {
			clear(f.asked)
		}
		f.asked[a] = name
	}
}

func (f *forwarder) nameOf(a netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[a]
}

// drain gives the names that were refused since the last time.
func (f *forwarder) drain() (out []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, n := range f.refused {
		out = append(out, Event{Kind: EventRefused, N: n, Name: name})
	}
	for r, n := range f.rebound {
		out = append(out, Event{Kind: EventRebound, N: n, Name: r.name, Addr: r.addr})
	}
	clear(f.refused)
	clear(f.rebound)
	return out
}
