package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"lazaret/launch"
)

// A world for sandboxes to talk to: two network namespaces inside podman's
// user namespace. In one, podman and its user-mode network run as on a host;
// the other is everything beyond it, where every address is somebody. Nothing
// leaves this machine.

// worldFile, in XDG_CONFIG_HOME, names the network namespace in which this
// test binary, when it is lazaret's helper, is to be.
const worldFile = "lazaret-test-netns"

// enterWorld starts the helper again in the world's host namespace.
func enterWorld() {
	if len(os.Args) < 2 || os.Args[1] != launch.HelperCommand || os.Getenv("LAZARET_TEST_ENTERED") != "" {
		return
	}
	path, err := os.ReadFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), worldFile))
	if err != nil {
		return
	}
	runtime.LockOSThread()
	fd, err := unix.Open(string(path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Setns(fd, unix.CLONE_NEWNET)
	}
	if err == nil {
		err = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "LAZARET_TEST_ENTERED=1"))
	}
	fmt.Fprintln(os.Stderr, "entering the test's world:", err)
	os.Exit(1)
}

// world is the test's end of worldMain.
type world struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
	mu  sync.Mutex
	ns  string
}

type worldAnswer struct {
	Out string
	Err string
}

// newWorld makes the world.
func newWorld(t *testing.T) *world {
	t.Helper()
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	// podman's network passes questions on to this machine's first name
	// server, so that is who answers in the world too.
	resolver := "127.0.0.53"
	for line := range strings.Lines(string(resolv)) {
		if w := strings.Fields(line); len(w) > 1 && w[0] == "nameserver" && strings.Contains(w[1], ".") {
			resolver = w[1]
			break
		}
	}
	self, err := exec.LookPath("lazaret-world")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cmd: exec.Command("podman", "unshare", self, resolver)}
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.in.Close(); w.cmd.Wait() })
	line, err := w.out.ReadString('\n')
	if err != nil {
		t.Fatalf("making the world: %v", err)
	}
	w.ns = strings.TrimSpace(line)
	return w
}

// do asks the world for something; see worldMain.
func (w *world) do(args ...string) (string, error) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := json.NewEncoder(w.in).Encode(args); err != nil {
		w.t.Fatal(err)
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	var a worldAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		w.t.Fatal(err)
	}
	if a.Err != "" {
		return a.Out, errors.New(a.Err)
	}
	return a.Out, nil
}

func (w *world) must(args ...string) string {
	w.t.Helper()
	out, err := w.do(args...)
	if err != nil {
		w.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

// worldMain is the world, inside podman's user namespace:
//
//	name NAME RECORD...   makes a name mean something: "60 A 192.0.2.1"
//	asked                 names that were asked for
//	got                   what arrived, a line each
//	echo ADDRESS TEXT     connects from the host and has TEXT echoed
//	run ARGV...           runs a program on the host
//	blackhole PID CIDR    adds a route to the namespace of a process
func worldMain() {
	w := &worldServer{names: map[string][]string{}}
	if err := w.make(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "making the world:", err)
		os.Exit(1)
	}
	fmt.Printf("/proc/%d/fd/%d\n", os.Getpid(), w.host)
	d := json.NewDecoder(os.Stdin)
	for {
		var args []string
		if d.Decode(&args) != nil {
			os.Exit(0)
		}
		out, err := w.do(args)
		a := worldAnswer{Out: out}
		if err != nil {
			a.Err = err.Error()
		}
		json.NewEncoder(os.Stdout).Encode(a)
	}
}

type worldServer struct {
	host, beyond int

	mu    sync.Mutex
	names map[string][]string
	asked []string
	got   []string
}

func (w *worldServer) do(args []string) (out string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch args[0] {
	case "name":
		w.names[args[1]] = args[2:]
	case "asked":
		return strings.Join(w.asked, "\n"), nil
	case "got":
		return strings.Join(w.got, "\n"), nil
	case "echo":
		err = in(w.host, func() error { return echoed("tcp", args[1], args[2], 10*time.Second) })
	case "run":
		err = in(w.host, func() error {
			w.mu.Unlock() // what it runs may be asking us
			defer w.mu.Lock()
			b, err := exec.Command(args[1], args[2:]...).CombinedOutput()
			out = string(b)
			return err
		})
	case "blackhole":
		var fd int
		if fd, err = unix.Open("/proc/"+args[1]+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return "", err
		}
		defer unix.Close(fd)
		err = in(fd, func() error {
			_, dst, err := net.ParseCIDR(args[2])
			if err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_BLACKHOLE})
		})
	default:
		err = fmt.Errorf("no such thing: %s", args[0])
	}
	return out, err
}

