package sidecar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// filter is the packet filter: what routes cannot do. It checks that a packet
// from the sandbox comes from the sandbox's own address, opens single ports
// and names, answers what the routing table denies (the table's own answers
// are rate-limited: of ten connections eight would hang), keeps the sandbox
// from the router itself, and hides its address behind the uplink's.
type filter struct {
	// mu is held from a request to the last of its answer: conn is one socket,
	// and does not keep two callers from reading each other's answers.
	mu     sync.Mutex
	conn   *nftables.Conn
	table  *nftables.Table
	ports  [2]*nftables.Set // reachable ports, by family: index v4, v6
	names  [2]*nftables.Set // what names opened; elements time out
	denied [2]*nftables.Set // what was denied, with a counter each
	self   [2]*nftables.Set // addresses that the host got since the start
	rules  int
}

const (
	v4 = 0
	v6 = 1

	// namesLimit is how many (address, protocol, port) names may open at once.
	namesLimit = 8192
	// deniedLimit is how many different denials are counted at once.
	deniedLimit = 4096
	deniedTime  = time.Hour
	setChunk    = 1000 // elements in one message
)

// Registers of 32 bits, where a concatenated key is put together.
const reg0 = 8

func concatType(family int) nftables.SetDatatype {
	addr := nftables.TypeIPAddr
	if family == v6 {
		addr = nftables.TypeIP6Addr
	}
	return nftables.MustConcatSetType(addr, nftables.TypeInetProto, nftables.TypeInetService)
}

// key is a set's key: address, protocol, port, each padded to 32 bits.
func key(a netip.Addr, proto uint8, port uint16) []byte {
	b := append(a.AsSlice(), proto, 0, 0, 0)
	return append(binary.BigEndian.AppendUint16(b, port), 0, 0)
}

func unkey(b []byte) (a netip.Addr, proto uint8, port uint16, err error) {
	n := len(b) - 8
	if n != 4 && n != 16 {
		return a, 0, 0, errors.New("reading the packet filter: a key makes no sense")
	}
	a, _ = netip.AddrFromSlice(b[:n])
	return a, b[n], binary.BigEndian.Uint16(b[n+4:]), nil
}

func protoNumber(proto string) uint8 {
	if proto == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

func family(a netip.Addr) int {
	if a.Is4() {
		return v4
	}
	return v6
}

// newFilter makes a filter that lets nothing through: the router forwards from
// its start, and the sandbox is connected to it before there is a policy.
func newFilter() (*filter, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("opening the packet filter: %w", err)
	}
	f := &filter{conn: conn, table: conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "lazaret"})}
	f.closed()
	if err := conn.Flush(); err != nil {
		conn.CloseLasting()
		return nil, fmt.Errorf("closing the packet filter: %w", err)
	}
	return f, nil
}

// load makes a policy hold. Packets are let through only where it is whole: it
// is one transaction.
func (f *filter) load(p Policy, t Table, link, uplink string) error {
	for fam, suffix := range []string{"4", "6"} {
		typ := concatType(fam)
		f.ports[fam] = &nftables.Set{Table: f.table, Name: "ports" + suffix, KeyType: typ, Interval: true, Concatenation: true}
		f.names[fam] = &nftables.Set{Table: f.table, Name: "names" + suffix, KeyType: typ, Concatenation: true, HasTimeout: true, Size: namesLimit}
		f.denied[fam] = &nftables.Set{Table: f.table, Name: "denied" + suffix, KeyType: typ, Concatenation: true, HasTimeout: true, Dynamic: true, Size: deniedLimit}
		f.self[fam] = &nftables.Set{Table: f.table, Name: "self" + suffix, KeyType: []nftables.SetDatatype{nftables.TypeIPAddr, nftables.TypeIP6Addr}[fam]}
		for _, s := range []*nftables.Set{f.ports[fam], f.names[fam], f.denied[fam], f.self[fam]} {
			if err := f.conn.AddSet(s, nil); err != nil {
				return fmt.Errorf("loading the packet filter: %w", err)
			}
		}
	}
	f.chains(p, link, uplink)
	if err := f.conn.Flush(); err != nil {
		return fmt.Errorf("loading the packet filter: %w", err)
	}
	if err := f.loadPorts(t.Ports); err != nil {
		return fmt.Errorf("loading ports into the packet filter: %w", err)
	}
	return f.check(len(t.Ports))
}

