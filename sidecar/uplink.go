package sidecar

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// uplink is the router's way to the world: podman's default network.
type uplink struct {
	name   string
	index  int
	mtu    int
	v4, v6 gateway        // v6.link is 0 without IPv6
	own    []netip.Prefix // its subnets
}

// findUplink finds the interface that the default route leaves by.
func findUplink() (uplink, error) {
	var u uplink
	gw, ok, err := defaultGateway(unix.AF_INET, 0)
	if err != nil {
		return u, err
	}
	if !ok {
		return u, errors.New("looking for the uplink: there is no default route")
	}
	u.v4, u.index = gw, gw.link
	link, err := netlink.LinkByIndex(u.index)
	if err != nil {
		return u, fmt.Errorf("looking for the uplink: %w", err)
	}
	u.name, u.mtu = link.Attrs().Name, link.Attrs().MTU
	return u, nil
}

// addresses finds the uplink's addresses, after giving it those it was meant
// to have. What serves the router itself there is the router's alone, so it is
// denied one by one: a narrow range that is allowed by chance must not lead to
// a name server that answers everything.
func (u *uplink) addresses(six Uplink6, ipv6 bool, servers []netip.Addr) error {
	link, err := netlink.LinkByIndex(u.index)
	if err != nil {
		return fmt.Errorf("looking at the uplink: %w", err)
	}
	u.v6 = gateway{family: unix.AF_INET6}
	if six.Gateway.IsValid() {
		if err := giveIPv6(link, six); err != nil {
			return fmt.Errorf("giving the uplink its IPv6 address: %w", err)
		}
		u.v6.link, u.v6.via = u.index, six.Gateway
	} else if gw, ok, err := defaultGateway(unix.AF_INET6, u.index); ipv6 && err == nil && ok {
		u.v6 = gw
	}
	list, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("looking at the uplink: %w", err)
	}
	for _, a := range list {
		p := prefixOf(a.IPNet)
		u.own = append(u.own, p.Masked())
	}
	for _, a := range append([]netip.Addr{u.v4.via, u.v6.via}, servers...) {
		// A name server elsewhere may be more than that, a machine to reach.
		if slices.ContainsFunc(u.own, func(p netip.Prefix) bool { return p.Contains(a) }) {
			u.own = append(u.own, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return nil
}

func giveIPv6(link netlink.Link, six Uplink6) error {
	addr := &netlink.Addr{
		IPNet: &net.IPNet{IP: six.Address.Addr().AsSlice(), Mask: net.CIDRMask(six.Address.Bits(), 128)},
		// Nobody else is there to have the address already.
		Flags: unix.IFA_F_NODAD,
	}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: six.Gateway.AsSlice(), Family: unix.AF_INET6,
		Dst: &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}, Priority: 1})
}

// defaultGateway finds the default route of the main table, of one interface
// or of any.
func defaultGateway(family, link int) (gateway, bool, error) {
	routes, err := netlink.RouteList(nil, family)
	if err != nil {
		return gateway{}, false, fmt.Errorf("looking for the default route: %w", err)
	}
	for _, r := range routes {
		if r.Table != unix.RT_TABLE_MAIN || r.Type != unix.RTN_UNICAST || link != 0 && r.LinkIndex != link {
			continue
		}
		if r.Dst != nil && prefixOf(r.Dst).Bits() != 0 {
			continue
		}
		g := gateway{family: family, link: r.LinkIndex}
		if a, ok := netip.AddrFromSlice(r.Gw); ok {
			g.via = a.Unmap()
		}
		return g, true, nil
	}
	return gateway{}, false, nil
}

// resolvers reads the name servers that podman gave the router. One on the
// loopback interface would be the router itself.
func resolvers(file string) ([]netip.Addr, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the uplink's name servers: %w", err)
	}
	var out []netip.Addr
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) < 2 || w[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(w[1]); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
			out = append(out, a.Unmap())
		}
	}
	return out[:min(len(out), 3)], nil
}
