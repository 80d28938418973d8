package sidecar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Routing tables and packet marks. A packet from the sandbox is routed by
// policyTable, whatever the packet filter does or fails to do; the filter's
// marks only choose between the two.
const (
	policyTable = 100 // the Table's
	grantTable  = 101 // everything through the uplink: for what the filter let through by port

	policyMark = 1
	grantMark  = 2
)

// gateway is where one family's packets leave.
type gateway struct {
	family int        // AF_INET or AF_INET6
	link   int        // interface index
	via    netip.Addr // invalid: on the link itself
}

// zero is the family's unspecified address.
func (g gateway) zero() netip.Addr {
	if g.family == unix.AF_INET {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// routeWriter loads routes by the hundred thousand: messages of many routes in
// one buffer used again and again, with one acknowledgement each.
type routeWriter struct {
	fd  int
	buf []byte
	n   int // messages in buf
	seq uint32
}

// Larger messages are refused with EMSGSIZE.
const routeBuffer = 96 << 10

func newRouteWriter() (*routeWriter, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	// Only what fails is answered, so that an answer always fits.
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &routeWriter{fd: fd, buf: make([]byte, 0, routeBuffer)}, nil
}

func (w *routeWriter) close() { unix.Close(w.fd) }

// add queues a route of a table. A route that is not open gets kind.
func (w *routeWriter) add(table uint8, r Route, g gateway, denied uint8) error {
	const most = 16 + 12 + 20 + 20 + 8
	if len(w.buf)+most > routeBuffer {
		if err := w.flush(); err != nil {
			return err
		}
	}
	kind := denied
	if r.Open {
		kind = unix.RTN_UNICAST
	}
	scope := uint8(unix.RT_SCOPE_UNIVERSE)
	if r.Open && !g.via.IsValid() && g.family == unix.AF_INET {
		scope = unix.RT_SCOPE_LINK
	}
	start := len(w.buf)
	w.seq++
	b := append(w.buf, make([]byte, unix.SizeofNlMsghdr)...)
	b = append(b, uint8(g.family), uint8(r.Prefix.Bits()), 0, 0, table, unix.RTPROT_STATIC, scope, kind, 0, 0, 0, 0)
	b = attribute(b, unix.RTA_DST, r.Prefix.Addr().AsSlice())
	if r.Open {
		if g.via.IsValid() {
			b = attribute(b, unix.RTA_GATEWAY, g.via.AsSlice())
		}
		b = attribute(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(g.link)))
	}
	h := b[start:]
	binary.NativeEndian.PutUint32(h[0:], uint32(len(h)))
	binary.NativeEndian.PutUint16(h[4:], unix.RTM_NEWROUTE)
	binary.NativeEndian.PutUint16(h[6:], unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	binary.NativeEndian.PutUint32(h[8:], w.seq)
	w.buf, w.n = b, w.n+1
	return nil
}

// attribute appends a netlink attribute. Addresses and numbers need no padding.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value...)
}

// flush sends what is queued and waits until the kernel took all of it.
func (w *routeWriter) flush() error {
	if w.n == 0 {
		return nil
	}
	// Ask for an answer to the last one; what failed before answers unasked.
	for off := 0; ; {
		n := int(binary.NativeEndian.Uint32(w.buf[off:]))
		if off+n == len(w.buf) {
			flags := binary.NativeEndian.Uint16(w.buf[off+6:])
			binary.NativeEndian.PutUint16(w.buf[off+6:], flags|unix.NLM_F_ACK)
			break
		}
		off += n
	}
	if _, err := unix.Write(w.fd, w.buf); err != nil {
		return fmt.Errorf("sending routes: %w", err)
	}
	w.buf, w.n = w.buf[:0], 0
	in := make([]byte, 8<<10)
	for {
		n, err := unix.Read(w.fd, in)
		if err != nil {
			return fmt.Errorf("waiting for the kernel to take routes: %w", err)
		}
		msgs, err := parseAnswers(in[:n])
		if err != nil {
			return err
		}
		for _, m := range msgs {
			if m.errno != 0 {
				return fmt.Errorf("adding a route: %w", m.errno)
			}
			if m.seq == w.seq {
				return nil
			}
		}
	}
}

type answer struct {
	seq   uint32
	errno unix.Errno
}

func parseAnswers(b []byte) (out []answer, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(binary.NativeEndian.Uint32(b))
		if n < unix.SizeofNlMsghdr+4 || n > len(b) || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
			return nil, errors.New("adding routes: the kernel's answer makes no sense")
		}
		code := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:]))
		out = append(out, answer{binary.NativeEndian.Uint32(b[8:]), unix.Errno(-code)})
		b = b[min(len(b), (n+3)&^3):]
	}
	return out, nil
}

