package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

const insideVar = "LAZARET_SIDECAR_LAB"

// inLab runs the test again in namespaces of its own, where it is root and
// nothing it does touches this machine, and tells whether it is there.
func inLab(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVar) == "1" {
		return true
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.timeout=120s", "-test.count=1"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in the lab: %v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
	return false
}

// netns is a network namespace of the lab.
type netns int

// do runs f in the namespace, on a thread that is thrown away after.
func (n netns) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Setns(int(n), unix.CLONE_NEWNET); err != nil {
			panic(err)
		}
		f()
	}()
	<-done
}

func newNetns() netns {
	ch := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			panic(err)
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		ch <- fd
	}()
	return netns(<-ch)
}

// lab is a sandbox without gVisor (box), a router (this process's own
// namespace) and a world in which every address is somebody.
type lab struct {
	t          *testing.T
	box, world netns
	policy     Policy
	conn       net.Conn
	lines      *bufio.Reader
	ended      chan error
	hits       *hits
	names      *nameServer
}

// hits counts what arrived in the world, by what was sent.
type hits struct {
	mu sync.Mutex
	m  map[string]int
}

func (h *hits) add(s string) { h.mu.Lock(); defer h.mu.Unlock(); h.m[s]++ }

func (h *hits) get(s string) int { h.mu.Lock(); defer h.mu.Unlock(); return h.m[s] }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func endpoint(s string) Endpoint {
	w := strings.Split(s, " ")
	e := Endpoint{Prefix: prefix(w[0])}
	if len(w) > 1 {
		var proto string
		num, proto, _ := strings.Cut(w[1], "/")
		e.Proto = proto
		fmt.Sscan(num, &e.Port)
	}
	return e
}

var labLink = Link{
	Router4: netip.MustParseAddr("198.19.255.253"), Box4: netip.MustParseAddr("198.19.255.254"),
	Router6: netip.MustParseAddr("fd6c:617a::1"), Box6: netip.MustParseAddr("fd6c:617a::2"),
}

func setAddr(t *testing.T, link, cidr string) {
	t.Helper()
	l, err := netlink.LinkByName(link)
	must(t, err)
	a, err := netlink.ParseAddr(cidr)
	must(t, err)
	a.Flags = unix.IFA_F_NODAD
	must(t, netlink.AddrAdd(l, a))
	must(t, netlink.LinkSetUp(l))
}

func setRoute(t *testing.T, link, dst, via string, typ int) {
	t.Helper()
	l, err := netlink.LinkByName(link)
	must(t, err)
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Type: typ}
	_, r.Dst, err = net.ParseCIDR(dst)
	must(t, err)
	if via != "" {
		r.Gw = net.ParseIP(via)
	}
	if typ == unix.RTN_LOCAL {
		r.Scope = netlink.SCOPE_HOST
		r.Table = unix.RT_TABLE_MAIN
	}
	must(t, netlink.RouteAdd(r))
}

func veth(t *testing.T, here, there string, ns netns) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = here
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: there, PeerNamespace: netlink.NsFd(int(ns))}))
}

func up(t *testing.T, name string) {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	must(t, netlink.LinkSetUp(l))
}

func writeSysctl(t *testing.T, name, value string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(procSys, name), []byte(value), 0o644))
}

// newLab builds the three namespaces; six says whether the uplink has IPv6.
func newLab(t *testing.T, six bool) *lab {
	l := &lab{t: t, box: newNetns(), world: newNetns(), hits: &hits{m: map[string]int{}}, ended: make(chan error, 1)}
	up(t, "lo")
	veth(t, "up0", "w0", l.world)
	veth(t, "lan0", "eth0", l.box)
	for k, v := range LinkSysctls("lan0", six) {
		writeSysctl(t, k, v)
	}
	for k, v := range Sysctls() {
		writeSysctl(t, k, v)
	}
	setAddr(t, "up0", "10.0.2.15/24")
	setRoute(t, "up0", "0.0.0.0/0", "10.0.2.2", unix.RTN_UNICAST)
	setAddr(t, "lan0", "198.19.255.253/30")
	if six {
		setAddr(t, "lan0", "fd6c:617a::1/64")
	}
	l.world.do(func() {
		up(t, "lo")
		setAddr(t, "w0", "10.0.2.2/24")
		setAddr(t, "w0", "10.0.2.3/24")
		setAddr(t, "w0", "10.0.2.9/24")
		setAddr(t, "w0", "fd00::2/64")
		setRoute(t, "lo", "0.0.0.0/0", "", unix.RTN_LOCAL)
		setRoute(t, "lo", "::/0", "", unix.RTN_LOCAL)
	})
	l.box.do(func() {
		up(t, "lo")
		setAddr(t, "eth0", "198.19.255.254/30")
		setRoute(t, "eth0", "0.0.0.0/0", "198.19.255.253", unix.RTN_UNICAST)
		setAddr(t, "eth0", "fd6c:617a::2/64")
		setRoute(t, "eth0", "::/0", "fd6c:617a::1", unix.RTN_UNICAST)
	})
	l.world.do(func() { l.serveWorld() })
	l.policy.Link = labLink
	if six {
		l.policy.Uplink6 = Uplink6{Address: prefix("fd00::f/128"), Gateway: netip.MustParseAddr("fd00::2")}
		l.policy.Uplink6.Address = netip.MustParsePrefix("fd00::f/64")
	} else {
		l.policy.Link.Router6, l.policy.Link.Box6 = netip.Addr{}, netip.Addr{}
	}
	return l
}

