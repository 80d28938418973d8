package launch

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"lazaret/overlay"
)

const keeping = `
persistent_dirs = ["/usr", "/root"]
setup = ["install the agent"]
volumes = [{ host = "{profile_dir}/cache", container = "/root/.cache/x" }]
allow_hosts = ["x.example"]
`

func keepingSteps(t *testing.T, h Host, o Options) (plan *Plan, names []string) {
	t.Helper()
	plan, err := Resolve(locked(t, base+keeping), "my_agent", h, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plan.Steps {
		names = append(names, s.Name)
	}
	return plan, names
}

func TestPlanKeeps(t *testing.T) {
	h := fixedHost()
	h.Sources["/root/.cache/x"] = Source{Path: "/home/u/state/my_agent/cache", Dir: true}
	plan, names := keepingSteps(t, h, options())
	at := func(n string) int {
		i := slices.Index(names, n)
		if i < 0 {
			t.Errorf("no step %q in %q", n, names)
		}
		return i
	}
	order := []string{"state", "helper", "image", "image.root", "setup.overlay /root", "setup", "setup.cable", "setup.keep", "overlay /root", "sandbox"}
	for i, n := range order[1:] {
		if at(order[i]) > at(n) {
			t.Errorf("%s comes before %s", n, order[i])
		}
	}
	set := plan.Steps[at("setup")].Op.(Setup).run().Run
	session := plan.Steps[at("sandbox")].Op.(Sandbox).Run
	if set.Name != session.Name+"-setup" || set.TTY || set.Command[len(set.Command)-1] != "install the agent" || set.Network != session.Network {
		t.Errorf("the set-up runs as %+v", set)
	}
	if len(set.Mounts) != len(session.Mounts) {
		t.Errorf("the set-up has %d mounts, the session %d", len(set.Mounts), len(session.Mounts))
	}
	for i, m := range session.Mounts {
		kept := m.Target == "/root" || m.Target == "/usr"
		if set.Mounts[i].Target != m.Target || (set.Mounts[i].Source == m.Source) == kept {
			t.Errorf("set-up %+v, session %+v", set.Mounts[i], m)
		}
	}
	l := plan.Steps[at("overlay /root")].Op.(Overlay).Layer
	if l.Place != overlay.Kept("/home/u/state", "my_agent") || !slices.Equal(l.Under, []string{".cache/x"}) {
		t.Errorf("layer %+v", l)
	}
	// It was set up, so the session begins at once.
	r := resolver{Plan: &Plan{}, profile: locked(t, base+keeping).Profiles["my_agent"]}
	r.pinned.Config = digest
	if err := r.setupOf(); err != nil {
		t.Fatal(err)
	}
	done := r.setup.want
	h.Kept = overlay.Known{Setup: &done, Layers: map[string]overlay.Record{"usr": {}, "root": {}}}
	if _, names := keepingSteps(t, h, options()); slices.Contains(names, "setup") {
		t.Errorf("set up twice: %q", names)
	}
	delete(h.Kept.Layers, "usr")
	if _, names := keepingSteps(t, h, options()); !slices.Contains(names, "setup") {
		t.Errorf("not set up although /usr is fresh: %q", names)
	}
	o := options()
	o.Ephemeral = true
	plan, names = keepingSteps(t, h, o)
	if slices.Contains(names, "setup.keep") || !slices.Contains(names, "setup") || strings.Contains(plan.Text(), "/state/my_agent/usr_") {
		t.Errorf("ephemeral: %q\n%s", names, plan.Text())
	}
}

func TestStateNames(t *testing.T) {
	if got := stateName("profile", "pp", "/a/b"); got != "pp" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, ws := range []string{"/a/b", "/c/b", "/a/b\n", "/" + strings.Repeat("x", 300)} {
		got := stateName("workspace", "pp", ws)
		if seen[got] || !statePattern.MatchString(got) || profilePattern.MatchString(got) {
			t.Errorf("%q: %q", ws, got)
		}
		seen[got] = true
	}
}

// What a set-up prints is hostile too.
func TestShowLines(t *testing.T) {
	var b bytes.Buffer
	showLines(&b, strings.NewReader("one\r 10%\r 20%\r\ntwo \x1b[2J\n\n\u202eevil\n"+strings.Repeat("x", 100<<10)+"\nend"))
	got := b.String()
	if !strings.HasPrefix(got, "setup: one\nsetup:  10%\nsetup:  20%\nsetup: two \\x1b[2J\nsetup: \\u202eevil\nsetup: xxx") || !strings.HasSuffix(got, "\nsetup: end\n") || len(got) > 5000 {
		t.Errorf("got %.300q … %d bytes", got, len(got))
	}
}
