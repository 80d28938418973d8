package launch

import (
	"net/netip"
	"path/filepath"
	"slices"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/sidecar"
)

// ProbePath is where WithProbe puts this program in the sandbox.
const ProbePath = "/run/lazaret-doctor/lazaret"

// WithProbe makes this program itself part of the sandbox, read-only at
// ProbePath: what a sandbox can do is best asked from inside, whatever is in
// its image.
func (p *Plan) WithProbe() error {
	if !runsAnywhere(p.Host.Lazaret) {
		return refuse("build lazaret with CGO_ENABLED=0", "this lazaret is not a static program, so it cannot run in every image")
	}
	const name = "probe"
	at := filepath.Join(p.Host.RuntimeDir, "lazaret", p.Record.ID, mountsDir, name)
	last := len(p.Steps) - 1
	s := p.Steps[last]
	sandbox, ok := s.Op.(Sandbox)
	if !ok {
		return refuse("run \"lazaret launch\" first: it says more", "the plan does not end with a sandbox")
	}
	sandbox.Run.Mounts = append(slices.Clone(sandbox.Run.Mounts), podman.Mount{Kind: "bind", Source: at, Target: ProbePath, ReadOnly: true})
	s.Op, s.Needs = sandbox, append(slices.Clone(s.Needs), name)
	p.Steps = append(p.Steps[:last:last], step.Step{
		Name: name, Where: step.Podman, Needs: []string{"helper"},
		Op: Bind{Source: p.Host.Lazaret, Target: at},
	}, s)
	return nil
}

// Denies tells what the plan's policy says of an address and a TCP port.
func (p *Plan) Denies(a netip.AddrPort) bool {
	if p.uplink == nil {
		return true
	}
	own, err := prefixes(p.OwnRanges())
	if err != nil {
		return true
	}
	t := sidecar.Compile(p.uplink.policy, own)
	v := t.Lookup(a.Addr())
	if v.Open {
		return false
	}
	for _, s := range v.Ports {
		if s.Port == a.Port() && s.Proto != "udp" {
			return false
		}
	}
	return true
}
