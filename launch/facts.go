package launch

// Branch is the branch that the sandbox's git starts on, "" where it has none.
func (p *Plan) Branch() string { return p.branch }

// Repository tells whether the sandbox has a repository.
func (p *Plan) Repository() bool { return p.gits != nil }

// Occupies tells whether what a step runs prints on the person's terminal.
func (p *Plan) Occupies(name string) bool {
	for _, s := range p.Steps {
		if s.Name == name {
			switch s.Op.(type) {
			case Sandbox, Setup:
				return true
			}
		}
	}
	return false
}