// serveWorld listens on every address: TCP 80, 443 and 5432, UDP 53 and 5000,
// and the uplink's name server.
func (l *lab) serveWorld() {
	for _, port := range []string{"22", "80", "443", "5432"} {
		ln, err := net.Listen("tcp", "[::]:"+port)
		must(l.t, err)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					l.hits.add("tcp " + c.LocalAddr().String())
					io.Copy(c, c)
				}()
			}
		}()
	}
	for _, port := range []int{5000, 5001} {
		for _, network := range []string{"udp4", "udp6"} {
			c, err := net.ListenUDP(network, &net.UDPAddr{Port: port})
			must(l.t, err)
			raw, err := c.SyscallConn()
			must(l.t, err)
			raw.Control(func(fd uintptr) {
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
			})
			go func() {
				b, oob := make([]byte, 2048), make([]byte, 256)
				for {
					n, m, _, from, err := c.ReadMsgUDP(b, oob)
					if err != nil {
						return
					}
					l.hits.add("udp " + string(b[:n]))
					// The control message names the address that was asked.
					c.WriteMsgUDP(b[:n], oob[:m], from)
				}
			}()
		}
	}
	l.names = &nameServer{t: l.t, zone: map[string]func(dnsmessage.Type) []string{}}
	l.names.serve("10.0.2.3:53")
}

// start runs the router with the lab's policy and waits until it is ready.
func (l *lab) start() Event {
	l.t.Helper()
	l.hello()
	return l.load()
}

// hello runs the router until it waits for its policy.
func (l *lab) hello() {
	l.t.Helper()
	dir := l.t.TempDir()
	resolv := filepath.Join(dir, "resolv.conf")
	must(l.t, os.WriteFile(resolv, []byte("nameserver 127.0.0.53\nnameserver 10.0.2.3\n"), 0o644))
	a, b := socketPair(l.t)
	ctx, cancel := context.WithCancel(context.Background())
	l.t.Cleanup(cancel)
	go func() { l.ended <- Run(ctx, a, Options{Link: "lan0", ResolvConf: resolv}) }()
	l.conn, l.lines = b, bufio.NewReader(b)
	if e := l.event(); e.Kind != EventHello || e.Uplink != "up0" || e.MTU != 1500 {
		l.t.Fatalf("got %v", e)
	}
}

// load gives the router its policy.
func (l *lab) load() Event {
	l.t.Helper()
	_, err := l.policy.WriteTo(l.conn)
	must(l.t, err)
	e := l.event()
	if e.Kind != EventReady {
		l.t.Fatalf("got %v %s", e, e.Text)
	}
	return e
}

func socketPair(t *testing.T) (net.Conn, net.Conn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	var out [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		out[i], err = net.FileConn(f)
		must(t, err)
		f.Close()
	}
	return out[0], out[1]
}

func (l *lab) event() Event {
	l.t.Helper()
	l.conn.SetReadDeadline(time.Now().Add(time.Minute))
	e, err := ReadEvent(l.lines)
	if err != nil {
		l.t.Fatalf("reading an event: %v", err)
	}
	return e
}

// flush gives everything that was reported and not read yet.
func (l *lab) flush() (out []Event) {
	l.t.Helper()
	_, err := io.WriteString(l.conn, Flush+"\n")
	must(l.t, err)
	for {
		e := l.event()
		if e.Kind == EventFlushed {
			return out
		}
		out = append(out, e)
	}
}

