package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"lazaret/launch"
)

// ears listen on this machine's own addresses for what no sandbox may reach.
type ears struct {
	port  int
	addrs []netip.Addr // in the order in which they were found, loopback first

	mu    sync.Mutex
	heard []string
	all   []interface{ Close() error }
}

// listen opens a port of every address, the same one where it can be had.
// Whoever connects from another machine is sent away and not counted.
func listen(socket string) (*ears, error) {
	own, err := launch.HostAddresses()
	if err != nil {
		return nil, err
	}
	e := &ears{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.port = l.Addr().(*net.TCPAddr).Port
	e.tcp(l)
	u, err := net.Listen("unix", socket)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("listening in the workspace: %w", err)
	}
	e.tcp(u)
	for _, a := range own {
		if a.IsLoopback() || a.IsLinkLocalUnicast() {
			continue
		}
		at := net.JoinHostPort(a.String(), strconv.Itoa(e.port))
		if l, err := net.Listen("tcp", at); err == nil {
			e.tcp(l)
			e.addrs = append(e.addrs, a)
		}
		if c, err := net.ListenPacket("udp", at); err == nil {
			e.udp(c)
		}
	}
	return e, nil
}

// here tells whether an address is this machine's: a sandbox's traffic comes
// from one, by way of podman's own network.
func (e *ears) here(a net.Addr) bool {
	to, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return false
	}
	own, err := launch.HostAddresses()
	if err != nil {
		return true
	}
	ip := to.Addr().Unmap()
	if ip.IsLoopback() {
		return true
	}
	for _, o := range own {
		if o == ip {
			return true
		}
	}
	return false
}

func (e *ears) tcp(l net.Listener) {
	e.all = append(e.all, l)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, unix := c.(*net.UnixConn); unix || e.here(c.RemoteAddr()) {
				e.note(l.Addr().Network() + " " + l.Addr().String())
				c.Write([]byte("here"))
			}
			c.Close()
		}
	}()
}

func (e *ears) udp(c net.PacketConn) {
	e.all = append(e.all, c)
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if e.here(from) {
				e.note("udp " + c.LocalAddr().String())
				c.WriteTo([]byte("here"), from)
			}
		}
	}()
}

func (e *ears) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.heard) < 20 {
		e.heard = append(e.heard, "reached this machine: "+what)
	}
}

// taken gives what was heard since it was asked last.
func (e *ears) taken() []string {
	time.Sleep(5 * time.Millisecond) // for what is being accepted
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.heard
	e.heard = nil
	return out
}

func (e *ears) close() {
	for _, c := range e.all {
		c.Close()
	}
}
