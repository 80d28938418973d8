package launch

import (
	"context"
	"os"
	"slices"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
)

// container is one that the helper started, with what removes it.
type container struct {
	name   string
	engine podman.Engine
	whole  bool // what started it was not cut short, by us or by a signal
	env    []string
	kill   []string // ends it while it is suspended; see Still

	// What it takes to see that podman has removed it; see removed.
	store      string
	id, idFile string
	seen       bool // its directory was there
	conmon     *os.File
}

// container finds a container that this helper started.
func (s *server) container(name string) (container, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.containers, func(c container) bool { return c.name == name })
	if i < 0 {
		return container{}, false
	}
	return s.containers[i], true
}

// attached gives a sandbox what ends it.
func (s *server) attached(o Sandbox) Sandbox {
	name := o.Run.Name
	o.remove = func(ctx context.Context) error { return s.takeDown(ctx, name) }
	o.alone = func() { s.whole(name) }
	o.watch = func() func() { return s.watch(name) }
	return o
}

// note changes what is kept in mind of a container that this helper started.
func (s *server) note(name string, note func(*container)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.containers {
		if s.containers[i].name == name {
			note(&s.containers[i])
		}
	}
}

// whole keeps in mind that a container was started, or ran, without being cut
// short: podman knows all of it.
func (s *server) whole(name string) {
	s.note(name, func(c *container) { c.whole = true })
}

// started keeps in mind a container's id and its monitor.
func (s *server) started(name, id string, conmon *os.File) {
	s.note(name, func(c *container) { c.id, c.conmon, c.seen = id, conmon, c.there(id) })
}

// suspended keeps in mind what ends a container that stands still.
func (s *server) suspended(name string, kill []string) {
	s.note(name, func(c *container) { c.kill = kill })
}

// takeDown has podman remove a container that this helper started.
func (s *server) takeDown(ctx context.Context, name string) error {
	c, ok := s.container(name)
	if !ok {
		return nil
	}
	if c.kill != nil {
		proc.Output(ctx, proc.Cmd{Argv: c.kill, Env: c.env}) // what counts is the removal
	}
	_, err := proc.Output(ctx, proc.Cmd{Argv: c.engine.Remove(c.name), Env: c.env})
	return err
}

// remove removes a container that this helper started, and all that is left
// of it.
func (s *server) remove(ctx context.Context, name string) error {
	c, ok := s.container(name)
	if !ok {
		return nil
	}
	if !c.removed(endTime) {
		if err := s.takeDown(ctx, name); err != nil {
			return err
		}
	}
	if !c.whole {
		if err := endOrphans(ctx, c.engine, c.name, c.env, nil); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.containers = slices.DeleteFunc(s.containers, func(c container) bool { return c.name == name })
	s.mu.Unlock()
	return nil
}