func (f *filter) loadPorts(windows []Window) error {
	var elems [2][]nftables.SetElement
	for _, w := range windows {
		fam := family(w.First)
		n := protoNumber(w.Proto)
		elems[fam] = append(elems[fam], nftables.SetElement{Key: key(w.First, n, w.Port), KeyEnd: key(w.Last, n, w.Port)})
	}
	for fam := range elems {
		for len(elems[fam]) > 0 {
			n := min(setChunk, len(elems[fam]))
			if err := f.conn.SetAddElements(f.ports[fam], elems[fam][:n]); err != nil {
				return err
			}
			if err := f.conn.Flush(); err != nil {
				return err
			}
			elems[fam] = elems[fam][n:]
		}
	}
	return nil
}

// check reads the filter back.
func (f *filter) check(windows int) error {
	chains, err := f.conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return fmt.Errorf("reading back the packet filter: %w", err)
	}
	rules, drops := 0, 0
	for _, c := range chains {
		if c.Table.Name != f.table.Name {
			return fmt.Errorf("reading back the packet filter: there is another table, %s", c.Table.Name)
		}
		if c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
			drops++
		}
		got, err := f.conn.GetRules(f.table, c)
		if err != nil {
			return fmt.Errorf("reading back the packet filter: %w", err)
		}
		rules += len(got)
	}
	if drops != 2 || rules != f.rules {
		return fmt.Errorf("reading back the packet filter: %d rules and %d closed chains instead of %d and 2", rules, drops, f.rules)
	}
	n := 0
	for _, s := range f.ports {
		elems, err := f.conn.GetSetElements(s)
		if err != nil {
			return fmt.Errorf("reading back the packet filter: %w", err)
		}
		n += len(elems)
	}
	if n != windows {
		return fmt.Errorf("reading back the packet filter: %d ports instead of %d", n, windows)
	}
	return nil
}

// grant is an address that a name opened.
type grant struct {
	addr  netip.Addr
	proto string // tcp or udp
	port  uint16
}

// open lets the sandbox reach what a name stands for, for a while; what is
// open already gets the new time. Connections live on when it has passed.
func (f *filter) open(add, renew []grant, lifetime time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var old, elems [2][]nftables.SetElement
	for i, g := range append(append([]grant(nil), add...), renew...) {
		fam := family(g.addr)
		e := nftables.SetElement{Key: key(g.addr, protoNumber(g.proto), g.port), Timeout: lifetime}
		elems[fam] = append(elems[fam], e)
		if i >= len(add) {
			old[fam] = append(old[fam], e)
		}
	}
	for fam := range elems {
		if len(elems[fam]) == 0 {
			continue
		}
		// A time is not changed by adding again: taken out and put in, in one
		// transaction, there is no moment without. What has timed out cannot be
		// taken out, so it is put in first.
		if len(old[fam]) > 0 {
			if err := f.conn.SetAddElements(f.names[fam], old[fam]); err != nil {
				return err
			}
			if err := f.conn.SetDeleteElements(f.names[fam], old[fam]); err != nil {
				return err
			}
		}
		if err := f.conn.SetAddElements(f.names[fam], elems[fam]); err != nil {
			return err
		}
	}
	return f.conn.Flush()
}

// deny closes an address, whatever opened it.
func (f *filter) deny(a netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.conn.SetAddElements(f.self[family(a)], []nftables.SetElement{{Key: a.AsSlice()}}); err != nil {
		return err
	}
	return f.conn.Flush()
}

// denial is a counter of the filter.
type denial struct {
	addr  netip.Addr
	proto uint8
	port  uint16
}

// denials reads the counters.
func (f *filter) denials() (map[denial]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[denial]uint64{}
	for _, s := range f.denied {
		elems, err := f.conn.GetSetElements(s)
		if err != nil {
			return nil, err
		}
		for _, e := range elems {
			a, proto, port, err := unkey(e.Key)
			if err != nil {
				return nil, err
			}
			n := uint64(1)
			if e.Counter != nil {
				n = max(1, e.Counter.Packets)
			}
			out[denial{a, proto, port}] = n
		}
	}
	return out, nil
}

// rule adds a rule made of parts.
func (f *filter) rule(c *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	f.conn.AddRule(&nftables.Rule{Table: f.table, Chain: c, Exprs: all})
	f.rules++
}
