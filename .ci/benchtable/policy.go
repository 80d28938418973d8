package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lazaret/sidecar"
)

// loaded is what a policy's loading took.
type loaded struct {
	Milliseconds float64
	PeakMiB      float64
}

func preparePolicy(ctx context.Context, b *bench, wanted func(string) bool, _ map[string]string) ([]side, error) {
	run := func(kind string) (l loaded, err error) {
		cmd := exec.CommandContext(ctx, filepath.Join(b.tools(), "benchtable"), insideCommand, "lab", kind, b.helper("lazaret-sidecar"))
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		var talk bytes.Buffer
		cmd.Stderr = &talk
		out, err := cmd.Output()
		if err != nil {
			return l, fmt.Errorf("%w\n%s", err, &talk)
		}
		return l, json.Unmarshal(out, &l)
	}
	return among([]side{
		{"policy load", func() (float64, error) { l, err := run("sidecar"); return l.Milliseconds, err }},
		{"policy floor", func() (float64, error) { l, err := run("floor"); return l.Milliseconds, err }},
		{"policy memory", func() (float64, error) { l, err := run("sidecar"); return l.PeakMiB, err }},
	}, wanted), nil
}

// lab is the inside of namespaces of its own: there it loads a hundred thousand
// ranges, by the sidecar's own program or as fast as they can be written.
func lab(kind, program string) error {
	if err := cables(); err != nil {
		return err
	}
	var l loaded
	var err error
	switch kind {
	case "sidecar":
		l, err = loadBySidecar(program)
	case "floor":
		l.Milliseconds, err = taking(writeRoutes)
	default:
		err = fmt.Errorf("no such lab: %s", kind)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

var cable = sidecar.Link{Router4: netip.MustParseAddr("198.19.255.253"), Box4: netip.MustParseAddr("198.19.255.254")}

// cables makes what podman and lazaret's helper make for a sidecar.
func cables() error {
	for _, pair := range [][2]string{{"up0", "world0"}, {"lan0", "box0"}} {
		a := netlink.NewLinkAttrs()
		a.Name = pair[0]
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: pair[1]}); err != nil {
			return fmt.Errorf("adding %s: %w", pair[0], err)
		}
	}
	set := sidecar.LinkSysctls("lan0", false)
	for k, v := range sidecar.Sysctls() {
		set[k] = v
	}
	for k, v := range set {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", k), []byte(v), 0o644); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for name, cidr := range map[string]string{"lo": "", "up0": "10.0.2.15/24", "world0": "", "lan0": "198.19.255.253/30", "box0": ""} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if cidr != "" {
			a, err := netlink.ParseAddr(cidr)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(l, a); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
	}
	up, err := netlink.LinkByName("up0")
	if err != nil {
		return err
	}
	_, all, _ := net.ParseCIDR("0.0.0.0/0")
	return netlink.RouteAdd(&netlink.Route{LinkIndex: up.Attrs().Index, Dst: all, Gw: net.IPv4(10, 0, 2, 2)})
}

// loadBySidecar runs the program as it runs in a launch and waits until it says
// that the policy holds.
func loadBySidecar(program string) (l loaded, err error) {
	f, err := os.Open(program) // what is mounted next may hide it
	if err != nil {
		return l, err
	}
	defer f.Close()
	for _, dir := range []string{"/run", "/etc"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m"); err != nil {
			return l, fmt.Errorf("mounting %s: %w", dir, err)
		}
	}
	if err := errors.Join(os.Mkdir("/run/lazaret", 0o700), os.WriteFile("/etc/resolv.conf", []byte("nameserver 10.0.2.3\n"), 0o644)); err != nil {
		return l, err
	}
	socket, err := net.Listen("unix", "/run/lazaret/sidecar.sock")
	if err != nil {
		return l, err
	}
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr
	if err := cmd.Start(); err != nil {
		return l, err
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	conn, err := socket.Accept()
	if err != nil {
		return l, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	if e, err := sidecar.ReadEvent(in); err != nil || e.Kind != sidecar.EventHello {
		return l, fmt.Errorf("the sidecar said %v (%v)", e, err)
	}
	p := sidecar.Policy{Link: cable, Deny: ranges(manyRanges), Allow: []sidecar.Endpoint{{Prefix: netip.MustParsePrefix("192.0.2.0/24")}}}
	start := time.Now()
	if _, err := p.WriteTo(conn); err != nil {
		return l, err
	}
	if e, err := sidecar.ReadEvent(in); err != nil || e.Kind != sidecar.EventReady {
		return l, fmt.Errorf("the sidecar said %v (%v)", e, err)
	}
	l.Milliseconds = ms(time.Since(start))
	var kib float64
	fmt.Sscan(field(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid), "VmHWM"), &kib)
	l.PeakMiB = kib / 1024
	return l, nil
}

// writeRoutes writes as many routes from one buffer that is used again: less
// work than this nobody can have who hands the kernel that many.
func writeRoutes() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	const size, batch = 16 + 12 + 8, 2000
	buf := make([]byte, 0, size*batch)
	for i := range manyRanges {
		flags := uint16(unix.NLM_F_REQUEST | unix.NLM_F_CREATE)
		last := len(buf) == size*(batch-1) || i == manyRanges-1
		if last {
			flags |= unix.NLM_F_ACK
		}
		e := binary.NativeEndian
		buf = e.AppendUint32(buf, size)
		buf = e.AppendUint16(buf, unix.RTM_NEWROUTE)
		buf = e.AppendUint16(buf, flags)
		buf = e.AppendUint32(buf, uint32(i+1))
		buf = e.AppendUint32(buf, 0)
		buf = append(buf, unix.AF_INET, 28, 0, 0, 100, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_PROHIBIT, 0, 0, 0, 0)
		buf = e.AppendUint16(buf, 8)
		buf = e.AppendUint16(buf, unix.RTA_DST)
		buf = binary.BigEndian.AppendUint32(buf, 0x10000000+uint32(i)*32)
		if !last {
			continue
		}
		if _, err := unix.Write(fd, buf); err != nil {
			return err
		}
		buf = buf[:0]
		var in [4096]byte
		if _, err := unix.Read(fd, in[:]); err != nil {
			return err
		}
		if code := int32(e.Uint32(in[unix.SizeofNlMsghdr:])); code != 0 {
			return unix.Errno(-code)
		}
	}
	return nil
}
