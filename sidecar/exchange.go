package sidecar

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// exchange asks the uplink's name servers, each twice, over UDP and where the
// answer does not fit over TCP.
func (f *forwarder) exchange(ctx context.Context, q dnsmessage.Question) (a found, err error) {
	err = errors.New("there is no name server")
	for range 2 {
		for _, s := range f.servers {
			a, err = f.exchangeWith(ctx, "udp", s, q)
			if err == nil && a.truncated {
				a, err = f.exchangeWith(ctx, "tcp", s, q)
			}
			if err == nil && a.rcode != dnsmessage.RCodeServerFailure {
				return a, nil
			}
		}
	}
	return a, err
}

func (f *forwarder) exchangeWith(ctx context.Context, network string, server netip.Addr, q dnsmessage.Question) (a found, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	// A socket of its own for each question: its port is part of the secret
	// that a forger has to guess. Bound to the uplink, so that no route the
	// sandbox might bring about can lead the question to it.
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), f.router.up.name) })
		return errors.Join(cerr, err)
	}}
	c, err := d.DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
	if err != nil {
		return a, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	var id [2]byte
	rand.Read(id[:])
	n := binary.BigEndian.Uint16(id[:])
	msg, err := ask(n, q)
	if err != nil {
		return a, err
	}
	if network == "tcp" {
		if err := writeStream(c, msg); err != nil {
			return a, err
		}
		msg, err := readStream(c)
		if err != nil {
			return a, err
		}
		return parseAnswer(msg, n, q)
	}
	if _, err := c.Write(msg); err != nil {
		return a, err
	}
	b := make([]byte, 4096)
	for {
		m, err := c.Read(b)
		if err != nil {
			return a, err
		}
		// Somebody who guesses may send many wrong answers before the right one.
		if a, err := parseAnswer(b[:m], n, q); err == nil {
			return a, nil
		}
	}
}
