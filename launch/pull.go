package launch

import "lazaret/internal/step"

// OnlyImages leaves of a plan what brings its images into podman's storage, and
// helper programs of another lazaret to this machine. Running it ends with exit
// status 0, and runs none of them.
func (p *Plan) OnlyImages() {
	wanted := map[string]bool{"image": true, "network.image": true, clientStep: true}
	var keep []step.Step
	for i := len(p.Steps) - 1; i >= 0; i-- { // a step comes after what it needs
		s := p.Steps[i]
		if !wanted[s.Name] {
			continue
		}
		for _, n := range s.Needs {
			wanted[n] = true
		}
		keep = append([]step.Step{s}, keep...)
	}
	p.Steps, p.Notices, p.services, p.uplink, p.Foreign = keep, nil, nil, nil, nil
	p.Host.Terminal = false
}
