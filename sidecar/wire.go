package sidecar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// The conversation is lines of words. The host sends a policy and then
// commands; the router sends events. Neither trusts the other: the router
// refuses a policy it does not understand whole, and to the host every event
// is text from an attacker.

const (
	policyHead = "policy 1"
	policyEnd  = "end"

	// Flush asks for what was denied up to now, answered by EventFlushed.
	Flush = "flush"
	// selfWord begins the command that adds an address to Policy.Self.
	selfWord = "self"
)

// Limits on what is read.
const (
	lineLimit  = 2048    // bytes
	ruleLimit  = 1 << 20 // lines of a policy
	portsLimit = 1 << 14 // allowed ranges with a port: what the packet filter's set takes
)

// SelfCommand is the line that denies one more address of the host.
func SelfCommand(a netip.Addr) string { return selfWord + " " + a.String() }

// WriteTo sends p.
func (p *Policy) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	b := bufio.NewWriter(c)
	line := func(words ...string) {
		b.WriteString(strings.Join(words, " "))
		b.WriteByte('\n')
	}
	line(policyHead)
	if p.Blackhole {
		line("blackhole")
	}
	if p.Open {
		line("open")
	}
	for _, e := range p.Allow {
		line("allow", e.Prefix.String(), e.Service.words())
	}
	for _, q := range p.Deny {
		line("deny", q.String())
	}
	for _, q := range p.Always {
		line("always", q.String())
	}
	for _, h := range p.Hosts {
		line("host", h.Name, h.Service.words())
	}
	for _, a := range p.Self {
		line(selfWord, a.String())
	}
	if p.Link.Router4.IsValid() {
		line("link", p.Link.Router4.String(), p.Link.Box4.String())
	}
	if p.Link.IPv6() {
		line("link", p.Link.Router6.String(), p.Link.Box6.String())
	}
	if p.Uplink6.Gateway.IsValid() {
		line("uplink", p.Uplink6.Address.String(), p.Uplink6.Gateway.String())
	}
	line(policyEnd)
	err := b.Flush()
	return c.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (s Service) words() string {
	proto := s.Proto
	if proto == "" {
		proto = "-"
	}
	return strconv.Itoa(int(s.Port)) + " " + proto
}

// ReadPolicy reads what WriteTo sent.
func ReadPolicy(r *bufio.Reader) (Policy, error) {
	var p Policy
	head, err := readLine(r)
	if err != nil {
		return p, err
	}
	if head != policyHead {
		return p, errors.New("reading the policy: it is of another version")
	}
	for n := 0; ; n++ {
		if n > ruleLimit {
			return p, errors.New("reading the policy: it has too many lines")
		}
		l, err := readLine(r)
		if err != nil {
			return p, err
		}
		if l == policyEnd {
			return p, p.check()
		}
		if err := p.add(strings.Split(l, " ")); err != nil {
			return p, fmt.Errorf("reading line %d of the policy: %w", n+2, err)
		}
	}
}

var errLine = errors.New("not a line of a policy")

func (p *Policy) add(w []string) (err error) {
	switch {
	case w[0] == "blackhole" && len(w) == 1:
		p.Blackhole = true
	case w[0] == "open" && len(w) == 1:
		p.Open = true
	case w[0] == "allow" && len(w) == 4:
		var e Endpoint
		if e.Prefix, err = parsePrefix(w[1]); err != nil {
			return err
		}
		e.Service, err = parseService(w[2], w[3])
		p.Allow = append(p.Allow, e)
	case w[0] == "deny" && len(w) == 2:
		err = addPrefix(&p.Deny, w[1])
	case w[0] == "always" && len(w) == 2:
		err = addPrefix(&p.Always, w[1])
	case w[0] == "host" && len(w) == 4:
		h := Host{Name: w[1]}
		if !listable(h.Name) {
			return errLine
		}
		h.Service, err = parseService(w[2], w[3])
		if err == nil && h.Port == 0 {
			return errLine
		}
		p.Hosts = append(p.Hosts, h)
	case w[0] == selfWord && len(w) == 2:
		var a netip.Addr
		if a, err = parseAddr(w[1]); err == nil {
			p.Self = append(p.Self, a)
		}
	case w[0] == "link" && len(w) == 3:
		err = p.Link.set(w[1], w[2])
	case w[0] == "uplink" && len(w) == 3:
		p.Uplink6.Address, err = netip.ParsePrefix(w[1])
		if err == nil {
			p.Uplink6.Gateway, err = parseAddr(w[2])
		}
		if err == nil && !(p.Uplink6.Address.Addr().Is6() && p.Uplink6.Gateway.Is6()) {
			return errLine
		}
	default:
		return errLine
	}
	return err
}

func (l *Link) set(router, box string) error {
	r, err := parseAddr(router)
	if err != nil {
		return err
	}
	b, err := parseAddr(box)
	if err != nil {
		return err
	}
	if r.Is4() != b.Is4() || r == b {
		return errLine
	}
	if r.Is4() {
		l.Router4, l.Box4 = r, b
		if !netip.PrefixFrom(r, linkBits4).Contains(b) {
			return errLine
		}
		return nil
	}
	l.Router6, l.Box6 = r, b
	if !netip.PrefixFrom(r, linkBits6).Contains(b) {
		return errLine
	}
	return nil
}

func (p *Policy) check() error {
	ports := 0
	for _, e := range p.Allow {
		if e.Port != 0 {
			ports++
		}
	}
	switch {
	case !p.Link.Router4.IsValid():
		return errors.New("reading the policy: it has no link")
	case ports > portsLimit:
		return fmt.Errorf("reading the policy: more than %d ranges with a port", portsLimit)
	}
	return nil
}

func addPrefix(list *[]netip.Prefix, s string) error {
	q, err := parsePrefix(s)
	if err == nil {
		*list = append(*list, q)
	}
	return err
}

// parsePrefix takes a range without bits behind its length, so that no two
// ranges mean the same.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, err
	}
	if p != p.Masked() {
		return p, errLine
	}
	return p, nil
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil && a.Zone() != "" {
		err = errLine
	}
	return a, err
}

func parseService(port, proto string) (s Service, err error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return s, err
	}
	s.Port = uint16(n)
	switch proto {
	case "-":
	case "tcp", "udp":
		if s.Port == 0 {
			return s, errLine
		}
		s.Proto = proto
	default:
		return s, errLine
	}
	return s, nil
}

// readLine reads one line of bounded length, without its end.
func readLine(r *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		if err == nil && len(b) == 0 && len(part) <= lineLimit {
			return string(part[:len(part)-1]), nil
		}
		b = append(b, part...)
		switch {
		case len(b) > lineLimit:
			return "", errors.New("reading: a line is too long")
		case err == nil:
			return string(b[:len(b)-1]), nil
		case err == io.EOF && len(b) > 0:
			return "", io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}
