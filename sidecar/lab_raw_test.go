package sidecar

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sniffed is a packet that came out at the uplink.
type sniffed struct {
	from netip.Addr
	what string // everything behind the header
}

// sniff collects what comes out at the uplink until stop.
func (l *lab) sniff() (stop func(want ...string) []sniffed) {
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8
	var fd int
	l.world.do(func() {
		link, err := netlink.LinkByName("w0")
		must(l.t, err)
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, all)
		must(l.t, err)
		must(l.t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Attrs().Index}))
		must(l.t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300000}))
	})
	return func(want ...string) (out []sniffed) {
		defer unix.Close(fd)
		b := make([]byte, 4096)
		came := func(w string) bool {
			return slices.ContainsFunc(out, func(s sniffed) bool { return strings.Contains(s.what, w) })
		}
		for end := time.Now().Add(patience); ; {
			n, from, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				if want = slices.DeleteFunc(want, came); len(want) > 0 && time.Now().Before(end) {
					continue
				}
				return out
			}
			if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			switch {
			case n >= 20 && b[0]>>4 == 4:
				out = append(out, sniffed{netip.AddrFrom4([4]byte(b[12:16])), string(b[20:n])})
			case n >= 40 && b[0]>>4 == 6:
				out = append(out, sniffed{netip.AddrFrom16([16]byte(b[8:24])), string(b[40:n])})
			}
		}
	}
}

// raw puts an IP header before anything.
func raw(src, dst string, proto byte, msg string) []byte {
	return packet(netip.MustParseAddr(src), netip.MustParseAddr(dst), proto, []byte(msg), -1)
}

// fragment makes of a raw IPv4 packet the part of packet id at offset*8.
func fragment(p []byte, id, offset uint16, more bool) []byte {
	if more {
		offset |= 1 << 13
	}
	binary.BigEndian.PutUint16(p[4:], id)
	binary.BigEndian.PutUint16(p[6:], offset)
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], checksum(p[:20]))
	return p
}

