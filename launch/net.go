package launch

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/sidecar"
)

// Values that only the bringing up of the network finds out.
const (
	netnsValue = "sandbox.netns"  // the sandbox's network namespace, as a path
	pidValue   = "sidecar.pid"    // the router's process
	mtuValue   = "uplink.mtu"     // what fits its uplink in one piece, in bytes
	addrsValue = "host.addresses" // the host's own, separated by spaces
	sixValue   = "host.ipv6"      // "yes" where the host has an IPv6 route to the world
)

// routerLink is the router's end of the cable to the sandbox.
const routerLink = "lan0"

// cable gives the cable's addresses. Every sandbox has the same ones, in a
// namespace of its own: they are of ranges that nobody routes (benchmarks, a
// random unique-local /64).
func cable() sidecar.Link {
	return sidecar.Link{
		Router4: netip.AddrFrom4([4]byte{198, 19, 255, 253}), Box4: netip.AddrFrom4([4]byte{198, 19, 255, 254}),
		Router6: netip.MustParseAddr("fd6c:617a:6172::1"), Box6: netip.MustParseAddr("fd6c:617a:6172::2"),
	}
}

// network adds the steps that give the sandbox its only way out. Where nothing
// is reachable there is no router either, and no network.
func (r *resolver) network() error {
	n := r.profile.Network
	if len(n.Allow)+len(n.Hosts)+len(r.profile.Ports) == 0 {
		return nil
	}
	policy, err := policyOf(n)
	if err != nil {
		return fmt.Errorf("profiles.%s.network: %w", r.Record.Profile, err)
	}
	ports, err := portsOf(r.profile.Ports)
	if err != nil {
		return fmt.Errorf("profiles.%s.ports: %w", r.Record.Profile, err)
	}
	r.uplink = &uplink{policy: policy, kind: r.Host.Uplink, endWithout: r.opts.EndWithoutNetwork, workspace: r.Host.Workspace}
	r.services = append(r.services, r.uplink)
	pinned := r.file.Sidecar[lock.PlatformKey(r.Host.Platform)]
	engine := podman.Engine{Podman: r.Host.Podman.Path, Runsc: r.Host.Runc.Path}
	dir := filepath.Join(r.dir, netDir)
	layout := sidecarLayoutName(r.Record.ID)
	name := r.Record.Sidecar()

	r.provide("/etc/resolv.conf", "nameserver "+cable().Router4.String()+"\n")
	r.step(step.Step{Name: "network.socket", Op: ListenRouter{filepath.Join(dir, routerSocket), r.uplink}})
	calls := filepath.Join(r.dir, "router.calls")
	r.step(step.Step{Name: "file router.calls", Op: WriteFile{calls, podman.RouterCalls()}})
	r.step(step.Step{Name: "network.host", Where: step.Podman, Needs: []string{"helper"}, Op: HostNetwork{}})
	needs := []string{"helper"}
	if r.foreign(lock.HelperSidecar) {
		needs = append(needs, fetchStep)
		r.step(step.Step{Name: fetchStep, Op: FetchSidecar{Platform: r.Host.Platform, Pinned: pinned, Stash: r.stash(), Environ: slices.Concat(r.Host.Environ, r.Host.PullEnv), Outside: r.agents()}})
	}
	r.step(step.Step{
		Name: "network.image", Where: step.Podman, Needs: needs,
		Op: SidecarImage{
			Engine: engine, Environ: r.environ, Platform: r.Host.Platform, Pinned: pinned, Stash: r.stash(), Layout: filepath.Join(r.Host.CacheDir, layout),
			Memory: r.memory(), Known: r.Host.Known[pinned.Config],
		},
		Undo: []step.Undo{{Kind: undoTree, Base: baseCache, Name: layout}},
	})
	box := Netns{Grep: r.Host.Grep}
	if r.gated() {
		box.Hooks = r.hooks()
	}
	// The router's undo belongs to what comes before the sandbox: the router
	// goes after it, whichever of the two was quicker to start.
	r.step(step.Step{
		Name: "network.box", Where: step.Podman, Needs: []string{"helper"}, Op: box,
		Undo: []step.Undo{{Kind: undoContainer, Name: name}},
	})
	r.step(step.Step{
		Name: "network.router", Where: step.Podman, Needs: []string{"network.image", "network.socket", "network.box", "file router.calls"},
		Op: Router{Engine: engine, Environ: r.environ, Run: podman.Router{
			Name: name, Image: pinned.Config, Uplink: r.Host.Uplink, Sysctls: sidecar.Sysctls(), Dir: dir, SELinux: r.Host.SELinux,
			PIDFile: filepath.Join(r.dir, "router.pid"), Calls: calls,
		}, Store: r.Host.Known[pinned.Config].containers()},
	})
	r.step(step.Step{Name: "network.hello", Needs: []string{"network.socket", "network.image"}, Op: Hello{r.uplink}})
	r.step(step.Step{Name: "network.cable", Where: step.Podman, Needs: []string{"network.hello", "network.host", "network.box"}, Op: Cable{Link: cable()}})
	r.step(step.Step{Name: "network.policy", Needs: []string{"network.cable", "network.router"}, Op: SendPolicy{r.uplink}})
	ready := []string{"network.policy"}
	if len(ports) > 0 {
		r.publish(ports)
		ready = append(ready, "network.ports")
	}
	if r.gated() {
		r.step(step.Step{Name: gateStep, Where: step.Podman, Needs: ready, Op: Gate{}})
	}
	return nil
}

