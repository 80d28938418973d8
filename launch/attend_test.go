package launch

import (
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

// answering is a helper that answers every operation, of each kind with an error
// or without.
func answering(t *testing.T, errs map[string]*wireError) *helper {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	here, there := os.NewFile(uintptr(fds[0]), "here"), os.NewFile(uintptr(fds[1]), "there")
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() {
		d, e := json.NewDecoder(there), json.NewEncoder(there)
		for {
			var r request
			if d.Decode(&r) != nil {
				there.Close()
				return
			}
			e.Encode(reply{ID: r.ID, Err: errs[r.Kind]})
		}
	}()
	h := &helper{conn: here, gone: make(chan struct{}), enc: json.NewEncoder(here), pending: map[int]chan reply{}}
	go h.read()
	return h
}

// TestRunning: a run is said to run, and has the terminal, once the sandbox has
// begun and its gate is open, and not where that could not be opened.
func TestRunning(t *testing.T) {
	gate := step.Step{Name: gateStep, Where: step.Podman, Op: Gate{}}
	sandbox := step.Step{Name: "sandbox", Where: step.Podman, Op: Sandbox{}}
	for name, tc := range map[string]struct {
		plan, do []step.Step
		err      *wireError
		want     string
	}{
		"no gate":            {[]step.Step{sandbox}, []step.Step{sandbox}, nil, PhaseRunning},
		"a gate first":       {[]step.Step{gate, sandbox}, []step.Step{gate, sandbox}, nil, PhaseRunning},
		"only a gate":        {[]step.Step{gate, sandbox}, []step.Step{gate}, nil, PhaseStarting},
		"only the sandbox":   {[]step.Step{gate, sandbox}, []step.Step{sandbox}, nil, PhaseStarting},
		"a gate last":        {[]step.Step{gate, sandbox}, []step.Step{sandbox, gate}, nil, PhaseRunning},
		"a gate that sticks": {[]step.Step{gate, sandbox}, []step.Step{sandbox, gate}, &wireError{Msg: "x"}, PhaseStarting},
	} {
		p := &Plan{Steps: tc.plan}
		r := &run{plan: p, helper: answering(t, map[string]*wireError{"gate": tc.err}), runner: &step.Runner{}, forward: func() error { return nil }}
		r.attend.plan = p
		r.attend.answers()
		for _, s := range tc.do {
			r.do(t.Context(), s, step.Values{})
		}
		if got := r.attend.phase.Load(); got != tc.want {
			t.Errorf("%s: it is %s", name, got)
		}
	}
}
