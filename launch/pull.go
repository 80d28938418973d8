package launch

import "lazaret/internal/step"

// OnlyImages leaves of a plan what brings its images into podman's storage.
// Running it ends with exit status 0.
func (p *Plan) OnlyImages() {
	wanted := map[string]bool{"image": true, "network.image": true}
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
	p.Steps, p.Notices, p.services, p.uplink = keep, nil, nil, nil
	p.Host.Terminal = false
}
