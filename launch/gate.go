package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

// A sandbox is made while its router starts, which takes as long. So that no
// program runs in it before the router holds the policy, it is made with a
// hook: the runtime, when the sandbox is there and before its command is
// started, runs a program and goes on only if that succeeds. The program reads
// one word from a pipe whose other end the helper has, and finds anything else,
// or the end of the pipe, a failure: whatever happens to the helper or to the
// network, the command is not started. The network itself comes at the same
// moment: gVisor takes it over when the command starts.

// Netns makes the sandbox's network namespace, with nothing in it, and the gate.
type Netns struct {
	Hooks string // the directory for the gate's hook; "": the sandbox starts after its network
	Grep  string // grep(1)

	keep func(gate *os.File)
}

// gateWord opens the gate.
const gateWord = "go"

// hook is a hook as podman reads them.
type hook struct {
	Version string          `json:"version"`
	Hook    hookCommand     `json:"hook"`
	When    map[string]bool `json:"when"`
	Stages  []string        `json:"stages"`
}

type hookCommand struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
}

func (o Netns) hook(gate string) hook {
	return hook{"1.0.0", hookCommand{o.Grep, []string{"grep", "-qx", gateWord, gate}}, map[string]bool{"always": true}, []string{"createRuntime"}}
}

// Do gives the namespace as a path that lives as long as the helper.
func (o Netns) Do(context.Context, step.Values) (step.Values, error) {
	box, err := newNetns()
	if err != nil {
		return nil, fmt.Errorf("making the sandbox's network namespace: %w", err)
	}
	out := step.Values{netnsValue: ownPath(box)}
	if o.Hooks == "" {
		return out, nil
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	// The reading end stays open as a number, for the hook to open once more.
	o.keep(os.NewFile(uintptr(fds[1]), "gate"))
	b, err := json.Marshal(o.hook(ownPath(fds[0])))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Hooks, 0o700); err != nil {
		return nil, err
	}
	return out, os.WriteFile(filepath.Join(o.Hooks, "gate.json"), b, 0o600)
}

// ownPath is a path to a descriptor of this process, for others.
func ownPath(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd) }

// Show says what is made.
func (o Netns) Show() []string {
	lines := []string{"make a network namespace"}
	if o.Hooks != "" {
		b, _ := json.Marshal(o.hook("<pipe>"))
		lines = append(lines, "write "+shown(filepath.Join(o.Hooks, "gate.json"))+": "+string(b))
	}
	return lines
}

// newNetns makes a namespace. Its descriptor is a number and not a file, which
// would be closed when nothing refers to it any more: podman will.
func newNetns() (int, error) {
	var fd int
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		done <- err
	}()
	return fd, <-done
}

// Gate lets the sandbox's command start.
type Gate struct {
	Shut bool // it does not, for good; see WithShutGate

	open func() error
}

// WithShutGate keeps the sandbox's command from ever starting, and tells whether
// there is a gate that can: whoever sees the command run all the same knows that
// the gate holds nothing.
func (p *Plan) WithShutGate() bool {
	for i, s := range p.Steps {
		if _, ok := s.Op.(Gate); ok {
			p.Steps[i].Op = Gate{Shut: true}
			return true
		}
	}
	return false
}

// Do opens the gate.
func (o Gate) Do(context.Context, step.Values) (step.Values, error) { return nil, o.open() }

// Show says what is let go on.
func (o Gate) Show() []string {
	if o.Shut {
		return []string{"keep the sandbox's command from starting"}
	}
	return []string{"let the sandbox's command start"}
}

// keepGate keeps the helper's end of the gate.
func (s *server) keepGate(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = f
}

// openGate lets the sandbox's command start.
func (s *server) openGate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		return errors.New("the sandbox waits for nothing")
	}
	_, err := s.gate.WriteString(gateWord + "\n")
	return errors.Join(err, s.closeGateLocked())
}

// closeGate keeps the sandbox's command from starting, if it has not.
func (s *server) closeGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeGateLocked()
}

func (s *server) closeGateLocked() error {
	if s.gate == nil {
		return nil
	}
	err := s.gate.Close()
	s.gate = nil
	return err
}
