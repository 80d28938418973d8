package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The repository's example is complete by itself, and has what each agent
// cannot do without.
func TestExample(t *testing.T) {
	data, err := ReadFile("../../example.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load([]Layer{{Kind: User, Name: "example.toml", Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(c.Profiles)), []string{"aider", "claude", "codex", "gemini", "opencode"}; !slices.Equal(got, want) {
		t.Errorf("profiles are %v, want %v", got, want)
	}
	for name, p := range c.Profiles {
		for _, dir := range []string{"/root", "/usr/local"} { // the login; what setup installs
			if !slices.Contains(p.PersistentDirs, dir) {
				t.Errorf("%s forgets %s", name, dir)
			}
		}
		if len(p.Setup) == 0 || len(p.Command) == 0 || len(p.AllowHosts) == 0 || strings.HasSuffix(p.Image, ":latest") {
			t.Errorf("%s is not complete: %+v", name, p)
		}
		// Everything a setup installs from has to be reachable.
		registry := "registry.npmjs.org:443"
		if strings.Contains(p.Setup[0], "pip") {
			registry = "files.pythonhosted.org:443"
		}
		if !slices.ContainsFunc(p.AllowHosts, func(h Host) bool { return h.String() == registry }) {
			t.Errorf("%s cannot reach %s", name, registry)
		}
	}
	for _, c := range []struct{ what, got, want string }{
		{"claude's sandbox mark", c.Profiles["claude"].Env["IS_SANDBOX"], "1"},
		{"opencode's JIT", c.Profiles["opencode"].Env["BUN_JSC_useJIT"], "0"},
		{"codex's callback", c.Profiles["codex"].Ports[0].String(), "1455"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	for _, private := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7"} {
		if p, _ := ParseCIDR(private); !slices.Contains(c.Network.DefaultDeny, p) {
			t.Errorf("%s is not denied", private)
		}
	}
	for name := range c.Profiles {
		for _, v := range c.Profiles[name].Env {
			if strings.HasPrefix(v, "env:") && !strings.HasSuffix(v, "?") {
				t.Errorf("%s does not start without %s", name, v)
			}
		}
	}
}
