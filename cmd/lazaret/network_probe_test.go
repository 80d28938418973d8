package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// probeMain is what runs in the sandbox. It does what each line of its input
// says and answers with a line. What works is waited for, for long; where silence
// is what is wanted, TIME is how much of it.
//
//	tcp|udp ADDRESS [TIME]   works, refused (before that time was up) or silence
//	ping IP [TIME]
//	look NAME                addresses by the system's resolver, or no answer
//	ask SERVER NAME          the same by that server
//	raw                      whether raw and packet sockets can be had
//	listen ADDRESS           echoes there from now on
//	hold ADDRESS, say TEXT [TIME]  a connection that stays
//	pull ADDRESS, push ADDRESS  megabytes in a second
func probeMain() {
	var held net.Conn
	s := bufio.NewScanner(os.Stdin)
	for s.Scan() {
		f := strings.Fields(s.Text())
		start, most := time.Now(), 20*time.Second
		var err error
		if len(f) > 2 {
			if d, err := time.ParseDuration(f[2]); err == nil {
				most = d
			}
		}
		answer := ""
		switch f[0] {
		case "tcp":
			err = echoed(f[0], f[1], "hello "+f[1], most)
		case "udp":
			// One that is lost on the way is sent again.
			for err = os.ErrDeadlineExceeded; isTimeout(err) && time.Since(start) < most; {
				err = echoed(f[0], f[1], "hello "+f[1], min(most, 2*time.Second))
			}
		case "ping":
			err = pinged(f[1], most)
		case "look":
			answer, err = looked("", f[1])
		case "ask":
			answer, err = looked(f[1], f[2])
		case "raw":
			_, e1 := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
			_, e2 := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
			answer = fmt.Sprint(e1 == nil || e2 == nil)
		case "calls":
			answer = reachable()
		case "listen":
			var l net.Listener
			if l, err = net.Listen("tcp", f[1]); err == nil {
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						go func() { io.Copy(c, c); c.Close() }()
					}
				}()
			}
		case "hold":
			held, err = net.DialTimeout("tcp", f[1], most)
		case "say":
			held.SetDeadline(start.Add(most))
			if _, err = io.WriteString(held, f[1]); err == nil {
				_, err = io.ReadFull(held, make([]byte, len(f[1])))
			}
		case "pull", "push":
			answer, err = rate(f[0], f[1])
		default:
			answer = "what?"
		}
		if answer == "" {
			answer = verdict(err, time.Since(start), most)
		}
		fmt.Printf("%s: %s\n", s.Text(), answer)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout() || errors.Is(err, os.ErrDeadlineExceeded)
}

func verdict(err error, took, most time.Duration) string {
	switch {
	case err == nil:
		return "works"
	case isTimeout(err):
		return "silence"
	case took < most/2:
		return "refused"
	}
	return fmt.Sprintf("refused after %v: %v", took, err)
}

func looked(server, name string) (string, error) {
	r := &net.Resolver{PreferGo: true}
	most := 20 * time.Second
	if server != "" {
		most = 2 * time.Second // nobody is wanted there
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	addrs, err := r.LookupHost(ctx, name)
	if err != nil {
		return "no answer", nil
	}
	slices.Sort(addrs)
	return strings.Join(addrs, " "), nil
}

// pinged sends an echo request by a datagram socket, as ping does.
func pinged(addr string, most time.Duration) error {
	ip := net.ParseIP(addr)
	domain, proto, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	var to unix.Sockaddr
	if four := ip.To4(); four != nil {
		to = &unix.SockaddrInet4{Addr: [4]byte(four)}
	} else {
		domain, proto, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
		to = &unix.SockaddrInet6{Addr: [16]byte(ip)}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(most.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	if _, err := unix.Write(fd, []byte{kind, 0, 0, 0, 0, 0, 0, 1, 'h', 'i'}); err != nil {
		return err
	}
	b := make([]byte, 100)
	n, err := unix.Read(fd, b)
	if errors.Is(err, unix.EAGAIN) {
		return os.ErrDeadlineExceeded
	}
	if err == nil && n == 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// rate moves bytes for a second and gives megabits a second.
func rate(what, addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	start, total, buf := time.Now(), 0, make([]byte, 256<<10)
	for time.Since(start) < time.Second {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		n, err := 0, error(nil)
		if what == "pull" {
			n, err = c.Read(buf)
		} else {
			n, err = c.Write(buf)
		}
		if err != nil {
			return "", err
		}
		total += n
	}
	return fmt.Sprintf("%.0f", float64(total)*8/1e6/time.Since(start).Seconds()), nil
}
