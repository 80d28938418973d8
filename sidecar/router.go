package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Options are what Run is told besides the policy.
type Options struct {
	Link       string // the link's interface, there before the policy is sent
	ResolvConf string // the uplink's name servers, as resolv.conf(5)
}

// pollTime is how often denials are reported.
const pollTime = time.Second

const (
	sendTime      = 5 * time.Second // for the host to take what is not a report
	flushesAtOnce = 16              // asked for and not answered yet
)

// loadGC is how much the memory may grow over what is in use, in percent,
// before it is collected while a policy loads.
const loadGC = 30

// Run is the router: it says hello on conn, takes its policy from there, makes
// it hold in the network namespace it is in, and reports until conn or ctx
// ends. It must be the only one to change that namespace.
func Run(ctx context.Context, conn net.Conn, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	context.AfterFunc(ctx, func() { conn.Close() })
	r := &router{conn: conn, link: o.Link, flushes: make(chan struct{}, flushesAtOnce)}
	if err := r.run(ctx, o); err != nil && !errors.Is(err, io.EOF) {
		if ctx.Err() == nil {
			r.tell(Event{Kind: EventFailed, Text: err.Error()})
		}
		return err
	}
	return nil
}

type router struct {
	link string
	up   uplink

	sendMu sync.Mutex
	conn   net.Conn
	cut    error // why a line may have been sent in part: nothing can follow it

	mu     sync.RWMutex // policy and table, which grow by the host's addresses
	policy Policy
	table  Table

	filter *filter
	names  *forwarder

	flushes chan struct{}
	last    map[denial]uint64 // counters as last reported
}

func (r *router) run(ctx context.Context, o Options) (err error) {
	if r.up, err = findUplink(); err != nil {
		return err
	}
	// After hello, the host connects the sandbox.
	if r.filter, err = newFilter(); err != nil {
		return err
	}
	defer r.filter.conn.CloseLasting()
	if err := r.tell(Event{Kind: EventHello, Uplink: r.up.name, MTU: r.up.mtu}); err != nil {
		return err
	}
	in := bufio.NewReader(r.conn)
	if r.policy, err = ReadPolicy(in); err != nil {
		return err
	}
	servers, err := resolvers(o.ResolvConf)
	if err != nil {
		return err
	}
	n, err := r.apply(servers)
	if err != nil {
		return err
	}
	r.names = newForwarder(r, servers)
	if err := r.names.listen(ctx, r.policy.Link.Router4); err != nil {
		return err
	}
	if err := r.tell(Event{Kind: EventReady, N: uint64(n)}); err != nil {
		return err
	}
	// A host that stands still for a while, or whose user has stopped it, does
	// not lose the network: reports wait for it, and nothing waits for them.
	r.conn.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { defer cancel(); r.poll(ctx) }()
	return r.obey(ctx, in)
}

// apply makes the policy hold, and reads it back.
func (r *router) apply(servers []netip.Addr) (routes int, err error) {
	if err := r.up.addresses(r.policy.Uplink6, r.policy.Link.IPv6(), servers); err != nil {
		return 0, err
	}
	six := r.policy.Link.IPv6()
	if err := checkSysctls(LinkSysctls(r.link, six)); err != nil {
		return 0, err
	}
	if err := checkSysctls(Sysctls()); err != nil {
		return 0, err
	}
	// A policy may have a hundred thousand ranges, and much is only needed here.
	defer debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(loadGC))
	p := r.policy
	r.policy.Allow, r.policy.Deny, r.policy.Always = nil, nil, nil // only the table is asked from here on
	r.table = Compile(p, r.up.own)
	for _, g := range []gateway{r.up.v4, r.up.v6} {
		// Without IPv6, its tables are there all the same, and closed.
		n, err := r.table.load(g, r.policy.Blackhole)
		if err != nil {
			return 0, err
		}
		if err := addRules(g.family, r.link); err != nil {
			return 0, err
		}
		routes += n
	}
	err = r.filter.load(r.policy, r.table, r.link, r.up.name)
	r.table.Ports = nil
	return routes, err
}

func (r *router) send(e Event) error {
	r.sendMu.Lock()
	defer r.sendMu.Unlock()
	if r.cut == nil {
		_, r.cut = io.WriteString(r.conn, e.String()+"\n")
	}
	return r.cut
}

// tell sends what is not a report: where the host does not take it in time, it
// is given up, and with it a report that waits.
func (r *router) tell(e Event) error {
	r.conn.SetWriteDeadline(time.Now().Add(sendTime))
	return r.send(e)
}

// obey does what the host says until it is gone. It does not wait for the host
// to read: what is to be closed is closed at once.
func (r *router) obey(ctx context.Context, in *bufio.Reader) error {
	for {
		l, err := readLine(in)
		if err != nil {
			return err
		}
		if l == Flush {
			select {
			case r.flushes <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		word, arg, _ := strings.Cut(l, " ")
		a, err := parseAddr(arg)
		if word != selfWord || err != nil {
			return errors.New("the host said something that means nothing")
		}
		if err := r.deny(a); err != nil {
			return err
		}
	}
}

// deny closes an address that the host has got since the start.
func (r *router) deny(a netip.Addr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := netip.PrefixFrom(a, a.BitLen())
	if r.table.has(q) {
		return nil // allowed by name, or known
	}
	g := r.up.v4
	if a.Is6() {
		g = r.up.v6
	}
	if err := insert(Route{Prefix: q}, g, r.policy.Blackhole); err != nil {
		return err
	}
	r.table.deny(q)
	return r.filter.deny(a)
}

// poll reports now and then, and when the host asks. Only it waits for the
// host.
func (r *router) poll(ctx context.Context) {
	t := time.NewTicker(pollTime)
	defer t.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			err = r.report()
		case <-r.flushes:
			if err = r.report(); err == nil {
				err = r.send(Event{Kind: EventFlushed})
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				r.tell(Event{Kind: EventFailed, Text: fmt.Sprintf("reporting: %v", err)})
			}
			r.conn.Close()
			return
		}
	}
}

// report sends what was denied and refused since the last time.
func (r *router) report() error {
	now, err := r.filter.denials()
	if err != nil {
		return fmt.Errorf("reading what was denied: %w", err)
	}
	for d, n := range now {
		more := n - r.last[d]
		if n < r.last[d] {
			more = n // timed out, and counted anew
		}
		if more == 0 {
			continue
		}
		e := Event{Kind: EventDenied, N: more, Proto: protoName(d.proto), Addr: d.addr, Port: d.port, Name: r.names.nameOf(d.addr)}
		if err := r.send(e); err != nil {
			return err
		}
	}
	r.last = now
	for _, e := range r.names.drain() {
		if err := r.send(e); err != nil {
			return err
		}
	}
	return nil
}

func protoName(n uint8) string {
	switch n {
	case 1:
		return "icmp"
	case 6:
		return "tcp"
	case 17:
		return "udp"
	case 58:
		return "icmpv6"
	}
	return fmt.Sprint(n)
}
