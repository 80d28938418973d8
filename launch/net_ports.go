package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

// Publish leads ports of the host's loopback address into the sandbox. The
// helper listens, and connects from the router's end of the cable: nothing is
// opened towards the network, and it is the same for every uplink.
type Publish struct {
	Profile string
	Ports   []Port
	To      netip.Addr
}

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
	}
	return out
}

// serve goes on until the helper ends.
func (o Publish) serve(l net.Listener, pid int, name string, p Port) {
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files; the next may close some
			continue
		}
		go func() {
			defer c.Close()
			if to, err := dialIn(pid, name, netip.AddrPortFrom(o.To, p.Sandbox)); err == nil {
				defer to.Close()
				join(c.(*net.TCPConn), to.(*net.TCPConn))
			}
		}()
	}
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