const gateStep = "network.gate"

// gated tells whether the sandbox is made while its network comes up. A set-up
// needs that before.
func (r *resolver) gated() bool { return r.uplink != nil && !r.setup.due && r.Host.Grep != "" }

func (r *resolver) hooks() string { return filepath.Join(r.dir, "hooks") }

// beside are the steps that a sandbox with a gate does not wait for.
var beside = []string{"network.router", "network.hello", "network.cable", "network.policy", "network.ports", gateStep}

// publish leads ports in. A login's callback listens on the sandbox's own
// loopback address, which no packet can reach: for that, this program itself
// is part of the sandbox.
func (r *resolver) publish(ports []Port) {
	op := Publish{Profile: r.Record.Profile, Ports: ports, To: cable().Box4, Environ: r.environ}
	if r.Host.Relay {
		r.fixed = append(r.fixed, r.bind(relayPath, Source{Path: r.Host.Lazaret, Exists: true}, "ro"))
		op.Relay = r.Engine.Exec(r.Record.Container(), relayPath, RelayCommand)
	} else {
		r.notice("ports lead only to programs that listen on more than the sandbox's loopback address: this lazaret is not a static program")
	}
	r.step(step.Step{Name: "network.ports", Where: step.Podman, Needs: []string{"network.policy"}, Op: op})
}

// policyOf turns the lock's text into a policy.
func policyOf(n lock.Network) (p sidecar.Policy, err error) {
	p.Blackhole, p.Open = n.OnDeny == "blackhole", n.DNS == "open"
	p.Link = cable()
	for _, s := range n.Allow {
		e, err := config.ParseEndpoint(s)
		if err != nil {
			return p, err
		}
		p.Allow = append(p.Allow, sidecar.Endpoint{Prefix: e.Prefix, Service: sidecar.Service{Port: e.Port, Proto: e.Proto}})
	}
	if p.Deny, err = prefixes(n.Deny); err != nil {
		return p, err
	}
	if p.Always, err = prefixes(n.AlwaysDeny); err != nil {
		return p, err
	}
	for _, s := range n.Hosts {
		h, err := config.ParseHost(s)
		if err != nil {
			return p, err
		}
		p.Hosts = append(p.Hosts, sidecar.Host{Name: h.Name, Service: sidecar.Service{Port: h.Port, Proto: h.Proto}})
	}
	return p, nil
}

func prefixes(list []string) (out []netip.Prefix, err error) {
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Port is a port of the host's loopback address that leads into the sandbox.
type Port struct{ Host, Sandbox uint16 }

func (p Port) String() string {
	return "127.0.0.1:" + strconv.Itoa(int(p.Host)) + " to port " + strconv.Itoa(int(p.Sandbox)) + " of the sandbox"
}

func portsOf(list []string) (out []Port, err error) {
	for _, s := range list {
		p, err := config.ParsePort(s)
		if err != nil {
			return nil, err
		}
		out = append(out, Port{p.Host, p.Sandbox})
	}
	return out, nil
}

// HasNetwork tells whether the sandbox has a network at all.
func (p *Plan) HasNetwork() bool { return p.uplink != nil }

// OwnRanges are the ranges that the sandbox's router has for itself.
func (p *Plan) OwnRanges() []string {
	own := []string{"10.0.2.0/24", "198.19.255.252/30", "fd6c:617a:6172::/64"}
	if p.Host.Uplink == slirp {
		own = append(own, "fd00::/64") // pasta has the host's own, whatever that is
	}
	return own
}
