package sidecar

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func newLines(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// settle gives packets time to arrive.
func (l *lab) settle() { time.Sleep(150 * time.Millisecond) }

func checksum(parts ...[]byte) uint16 {
	sum := uint32(0)
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// packet puts an IP header before a transport message whose checksum, at
// offset at, is filled in: at -1, it has none.
func packet(src, dst netip.Addr, proto byte, msg []byte, at int) []byte {
	if at >= 0 {
		pseudo := append(src.AsSlice(), dst.AsSlice()...)
		pseudo = append(pseudo, 0, proto, byte(len(msg)>>8), byte(len(msg)))
		binary.BigEndian.PutUint16(msg[at:], checksum(pseudo, msg))
	}
	if src.Is4() {
		h := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0}
		binary.BigEndian.PutUint16(h[2:], uint16(20+len(msg)))
		h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
		binary.BigEndian.PutUint16(h[10:], checksum(h))
		return append(h, msg...)
	}
	h := []byte{0x60, 0, 0, 0, byte(len(msg) >> 8), byte(len(msg)), proto, 255}
	h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	return append(h, msg...)
}

// sendFrame sends a UDP packet as a frame by the sandbox's interface.
func sendFrame(src, dst netip.Addr, port uint16, payload []byte) error {
	udp := binary.BigEndian.AppendUint16(nil, 4444)
	udp = binary.BigEndian.AppendUint16(udp, port)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(payload)))
	udp = append(append(udp, 0, 0), payload...)
	return transmit(src.Is4(), packet(src, dst, 17, udp, 6))
}

func sendAdvertisement() error {
	msg := []byte{134, 0, 0, 0, 64, 0x08, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0}
	// A prefix, so that the interface would get an address as well.
	msg = append(msg, 3, 4, 64, 0xc0, 0, 0, 0x70, 0x80, 0, 0, 0x70, 0x80, 0, 0, 0, 0)
	msg = append(msg, netip.MustParseAddr("2001:db8:bad::").AsSlice()...)
	return transmit(false, packet(netip.MustParseAddr("fe80::bad"), netip.MustParseAddr("ff02::1"), 58, msg, 2))
}

// transmit sends a packet to the router's own interface, past everything that
// the sandbox's kernel would do to it.
func transmit(v4 bool, packet []byte) error {
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	proto := uint16(unix.ETH_P_IPV6)
	if v4 {
		proto = unix.ETH_P_IP
	}
	mac, err := routerMAC()
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	frame := append(append(append([]byte(nil), mac...), eth0.Attrs().HardwareAddr...), byte(proto>>8), byte(proto))
	return unix.Sendto(fd, append(frame, packet...), 0, &unix.SockaddrLinklayer{Ifindex: eth0.Attrs().Index, Halen: 6})
}

// routerMAC is what the sandbox has learnt of its router.
func routerMAC() (net.HardwareAddr, error) {
	list, err := netlink.NeighList(0, unix.AF_INET)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.IP.String() == "198.19.255.253" && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr, nil
		}
	}
	return nil, unix.ENOENT
}
