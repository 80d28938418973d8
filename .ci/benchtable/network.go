package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const transferBytes = "268435456"

// pourer takes and gives bytes by TCP, on an address of this machine that
// sandboxes reach.
func (b *bench) pourer() (address string, err error) {
	// Nothing is sent: it only asks for the way out.
	way, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return "", fmt.Errorf("this machine has no address but its loopback's: %w", err)
	}
	host := way.LocalAddr().(*net.UDPAddr).IP
	way.Close()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: host})
	if err != nil {
		return "", err
	}
	b.later(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pourTCP(c)
		}
	}()
	return l.Addr().String(), nil
}

// pourTCP serves one transfer: "up 100\n" and 100 bytes, answered by one, or
// "down 100\n", answered by 100.
func pourTCP(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 256<<10)
	var verb string
	var n int64
	line, err := in.ReadString('\n')
	if err != nil {
		return // only connected
	}
	if _, err := fmt.Sscan(line, &verb, &n); err != nil {
		return
	}
	buf := make([]byte, 256<<10)
	if verb == "up" {
		io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.LimitReader(in, n)}, buf)
		c.Write([]byte{1})
		return
	}
	for ; n > 0; n -= int64(len(buf)) {
		if _, err := c.Write(buf[:min(n, int64(len(buf)))]); err != nil {
			return
		}
	}
}

// plain is an agent in the workspace's image on podman's own network.
func (w *workspace) plain(ctx context.Context, options ...string) (*agent, error) {
	cmd, err := w.podman(ctx, append([]string{"-i", "-v", w.tools() + ":/bench:ro"}, options...), insideAgent...)
	if err != nil {
		return nil, err
	}
	return w.agent(cmd)
}

// reaching is a profile whose network has that one address, and not the ranges.
func reaching(address string, deny []netip.Prefix) profile {
	host, port, _ := net.SplitHostPort(address)
	half := len(deny) / 2
	return profile{
		network: fmt.Sprintf("default_allow = [%q]\ndefault_deny = [%s]", host+"/32:"+port, quoted(deny[:half])),
		more:    fmt.Sprintf("[network]\ndefault_deny = [%s]\n", quoted(deny[half:])),
	}
}

func quoted(all []netip.Prefix) string {
	var out []string
	for _, p := range all {
		out = append(out, strconv.Quote(p.String()))
	}
	return strings.Join(out, ",")
}

func prepareTCP(ctx context.Context, b *bench, wanted func(string) bool, missing map[string]string) ([]side, error) {
	address, err := b.pourer()
	if err != nil {
		for _, s := range []string{"up routed", "up plain", "down routed", "down plain"} {
			missing[s] = err.Error()
		}
		return nil, nil
	}
	w, err := b.newWorkspace(ctx, "tcp", reaching(address, nil))
	if err != nil {
		return nil, err
	}
	routed, err := b.agent(w.launch(ctx, insideAgent...))
	if err != nil {
		return nil, err
	}
	plain, err := w.plain(ctx)
	if err != nil {
		return nil, err
	}
	transfers := func(a *agent, verb string) func() (float64, error) {
		return func() (float64, error) { return a.ask(verb, address, transferBytes) }
	}
	return among([]side{
		{"up routed", transfers(routed, "up")}, {"up plain", transfers(plain, "up")},
		{"down routed", transfers(routed, "down")}, {"down plain", transfers(plain, "down")},
	}, wanted), nil
}

const manyRanges = 100_000

// ranges are every other /28 of 16.0.0.0/4.
func ranges(n int) (out []netip.Prefix) {
	for i := range n {
		a := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x10000000+uint32(i)*32)))
		out = append(out, netip.PrefixFrom(a, 28))
	}
	return out
}

func prepareConnect(ctx context.Context, b *bench, _ func(string) bool, missing map[string]string) ([]side, error) {
	address, err := b.pourer()
	if err != nil {
		missing["connect many"], missing["connect one"] = err.Error(), err.Error()
		return nil, nil
	}
	var sides []side
	for series, n := range map[string]int{"connect many": manyRanges, "connect one": 1} {
		w, err := b.newWorkspace(ctx, strings.ReplaceAll(series, " ", "-"), reaching(address, ranges(n)))
		if err != nil {
			return nil, err
		}
		a, err := b.agent(w.launch(ctx, insideAgent...))
		if err != nil {
			return nil, err
		}
		sides = append(sides, side{series, func() (float64, error) { return a.ask("connect", address) }})
	}
	return sides, nil
}
