package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/sidecar"
)

// Cable connects the sandbox's network namespace to the router: before the
// sandbox starts, since gVisor takes over then what it finds, and nothing that
// comes later.
type Cable struct {
	Link sidecar.Link
	// Again: the namespace is there and a sandbox has had it, which took the
	// addresses.
	Again bool
}

// Do makes the cable.
func (o Cable) Do(_ context.Context, in step.Values) (step.Values, error) {
	mtu, err := strconv.Atoi(in[mtuValue])
	if err != nil {
		return nil, err
	}
	six := in[sixValue] != ""
	box, err := unix.Open(in[netnsValue], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox's network namespace: %w", err)
	}
	defer unix.Close(box)
	if o.Again {
		if err := inNetns(box, func() error { return o.boxEnd(mtu, six) }); err != nil {
			return nil, fmt.Errorf("connecting the sandbox to its router again: %w", err)
		}
		return nil, nil
	}
	pid, err := strconv.Atoi(in[pidValue])
	if err != nil {
		return nil, err
	}
	router, err := routerNetns(pid)
	if err != nil {
		return nil, err
	}
	// Not kept: with the router's process, its namespace shall go.
	defer unix.Close(router)
	err = inNetns(router, func() error { return o.routerEnd(box, mtu, six) })
	if err == nil {
		err = inNetns(box, func() error { return o.boxEnd(mtu, six) })
	}
	if err != nil {
		return nil, fmt.Errorf("connecting the sandbox to its router: %w", err)
	}
	return nil, nil
}

// routerNetns opens the namespace of the router, which is not the host's.
func routerNetns(pid int) (int, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("finding the network sidecar's namespace: %w", err)
	}
	var own, its unix.Stat_t
	if err := errors.Join(unix.Stat("/proc/self/ns/net", &own), unix.Fstat(fd, &its)); err != nil || own.Ino == its.Ino {
		unix.Close(fd)
		return -1, fmt.Errorf("the network sidecar, process %d, has no network namespace of its own: %w", pid, errors.Join(err, errors.ErrUnsupported))
	}
	return fd, nil
}

// inNetns runs f on a thread in a network namespace. The thread is not used
// again: it ends with the goroutine.
func inNetns(fd int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// routerEnd makes the cable and the router's end of it, which believes nothing
// that comes through it, before it is up.
func (o Cable) routerEnd(box, mtu int, six bool) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = routerLink, mtu
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(box)}); err != nil {
		return fmt.Errorf("making a veth: %w", err)
	}
	for name, v := range sidecar.LinkSysctls(routerLink, six) {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(v), 0); err != nil && !(errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "ipv6/")) {
			return err
		}
	}
	// Both ends check what they get: the router need not read every byte for
	// that too. Where the kernel has no such setting, it does.
	os.WriteFile("/proc/sys/net/netfilter/nf_conntrack_checksum", []byte("0"), 0)
	link, err := netlink.LinkByName(routerLink)
	if err != nil {
		return err
	}
	if err := addresses(link, six, o.Link.Router4, o.Link.Router6); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func (o Cable) boxEnd(mtu int, six bool) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := addresses(link, six, o.Link.Box4, o.Link.Box6); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, via := range []netip.Addr{o.Link.Router4, o.Link.Router6} {
		if via.Is6() && !six {
			continue
		}
		family, zero := unix.AF_INET, net.IPv4zero
		if via.Is6() {
			family, zero = unix.AF_INET6, net.IPv6zero
		}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Family: family, Gw: via.AsSlice(),
			Dst: &net.IPNet{IP: zero, Mask: net.CIDRMask(0, via.BitLen())}}); err != nil {
			return fmt.Errorf("adding the route to the router: %w", err)
		}
	}
	return nil
}

func addresses(link netlink.Link, six bool, four, sixth netip.Addr) error {
	for _, a := range []netip.Addr{four, sixth} {
		bits := 30
		if a.Is6() {
			if !six {
				continue
			}
			bits = 64
		}
		// Nobody else can have the address, so nobody is asked.
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: unix.IFA_F_NODAD}
		if a.Is4() {
			addr.Flags = 0
		}
		if err := netlink.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("adding address %s: %w", a, err)
		}
	}
	return nil
}

// Show gives what ip(8) would be told.
func (o Cable) Show() []string {
	if o.Again {
		return []string{"ip addr add " + o.Link.Box4.String() + "/30 and the rest again, in the sandbox's namespace"}
	}
	return []string{
		"ip link add " + routerLink + " netns <" + pidValue + "> mtu <" + mtuValue + "> type veth peer eth0 in it",
		"ip addr add " + o.Link.Router4.String() + "/30 and " + o.Link.Box4.String() + "/30, and " + o.Link.Router6.String() + "/64 and " + o.Link.Box6.String() + "/64 where <" + sixValue + ">",
	}
}
