package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

// TestGate: the hook succeeds after the word and in no other case, whether it
// came to read before or after.
func TestGate(t *testing.T) {
	grep, err := lookPath("grep", os.Getenv("PATH"), "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		end  func(*server)
		want bool
	}{
		{"opened", func(s *server) { s.openGate() }, true},
		{"closed", func(s *server) { s.closeGate() }, false},
		{"closed, then opened", func(s *server) { s.closeGate(); s.openGate() }, false},
		{"another word", func(s *server) { s.gate.WriteString("gone\nno go\n"); s.closeGate() }, false},
	} {
		for _, early := range []bool{true, false} {
			s, path := &server{}, ""
			var fds [2]int
			if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			s.keepGate(os.NewFile(uintptr(fds[1]), "gate"))
			path = ownPath(fds[0])
			h := Netns{Grep: grep}.hook(path).Hook
			cmd := exec.Command(h.Path, h.Args[1:]...)
			if early {
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
			}
			tc.end(s)
			if !early {
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); (err == nil) != tc.want {
				t.Errorf("%s, early %v: %v", tc.name, early, err)
			}
			unix.Close(fds[0])
			// Whoever held the gate is gone.
			if err := exec.Command(h.Path, h.Args[1:]...).Run(); err == nil {
				t.Errorf("%s: it succeeds without a gate", tc.name)
			}
		}
	}
}

// TestGatedPlan: the sandbox is made beside its network, its command waits for
// all of that, and it is removed before its router.
func TestGatedPlan(t *testing.T) {
	h := networkHost()
	h.Grep = "/usr/bin/grep"
	plan, err := Resolve(locked(t, reaching), "my_agent", h, options())
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]step.Step{}
	for _, s := range plan.Steps {
		steps[s.Name] = s
	}
	sandbox, gate := steps["sandbox"], steps[gateStep]
	for _, name := range beside {
		if slices.Contains(sandbox.Needs, name) {
			t.Errorf("the sandbox waits for %s", name)
		}
	}
	if !slices.Contains(sandbox.Needs, "network.box") || !slices.Contains(sandbox.Needs, "network.image") {
		t.Errorf("the sandbox needs %v", sandbox.Needs)
	}
	if !slices.Contains(gate.Needs, "network.policy") || !slices.Contains(gate.Needs, "network.ports") {
		t.Errorf("the gate needs %v", gate.Needs)
	}
	if u := steps["network.box"].Undo; len(u) != 1 || u[0].Name != plan.Record.Sidecar() || len(steps["network.router"].Undo) != 0 {
		t.Errorf("the router's undo is not before the sandbox's: %v", u)
	}
	run := sandbox.Op.(Sandbox).Run
	if box := steps["network.box"].Op.(Netns); run.Hooks == "" || run.Hooks != box.Hooks || !strings.HasPrefix(box.Hooks, filepath.Join(h.RuntimeDir, "lazaret")) {
		t.Errorf("the gate's hook is in %q, podman looks in %q", box.Hooks, run.Hooks)
	}
}