// Outcomes of a try.
const (
	works   = "works"
	refused = "refused" // at once
	silence = "silence"
)

// outcome tells what became of a try that took that long.
func outcome(err error, took time.Duration) string {
	var timeout net.Error
	switch {
	case err == nil:
		return works
	case errors.As(err, &timeout) && timeout.Timeout():
		return silence
	case took < patience/2:
		return refused
	}
	return "refused late: " + err.Error()
}

// patience is for what answers, and silenceTime for what must not.
const (
	patience    = 20 * time.Second
	silenceTime = 700 * time.Millisecond
)

// try connects from the box and has something echoed: "tcp", "udp" or "ping".
func (l *lab) try(network, addr string) (got string) { return l.tryFor(network, addr, patience) }

func (l *lab) tryFor(network, addr string, most time.Duration) (got string) {
	l.box.do(func() {
		start := time.Now()
		var err error
		if network == "ping" {
			err = ping(netip.MustParseAddr(addr), most)
		} else {
			err = echo(network, addr, most)
		}
		got = outcome(err, time.Since(start))
	})
	return got
}

func echo(network, addr string, most time.Duration) error {
	c, err := net.DialTimeout(network, addr, most)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(most))
	if _, err := c.Write([]byte("hello " + addr)); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	if err == nil && string(b[:n]) != "hello "+addr {
		return fmt.Errorf("heard %q", b[:n])
	}
	return err
}

// ping sends an echo request by a raw socket, and hears an answer or an error.
func ping(a netip.Addr, most time.Duration) error {
	domain, proto, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	var sa unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte(a.AsSlice()[:4])}
	if a.Is6() {
		domain, proto, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
		sa = &unix.SockaddrInet6{Addr: a.As16()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sa); err != nil {
		return err
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	wait := unix.NsecToTimeval(most.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	msg := []byte{kind, 0, 0, 0, 1, 2, 0, 3, 'h', 'i'}
	if domain == unix.AF_INET {
		sum := uint32(0)
		for i := 0; i < len(msg); i += 2 {
			sum += uint32(msg[i])<<8 | uint32(msg[i+1])
		}
		sum = sum>>16 + sum&0xffff
		msg[2], msg[3] = byte(^sum>>8), byte(^sum)
	}
	if _, err := unix.Write(fd, msg); err != nil {
		return err
	}
	b := make([]byte, 1500)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EAGAIN {
			return os.ErrDeadlineExceeded
		}
		if err != nil {
			return err
		}
		if strings.Contains(string(b[:n]), "hi") {
			return nil
		}
	}
}

// nameServer is the uplink's.
type nameServer struct {
	t    *testing.T
	mu   sync.Mutex
	zone map[string]func(dnsmessage.Type) []string // "A 1.2.3.4", "AAAA ::1", "CNAME x.", "TXT …", each with " TTL" first
	log  []string
	raw  []string // names as they were written
}

// set makes a name mean something: "60 A 192.0.2.1", "5 CNAME other.".
func (s *nameServer) set(name string, records ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[name] = func(dnsmessage.Type) []string { return records }
}

func (s *nameServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *nameServer) serve(at string) {
	udp, err := net.ListenPacket("udp", at)
	must(s.t, err)
	tcp, err := net.Listen("tcp", at)
	must(s.t, err)
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			if out := s.answer(b[:n], 1232); out != nil {
				udp.WriteTo(out, from)
			}
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			msg, err := readStream(c)
			if err == nil {
				writeStream(c, s.answer(msg, 65535))
			}
			c.Close()
		}
	}()
}

func (s *nameServer) answer(msg []byte, limit int) []byte {
	q, _, ok := parseQuery(msg)
	if !ok {
		return nil
	}
	s.mu.Lock()
	s.raw = append(s.raw, q.question.Name.String())
	s.log = append(s.log, q.name+" "+strings.TrimPrefix(q.question.Type.String(), "Type"))
	s.mu.Unlock()
	r := reply{rcode: dnsmessage.RCodeNameError}
	name := q.name
	for range 20 {
		s.mu.Lock()
		f, ok := s.zone[name]
		s.mu.Unlock()
		if !ok {
			break
		}
		r.rcode = dnsmessage.RCodeSuccess
		alias := ""
		for _, rec := range f(q.question.Type) {
			w := strings.SplitN(rec, " ", 3)
			h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name + "."), Class: dnsmessage.ClassINET}
			fmt.Sscan(w[0], &h.TTL)
			var body dnsmessage.ResourceBody
			switch w[1] {
			case "A":
				h.Type, body = dnsmessage.TypeA, &dnsmessage.AResource{A: netip.MustParseAddr(w[2]).As4()}
			case "AAAA":
				h.Type, body = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(w[2]).As16()}
			case "CNAME":
				h.Type, body = dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(w[2])}
				alias = lower(w[2])
			case "TXT":
				h.Type, body = dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: []string{w[2]}}
			}
			if h.Type == q.question.Type || h.Type == dnsmessage.TypeCNAME {
				r.resources = append(r.resources, dnsmessage.Resource{Header: h, Body: body})
			}
		}
		if alias == "" {
			break
		}
		name = alias
	}
	out, err := q.pack(r, limit)
	if err != nil {
		panic(err)
	}
	return out
}

