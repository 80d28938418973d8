package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/internal/step"
)

// Publish leads ports of the host's loopback address into the sandbox. The
// helper listens, and connects from the router's end of the cable: nothing is
// opened towards the network, and it is the same for every uplink.
type Publish struct {
	Profile string
	Ports   []Port
	To      netip.Addr
	// Relay, with a port at its end, is the command that reaches a program
	// which listens on the sandbox's own loopback address; nil without.
	Relay   []string
	Environ []string
}

// RelayCommand is the hidden command that connects its standard input and
// output with a port of the loopback address, and relayPath where this program
// is in a sandbox that has ports.
const (
	RelayCommand = "port-relay"
	relayPath    = "/run/lazaret-port/lazaret"
)

// relaysAtOnce bounds the processes that connections start.
const relaysAtOnce = 16

// dialsAtOnce bounds the connections that the sandbox has not taken yet: each
// occupies a thread, and whoever can reach the loopback address can make them.
const dialsAtOnce = 64

// connectTime is how long the sandbox has to take a connection.
const connectTime = 5 * time.Second

// Do listens, and refuses a port that is taken.
func (o Publish) Do(_ context.Context, in step.Values) (step.Values, error) {
	pid, err := strconv.Atoi(in[pidValue])
	if err != nil {
		return nil, err
	}
	// A pid is used again, and every router has the same addresses: without
	// this, a port could one day lead into another sandbox.
	name, err := processName(pid)
	if err != nil {
		return nil, fmt.Errorf("finding the network sidecar: %w", err)
	}
	for _, p := range o.Ports {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p.Host))))
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, refuse(fmt.Sprintf("end what listens there, or write \"%d:%d\" with another first number in lazaret.toml", p.Host, p.Sandbox),
				"profiles.%s.ports: port %d of this machine is taken", o.Profile, p.Host)
		}
		if err != nil {
			return nil, fmt.Errorf("profiles.%s.ports: %w", o.Profile, err)
		}
		go o.serve(l, pid, name, p)
	}
	return nil, nil
}

// Show names the ports.
func (o Publish) Show() []string {
	var out []string
	for _, p := range o.Ports {
		out = append(out, "lead "+p.String())
		if o.Relay != nil {
			out = append(out, "where only its loopback address listens: "+shown(append(slices.Clone(o.Relay), strconv.Itoa(int(p.Sandbox)))...))
		}
	}
	return out
}

// serve goes on until the helper ends.
func (o Publish) serve(l net.Listener, pid int, name string, p Port) {
	relays, dials := make(chan struct{}, relaysAtOnce), make(chan struct{}, dialsAtOnce)
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files; the next may close some
			continue
		}
		select {
		case dials <- struct{}{}:
		default:
			c.Close()
			continue
		}
		go func() {
			defer c.Close()
			to, err := dialIn(pid, name, netip.AddrPortFrom(o.To, p.Sandbox))
			<-dials
			switch {
			case err == nil:
				defer to.Close()
				join(c.(*net.TCPConn), to.(*net.TCPConn))
			case errors.Is(err, unix.ECONNREFUSED) && o.Relay != nil:
				select {
				case relays <- struct{}{}:
					o.relay(c.(*net.TCPConn), p)
					<-relays
				default:
				}
			}
		}()
	}
}

// relay connects c with a program inside that carries on from there.
func (o Publish) relay(c *net.TCPConn, p Port) {
	f, err := c.File()
	if err != nil {
		return
	}
	defer f.Close()
	argv := append(slices.Clone(o.Relay), strconv.Itoa(int(p.Sandbox)))
	// Its failure is a connection that ends: what a port without a program is.
	proc.Output(context.Background(), proc.Cmd{Argv: argv, Env: o.Environ, Stdin: f, Stdout: f})
}

// dialIn connects from the namespace of the router.
func dialIn(pid int, name string, to netip.AddrPort) (c net.Conn, err error) {
	router, err := routerNetns(pid)
	if err != nil {
		return nil, err
	}
	defer unix.Close(router)
	if now, err := processName(pid); err != nil || now != name {
		return nil, errors.New("the network sidecar is gone")
	}
	err = inNetns(router, func() error {
		// A socket is of the namespace of the thread that made it.
		c, err = net.DialTimeout("tcp4", to.String(), connectTime)
		return err
	})
	return c, err
}

// join copies both ways until both have said that they are done.
func join(a, b *net.TCPConn) {
	var wg sync.WaitGroup
	for _, d := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		wg.Go(func() {
			if _, err := io.Copy(d[0], d[1]); err != nil && !errors.Is(err, os.ErrClosed) {
				a.Close()
				b.Close()
				return
			}
			d[0].CloseWrite()
		})
	}
	wg.Wait()
}
