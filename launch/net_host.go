package launch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// localMost is how many addresses of one local route are denied one by one.
const localMost = 256

// HostAddresses are those that this machine answers for: those of its
// interfaces, and those it has only as local routes, as load balancers and
// cloud agents install them. Sorted.
func HostAddresses() (out []netip.Addr, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("looking at this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap().WithZone(""))
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		if err != nil {
			return nil, fmt.Errorf("looking at this machine's local routes: %w", err)
		}
		for _, r := range routes {
			out = append(out, localAddresses(r.Dst)...)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

// localAddresses are the addresses of a local route. The loopback network is
// always denied as a whole; of a wider route than localMost only the first are
// given.
func localAddresses(dst *net.IPNet) (out []netip.Addr) {
	if dst == nil {
		return nil
	}
	a, ok := netip.AddrFromSlice(dst.IP)
	if !ok {
		return nil
	}
	ones, _ := dst.Mask.Size()
	p := netip.PrefixFrom(a.Unmap(), ones)
	if p.Addr().IsLoopback() {
		return nil
	}
	for a := p.Masked().Addr(); p.Contains(a) && len(out) < localMost; a = a.Next() {
		out = append(out, a)
	}
	return out
}

// HostIPv6 tells whether this machine has an IPv6 route to the world: without
// one, a sandbox has no IPv6 either.
func HostIPv6() bool {
	routes, err := netlink.RouteListFiltered(unix.AF_INET6, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	return err == nil && slices.ContainsFunc(routes, func(r netlink.Route) bool {
		ones := 0
		if r.Dst != nil {
			ones, _ = r.Dst.Mask.Size()
		}
		return ones == 0 && r.Type == unix.RTN_UNICAST
	})
}