// lookup asks the router from the box, and gives rcode and addresses.
func (l *lab) lookup(network, name string, kind dnsmessage.Type, size int) (got string) {
	l.box.do(func() { got = askFor(network, "198.19.255.253:53", name, kind, size) })
	return got
}

func askFor(network, server, name string, kind dnsmessage.Type, size int) string {
	n, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return err.Error()
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	if size > 0 {
		r := optResource()
		r.Header.Class = dnsmessage.Class(size)
		m.Additionals = append(m.Additionals, r)
	}
	msg, err := m.Pack()
	if err != nil {
		return err.Error()
	}
	c, err := net.DialTimeout(network, server, patience)
	if err != nil {
		return "no answer"
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	b := make([]byte, 65535)
	if network == "tcp" {
		if err := writeStream(c, msg); err != nil {
			return "no answer"
		}
		if b, err = readStream(c); err != nil {
			return "no answer"
		}
	} else {
		c.Write(msg)
		n, err := c.Read(b)
		if err != nil {
			return "no answer"
		}
		b = b[:n]
	}
	var a dnsmessage.Message
	if err := a.Unpack(b); err != nil {
		return err.Error()
	}
	// Resolvers take no answer to a question in other letters.
	if len(a.Questions) != 1 || a.Questions[0] != m.Questions[0] {
		return fmt.Sprintf("another question: %v", a.Questions)
	}
	out := []string{strings.TrimPrefix(a.RCode.String(), "RCode")}
	if a.Truncated {
		out = append(out, "truncated")
	}
	for _, r := range a.Answers {
		if ip, ok := addressOf(r); ok {
			out = append(out, ip.String())
		} else {
			out = append(out, strings.TrimPrefix(r.Header.Type.String(), "Type"))
		}
	}
	return strings.Join(out, " ")
}

// routerFilter is another handle on the router's packet filter.
func (l *lab) routerFilter() *filter {
	l.t.Helper()
	conn, err := nftables.New(nftables.AsLasting())
	must(l.t, err)
	f := &filter{conn: conn, table: &nftables.Table{Family: nftables.TableFamilyINet, Name: "lazaret"}}
	for fam, suffix := range []string{"4", "6"} {
		for name, set := range map[string]**nftables.Set{"names": &f.names[fam], "denied": &f.denied[fam], "self": &f.self[fam]} {
			*set, err = conn.GetSetByName(f.table, name+suffix)
			must(l.t, err)
		}
		f.names[fam].HasTimeout = true
	}
	return f
}

// session is a connection that stays.
type session struct{ net.Conn }

func openSession(t *testing.T, addr string) *session {
	c, err := net.DialTimeout("tcp", addr, patience)
	must(t, err)
	return &session{c}
}

func (s *session) say(text string) error {
	s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Write([]byte(text)); err != nil {
		return err
	}
	_, err := io.ReadFull(s, make([]byte, len(text)))
	return err
}

// stop ends the router and takes away what it made in this namespace, as the
// end of the namespace does elsewhere.
func (l *lab) stop() {
	l.t.Helper()
	l.conn.Close()
	must(l.t, <-l.ended)
	c, err := nftables.New()
	must(l.t, err)
	c.FlushRuleset()
	must(l.t, c.Flush())
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := netlink.RuleList(family)
		must(l.t, err)
		for _, r := range rules {
			if r.Table == policyTable || r.Table == grantTable {
				must(l.t, netlink.RuleDel(&r))
			}
		}
		for _, table := range []int{policyTable, grantTable} {
			routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
			must(l.t, err)
			for _, r := range routes {
				must(l.t, netlink.RouteDel(&r))
			}
		}
	}
}
