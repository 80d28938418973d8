package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lazaret/image"
	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/sidecar"
)

// HostNetwork looks at the network that the router's uplink will use.
type HostNetwork struct{}

// Do gives the host's addresses, and whether it has IPv6.
func (HostNetwork) Do(context.Context, step.Values) (step.Values, error) {
	addrs, err := HostAddresses()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, a := range addrs {
		list = append(list, a.String())
	}
	out := step.Values{addrsValue: strings.Join(list, " ")}
	if HostIPv6() {
		out[sixValue] = "yes"
	}
	return out, nil
}

// Show says what is looked at.
func (HostNetwork) Show() []string {
	return []string{"look at this machine's addresses and IPv6 route"}
}

// SidecarImage makes the router's image present in podman's storage.
type SidecarImage struct {
	Engine   podman.Engine
	Environ  []string
	Platform string
	Pinned   lock.Sidecar
	Stash    string // where what was pulled of another lazaret's is kept
	Layout   string // where it is laid out for podman to pull
	Memory   Memory
	Known    KnownImage // what was verified before
}

func sidecarLayoutName(id string) string { return "layout-net-" + id }

// Do loads the image that is pinned, where podman does not have it: this
// build's own, else another lazaret's from where the lock says. It refuses
// any other.
func (o SidecarImage) Do(ctx context.Context, in step.Values) (step.Values, error) {
	if o.Memory.still(o.Known) {
		return nil, nil
	}
	asked := time.Now()
	img, err := o.inspect(ctx)
	if err != nil {
		if in[fetchErrValue] != "" {
			return nil, fmt.Errorf("loading the network sidecar: %w", notFetched(in))
		}
		if err := o.load(ctx); err != nil {
			return nil, fmt.Errorf("loading the network sidecar: %w", err)
		}
		asked = time.Now()
		if img, err = o.inspect(ctx); err != nil {
			return nil, err
		}
	}
	if got := "sha256:" + strings.TrimPrefix(img.ID, "sha256:"); got != o.Pinned.Config {
		return nil, refuse(`run "lazaret lock" and review the difference`, "IMAGE ID MISMATCH of the network sidecar: the lock pins %s, podman has %s", o.Pinned.Config, got)
	}
	if obeyed := image.ObeyedAnnotations(img.Annotations); len(obeyed) > 0 {
		return nil, refuse("remove it with \"podman image rm "+o.Pinned.Config+"\"", "the network sidecar's image carries settings for the runtime")
	}
	o.Memory.keep(o.Pinned.Config, o.Platform, img, asked)
	return nil, nil
}

func (o SidecarImage) inspectArgv() []string {
	return o.Engine.Argv("image", "inspect", "--format=json", o.Pinned.Config)
}

func (o SidecarImage) pullArgv() []string {
	return o.Engine.Argv("pull", "--quiet", "oci:"+sidecarLocalName)
}

const sidecarLocalName = "lazaret/sidecar"

func (o SidecarImage) inspect(ctx context.Context) (inspected, error) {
	out, err := proc.Output(ctx, proc.Cmd{Argv: o.inspectArgv(), Env: o.Environ})
	if err != nil {
		return inspected{}, err
	}
	var list []inspected
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
		return inspected{}, fmt.Errorf("reading podman's answer about image %s: %v", o.Pinned.Config, err)
	}
	return list[0], nil
}

func (o SidecarImage) load(ctx context.Context) error {
	img, err := image.NewResolver(image.Options{}).FetchSidecar(ctx, "", o.Platform, o.Pinned, image.Stash{Dir: o.Stash})
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Layout, sidecarLocalName)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	defer removeTree(filepath.Split(o.Layout))
	if err := image.WriteLayout(dir, img, ""); err != nil {
		return err
	}
	_, err = proc.Output(ctx, proc.Cmd{Argv: o.pullArgv(), Env: o.Environ, Dir: o.Layout})
	return err
}

// Show gives the commands.
func (o SidecarImage) Show() []string {
	return []string{
		unlessKnown,
		shown(o.inspectArgv()...),
		"if it is not there: lay the sidecar out at " + shown(filepath.Join(o.Layout, sidecarLocalName)),
		"if it is not there: " + shown(o.pullArgv()...),
	}
}

// Router starts the router's container.
type Router struct {
	Engine  podman.Engine
	Environ []string
	Run     podman.Router
	Store   string // where podman keeps its containers; "" where that is not known

	// started keeps in mind the container's id and its monitor.
	started func(name, id string, conmon *os.File)
}

// Do starts it and does not wait for more.
func (o Router) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	out, err := proc.Output(ctx, proc.Cmd{Argv: o.Engine.Router(o.Run), Env: o.Environ})
	if err != nil || o.started == nil || o.Run.PIDFile == "" {
		return nil, err
	}
	if conmon, err := openProcess(o.Run.PIDFile); err == nil {
		o.started(o.Run.Name, strings.TrimSpace(string(out)), conmon)
	}
	return nil, nil
}

// Show gives the command.
func (o Router) Show() []string { return []string{shown(o.Engine.Router(o.Run)...)} }

func (o Router) container() container {
	return container{name: o.Run.Name, engine: o.Engine, env: o.Environ, store: o.Store}
}

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
