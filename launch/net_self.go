package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/sidecar"
)

// SelfAddresses are the host's addresses that the plan's router denies, as far
// as they are known by now.
func (p *Plan) SelfAddresses() []netip.Addr {
	if p.uplink == nil {
		return nil
	}
	p.uplink.mu.Lock()
	defer p.uplink.mu.Unlock()
	return slices.Clone(p.uplink.self)
}

// known notes addresses of the host's.
func (u *uplink) known(a ...netip.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.self = append(u.self, a...)
}

// follow tells the router of addresses that the host gets while it runs: a
// VPN's, another network's.
func (u *uplink) follow(known []netip.Addr) {
	seen := map[netip.Addr]bool{}
	for _, a := range known {
		seen[a] = true
	}
	changes, err := addressChanges()
	if err == nil {
		defer unix.Close(changes)
	}
	// Read at once too: between the first look and now there was time.
	for b := make([]byte, 16<<10); ; {
		now, lerr := HostAddresses()
		if err = errors.Join(err, lerr); err != nil {
			u.emit(step.Event{Step: "network", Kind: step.Notice, Err: err.Error(), Attr: map[string]string{
				"notice": "addresses that this machine gets from now on are not denied to the sandbox"}})
			return
		}
		for _, a := range now {
			if !seen[a] {
				seen[a] = true
				u.known(a)
				u.tell(sidecar.SelfCommand(a))
			}
		}
		select {
		case <-u.gone:
			return
		default:
		}
		// Whatever it says, or if it says nothing for a while, look again.
		unix.Read(changes, b)
	}
}

// addressChanges is a socket that can be read when an address or a route comes or goes,
// and every now and then.
func addressChanges() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, fmt.Errorf("following this machine's addresses: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}),
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE}))
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("following this machine's addresses: %w", err)
	}
	return fd, nil
}