// load writes the tables of one family and reads them back.
func (t *Table) load(g gateway, blackhole bool) (int, error) {
	w, err := newRouteWriter()
	if err != nil {
		return 0, err
	}
	defer w.close()
	denied := uint8(unix.RTN_PROHIBIT)
	if blackhole {
		denied = unix.RTN_BLACKHOLE
	}
	var want tally
	// The default first, so that there is no moment without one.
	for r := range t.Routes() {
		if (r.Prefix.Addr().Is4()) != (g.family == unix.AF_INET) {
			continue
		}
		if g.link == 0 {
			r.Open = false // no way out in this family
		}
		if err := w.add(policyTable, r, g, denied); err != nil {
			return 0, err
		}
		want.add(r.Prefix, r.Open)
	}
	all := Route{netip.PrefixFrom(g.zero(), 0), g.link != 0}
	if err := w.add(grantTable, all, g, denied); err != nil {
		return 0, err
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	got, err := readBack(g, denied)
	if err != nil {
		return 0, err
	}
	if got != want {
		return 0, fmt.Errorf("reading back the routing table: %d routes instead of %d, or others", got.n, want.n)
	}
	return want.n, nil
}

// tally identifies a set of routes whatever their order.
type tally struct {
	n   int
	sum uint64
}

func (t *tally) add(p netip.Prefix, open bool) {
	h := fnv.New64a()
	b, _ := p.MarshalBinary()
	h.Write(b)
	if open {
		h.Write([]byte{1})
	}
	t.n++
	t.sum += h.Sum64()
}

func readBack(g gateway, denied uint8) (got tally, err error) {
	filter := &netlink.Route{Table: policyTable}
	err = netlink.RouteListFilteredIter(g.family, filter, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
		p := netip.PrefixFrom(g.zero(), 0)
		if r.Dst != nil {
			p = prefixOf(r.Dst)
		}
		switch {
		case r.Type == unix.RTN_UNICAST && r.LinkIndex == g.link && g.link != 0 && sameAddr(r.Gw, g.via):
			got.add(p, true)
		case r.Type == int(denied):
			got.add(p, false)
		default:
			got.n = -1 << 30 // a route that nobody asked for
		}
		return true
	})
	if err != nil {
		return got, fmt.Errorf("reading back the routing table: %w", err)
	}
	return got, nil
}

func sameAddr(ip net.IP, a netip.Addr) bool {
	b, ok := netip.AddrFromSlice(ip)
	if !ok {
		return !a.IsValid()
	}
	return b.Unmap() == a
}

func prefixOf(n *net.IPNet) netip.Prefix {
	a, _ := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if bits == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, ones)
}

// addRules sends packets from the sandbox to the tables.
func addRules(family int, link string) error {
	want := []netlink.Rule{
		newRule(family, func(r *netlink.Rule) { r.Priority, r.Mark, r.Table = 90, grantMark, grantTable }),
		// Without it, the packet filter could not ask what the table says.
		newRule(family, func(r *netlink.Rule) { r.Priority, r.Mark, r.Table = 91, policyMark, policyTable }),
		// The wall: it needs no mark.
		newRule(family, func(r *netlink.Rule) { r.Priority, r.IifName, r.Table = 92, link, policyTable }),
	}
	for i := range want {
		if err := netlink.RuleAdd(&want[i]); err != nil {
			return fmt.Errorf("adding a routing rule: %w", err)
		}
	}
	have, err := netlink.RuleList(family)
	if err != nil {
		return fmt.Errorf("reading back the routing rules: %w", err)
	}
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h.Priority == w.Priority && h.Mark == w.Mark && h.Table == w.Table && h.IifName == w.IifName && h.Src == nil && h.Dst == nil
		}
		if !found {
			return fmt.Errorf("reading back the routing rules: rule %d is missing", w.Priority)
		}
	}
	return nil
}

func newRule(family int, set func(*netlink.Rule)) netlink.Rule {
	r := netlink.NewRule()
	r.Family = family
	set(r)
	return *r
}

// insert adds a route to a policy table that is in use.
func insert(r Route, g gateway, blackhole bool) error {
	w, err := newRouteWriter()
	if err != nil {
		return err
	}
	defer w.close()
	denied := uint8(unix.RTN_PROHIBIT)
	if blackhole {
		denied = unix.RTN_BLACKHOLE
	}
	if err := w.add(policyTable, r, g, denied); err != nil {
		return err
	}
	return w.flush()
}
