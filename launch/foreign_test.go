package launch

import (
	"errors"
	"strings"
	"testing"

	"lazaret/lock"
)

// TestForeignNeedsAYes: a plan with another lazaret's programs does not run
// before somebody has agreed to each of them, whoever forgets to ask.
func TestForeignNeedsAYes(t *testing.T) {
	f := locked(t, strings.Replace(base, "enabled = false", "enabled = true", 1)+`allow_hosts = ["x.example"]`)
	o := options()
	other := "sha256:" + strings.Repeat("c", 64)
	o.Helpers.Sidecar = map[string]lock.Sidecar{"linux-amd64": {Binary: other, Layer: other, Config: other, Manifest: other, Size: 1}}
	o.Helpers.Escalate = map[string]lock.Binary{"linux-amd64": {Binary: other}}
	h := fixedHost()
	h.RuntimeDir = t.TempDir()
	plan, err := Resolve(f, "my_agent", h, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Foreign) != 2 || plan.Foreign[0].Digest != digest || plan.Foreign[0].Own != other || !strings.Contains(plan.Text(), "another lazaret's") {
		t.Fatalf("got %+v", plan.Foreign)
	}
	var he *lock.HelperError
	for _, agree := range []string{"", other} {
		plan.Agree(agree)
		if _, err := plan.Run(t.Context(), IO{}); !errors.As(err, &he) || !strings.Contains(he.Hint(), "lazaret trust helper "+digest) {
			t.Fatalf("agreed to %q: %v", agree, err)
		}
	}
	plan.Agree(digest)
	if err := plan.vouched(); err != nil {
		t.Error(err)
	}
	// Fetching them ahead runs none of them.
	again, err := Resolve(f, "my_agent", h, o)
	if err != nil {
		t.Fatal(err)
	}
	again.OnlyImages()
	if err := again.vouched(); err != nil {
		t.Error(err)
	}
	got := ""
	for _, s := range again.Steps {
		got += s.Name + " "
	}
	if got != "conf helper network.fetch network.image image client " {
		t.Errorf("fetches %s", got)
	}
	if len(mustResolve(t, f, h, options()).Foreign) != 0 {
		t.Error("its own are foreign to it")
	}
}

func mustResolve(t *testing.T, f *lock.File, h Host, o Options) *Plan {
	t.Helper()
	p, err := Resolve(f, "my_agent", h, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