// in runs f in a network namespace, on a thread that is not used again.
func in(ns int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func freshNetns() (fd int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
	}()
	<-done
	return fd, err
}

func (w *worldServer) make(resolver string) (err error) {
	if w.host, err = freshNetns(); err != nil {
		return err
	}
	if w.beyond, err = freshNetns(); err != nil {
		return err
	}
	err = in(w.host, func() error {
		a := netlink.NewLinkAttrs()
		a.Name, a.MTU = "h0", 65520
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: "b0", PeerMTU: 65520, PeerNamespace: netlink.NsFd(w.beyond)}); err != nil {
			return err
		}
		// For the user-mode network to pass on echo requests.
		if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 65534"), 0); err != nil {
			return err
		}
		return errors.Join(configure("lo"), configure("h0", "100.64.9.2/24", "fd77::2/64"),
			route("h0", "0.0.0.0/0", "100.64.9.1"), route("h0", "::/0", "fd77::1"), localRoute("192.0.2.240/32"))
	})
	if err != nil {
		return err
	}
	err = in(w.beyond, func() error {
		return errors.Join(configure("lo"), configure("b0", "100.64.9.1/24", "fd77::1/64"),
			route("lo", "0.0.0.0/0", ""), route("lo", "::/0", ""), w.serve())
	})
	if err != nil {
		return err
	}
	ns := w.beyond
	if strings.HasPrefix(resolver, "127.") {
		ns = w.host
	}
	return in(ns, func() error { return w.serveNames(net.JoinHostPort(resolver, "53")) })
}

func configure(name string, cidrs ...string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, c := range cidrs {
		a, err := netlink.ParseAddr(c)
		if err != nil {
			return err
		}
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(l, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(l)
}

// route leads a range to a neighbour, or makes all of it this machine.
func route(name, cidr, via string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR(cidr)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst}
	if via != "" {
		r.Gw = net.ParseIP(via)
	} else {
		r.Type, r.Scope, r.Table = unix.RTN_LOCAL, netlink.SCOPE_HOST, unix.RT_TABLE_MAIN
	}
	return netlink.RouteAdd(r)
}

// localRoute makes the machine answer for addresses that no interface has.
func localRoute(cidr string) error {
	l, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR(cidr)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL})
}

// serve echoes at every address: TCP 22, 80, 443, 5432, and UDP 5000. TCP 9000
// sends as fast as it can, 9001 swallows.
func (w *worldServer) serve() error {
	for _, port := range []string{"22", "80", "443", "5432", "9000", "9001"} {
		l, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.arrived("tcp " + c.LocalAddr().String())
				go func() {
					defer c.Close()
					switch port {
					case "9000":
						io.Copy(c, zeros{})
					case "9001":
						n, _ := io.Copy(io.Discard, c)
						w.arrived("swallowed " + strconv.FormatInt(n, 10))
					default:
						io.Copy(c, c)
					}
				}()
			}
		}()
	}
	for _, network := range []string{"udp4", "udp6"} {
		c, err := net.ListenUDP(network, &net.UDPAddr{Port: 5000})
		if err != nil {
			return err
		}
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
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
				w.arrived("udp " + string(b[:n]))
				c.WriteMsgUDP(b[:n], oob[:m], from)
			}
		}()
	}
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func (w *worldServer) arrived(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, s)
}

func (w *worldServer) serveNames(at string) error {
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if out := w.answer(b[:n]); out != nil {
				c.WriteTo(out, from)
			}
		}
	}()
	return nil
}

func (w *worldServer) answer(msg []byte) []byte {
	var q dnsmessage.Message
	if q.Unpack(msg) != nil || len(q.Questions) != 1 {
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(q.Questions[0].Name.String(), "."))
	w.mu.Lock()
	records, known := w.names[name]
	w.asked = append(w.asked, name)
	w.mu.Unlock()
	a := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true}, Questions: q.Questions}
	if !known {
		a.RCode = dnsmessage.RCodeNameError
	}
	for _, r := range records {
		f := strings.Fields(r)
		ttl, _ := strconv.Atoi(f[0])
		h := dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: uint32(ttl)}
		ip := netip.MustParseAddr(f[2])
		switch {
		case f[1] == "A" && q.Questions[0].Type == dnsmessage.TypeA:
			a.Answers = append(a.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
		case f[1] == "AAAA" && q.Questions[0].Type == dnsmessage.TypeAAAA:
			a.Answers = append(a.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	out, err := a.Pack()
	if err != nil {
		return nil
	}
	return out
}

// echoed sends a text and hears it again.
func echoed(network, addr, text string, patience time.Duration) error {
	c, err := net.DialTimeout(network, addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != text {
		return fmt.Errorf("heard %q", b)
	}
	return nil
}