func udpTo(port uint16, text string) string {
	b := binary.BigEndian.AppendUint16([]byte{0x11, 0x5c}, port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	return string(b) + "\x00\x00" + text
}

// TestClosedBeforePolicy: the sandbox is connected to the router before that has
// a policy, and reaches nothing until it has.
func TestClosedBeforePolicy(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	l.policy.Allow = endpoints("192.0.2.0/28")
	l.hello()
	own, err := net.ListenPacket("udp4", "198.19.255.253:5000")
	must(t, err)
	defer own.Close()
	say := func(text string) (left, heard bool) {
		t.Helper()
		stop := l.sniff()
		l.box.do(func() {
			for _, a := range []string{"192.0.2.1:5000", "198.19.255.253:5000"} {
				c, err := net.Dial("udp4", a)
				must(t, err)
				defer c.Close()
				_, err = c.Write([]byte(text))
				must(t, err)
			}
		})
		left = slices.ContainsFunc(stop(), func(s sniffed) bool { return strings.Contains(s.what, text) })
		must(t, own.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, _, err := own.ReadFrom(make([]byte, 64))
		return left, err == nil
	}
	if left, heard := say("early"); left || heard {
		t.Errorf("without a policy: left by the uplink: %v, heard by the router: %v", left, heard)
	}
	l.load()
	if left, heard := say("allowed"); !left || heard {
		t.Errorf("with a policy: left by the uplink: %v, heard by the router: %v", left, heard)
	}
}

// TestFrames: whatever frames the sandbox makes up, nothing leaves for where it
// may not go, or with the sandbox's own address.
func TestFrames(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, true)
	l.policy.Always = prefixes(always)
	l.policy.Deny = prefixes([]string{"10.0.0.0/8", "2001:db8:5::/48"})
	l.policy.Allow = endpoints("192.0.2.0/28", "2001:db8::/48", "198.51.100.0/24 443", "2001:db8:9::/48 443")
	l.start()
	l.try("tcp", "192.0.2.1:80")
	l.try("tcp", "[2001:db8::1]:80")

	const box4, box6 = "198.19.255.254", "fd6c:617a::2"
	icmp6 := func(src, dst string, kind byte, text string) []byte {
		return packet(netip.MustParseAddr(src), netip.MustParseAddr(dst), unix.IPPROTO_ICMPV6,
			append([]byte{kind, 0, 0, 0, 0, 0, 0, 0}, text...), 2)
	}
	udp6 := func(dst string, port uint16, text string) string {
		p := packet(netip.MustParseAddr(box6), netip.MustParseAddr(dst), unix.IPPROTO_UDP, []byte(udpTo(port, text)), 6)
		return string(p[40:])
	}
	options := func(next byte, rest string) string { return string([]byte{next, 0, 1, 4, 0, 0, 0, 0}) + rest }
	whole := udpTo(5001, "........OK parts")
	cut := udpTo(22, "LEAK fragments to another port........")
	inner := string(raw("10.1.2.3", box4, unix.IPPROTO_UDP, udpTo(4444, "LEAK in an error")))
	frames := map[string][]byte{
		// These show that the rest could be seen.
		"OK udp":          raw(box4, "192.0.2.1", unix.IPPROTO_UDP, udpTo(5001, "OK udp")),
		"OK parts":        fragment(raw(box4, "192.0.2.1", unix.IPPROTO_UDP, whole[16:]), 1, 2, false),
		"the first part":  fragment(raw(box4, "192.0.2.1", unix.IPPROTO_UDP, whole[:16]), 1, 0, true),
		"OK echo":         icmp6(box6, "2001:db8::1", 128, "OK echo"),
		"OK options":      raw(box6, "2001:db8:9::1", 60, options(17, udp6("2001:db8:9::1", 443, "OK options"))),
		"sctp to a port":  raw(box4, "198.51.100.1", unix.IPPROTO_SCTP, "\x11\x5c\x01\xbb\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x14LEAK sctp"),
		"an unknown one":  raw(box4, "198.51.100.1", 253, "\x11\x5c\x01\xbbLEAK 253"),
		"gre":             raw(box4, "10.1.2.3", unix.IPPROTO_GRE, "\x00\x00\x08\x00LEAK gre"),
		"echo to a port":  raw(box4, "198.51.100.1", unix.IPPROTO_ICMP, "\x08\x00\x00\x00\x00\x01\x00\x01LEAK echo"),
		"first part":      fragment(raw(box4, "198.51.100.1", unix.IPPROTO_UDP, cut[:16]), 2, 0, true),
		"second part":     fragment(raw(box4, "198.51.100.1", unix.IPPROTO_UDP, cut[16:]), 2, 2, false),
		"a lone part":     fragment(raw(box4, "198.51.100.1", unix.IPPROTO_UDP, "LEAK a lone part"), 3, 2, false),
		"an error":        raw(box4, "10.1.2.3", unix.IPPROTO_ICMP, "\x03\x03\x00\x00\x00\x00\x00\x00"+inner),
		"broadcast":       raw(box4, "255.255.255.255", unix.IPPROTO_UDP, udpTo(53, "LEAK broadcast")),
		"a group":         raw(box4, "224.0.0.251", unix.IPPROTO_UDP, udpTo(5353, "LEAK group")),
		"the uplink's":    raw(box4, "10.0.2.255", unix.IPPROTO_UDP, udpTo(5353, "LEAK broadcast")),
		"denied options":  raw(box6, "2001:db8:5::1", 0, options(17, udp6("2001:db8:5::1", 443, "LEAK options"))),
		"another port":    raw(box6, "2001:db8:9::1", 60, options(17, udp6("2001:db8:9::1", 22, "LEAK options"))),
		"mapped":          raw(box6, "::ffff:10.1.2.3", unix.IPPROTO_UDP, udp6("::ffff:10.1.2.3", 443, "LEAK mapped")),
		"6to4":            raw(box6, "2002:a01:203::1", unix.IPPROTO_UDP, udp6("2002:a01:203::1", 443, "LEAK 6to4")),
		"spoofed solicit": icmp6("fd00::77", "2001:db8::1", 135, "LEAK spoofed"),
	}
	for _, dst := range []string{"2001:db8::1", "2001:db8:5::1", "2001:db8:9::1", "2001:db8:77::1"} {
		for kind := byte(130); kind <= 137; kind++ {
			frames["neighbours "+dst+string('0'+rune(kind%10))] = icmp6(box6, dst, kind, "LEAK neighbours")
		}
	}
	stop := l.sniff()
	l.box.do(func() {
		for what, p := range frames {
			if err := transmit(p[0]>>4 == 4, p); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	var ok []string
	for what := range frames {
		if strings.HasPrefix(what, "OK") {
			ok = append(ok, what)
		}
	}
	l.settle()
	got := stop(ok...)
	for _, s := range got {
		if strings.Contains(s.what, "LEAK") || s.from.String() == box4 || s.from.String() == box6 {
			t.Errorf("from %v: %q", s.from, s.what)
		}
	}
	for what := range frames {
		if strings.HasPrefix(what, "OK") && !slices.ContainsFunc(got, func(s sniffed) bool { return strings.Contains(s.what, what) }) {
			t.Errorf("%s did not arrive", what)
		}
	}
	if e := l.flush(); !slices.ContainsFunc(e, func(e Event) bool { return e.Proto == "47" }) {
		t.Errorf("reported %v", e)
	}
}
