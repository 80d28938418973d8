package config

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// base holds the required keys, as a user's own layer would.
const base = `
[storage]
data_root = "~/.local/share/lazaret"

[network]
default_allow = []
default_deny = ["10.0.0.0/8"]

[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
`

// load reads text as a repository's layer over base.
func load(text string) (*Config, error) {
	return Load([]Layer{
		{Kind: User, Name: "config.toml", Data: []byte(base)},
		{Kind: Workspace, Name: "lazaret.toml", Data: []byte(text)},
	})
}

func mustLoad(t *testing.T, layers ...string) *Config {
	t.Helper()
	in := []Layer{{Kind: User, Name: "config.toml", Data: []byte(base)}}
	for i, text := range layers {
		in = append(in, Layer{Kind: Kind(1 + i), Name: []string{"lazaret.toml", "over.toml"}[i], Data: []byte(text)})
	}
	c, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// all gives every error with its hint, one a line.
func all(err error) string {
	var es Errors
	if e := new(Error); !errors.As(err, &es) && errors.As(err, &e) {
		es = Errors{e}
	}
	var b strings.Builder
	for _, e := range es {
		b.WriteString(e.Error())
		if e.Hint() != "" {
			b.WriteString("; " + e.Hint())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, `
[profiles.shell]
image = "builtin:shell"
`)
	want := Profile{Image: "builtin:shell", Env: map[string]string{}, Git: "quarantine", Branch: "auto", Tree: "shared", State: "profile"}
	if got := c.Profiles["shell"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if c.Storage.Overlay != "auto" || c.Network.OnDeny != "reject" {
		t.Errorf("overlay %q, on_deny %q", c.Storage.Overlay, c.Network.OnDeny)
	}
	if c.Escalation.Timeout != 5*time.Minute || c.Escalation.MaxOutput != 1<<20 {
		t.Errorf("timeout %v, max_output %d", c.Escalation.Timeout, c.Escalation.MaxOutput)
	}
}

func TestEveryKey(t *testing.T) {
	c := mustLoad(t, `
[storage]
data_root = "/var/lib/laz//"
overlay = "native"
[network]
default_allow = ["[2001:db8::/32]:443/tcp", "10.2.0.0/16", "10.2.0.0/16", "10.0.0.5/32:5432"]
default_deny = ["fd00::/8", "10.0.0.0/8"]
allow_hosts = ["PyPI.org.", "pypi.org:443", "*.example.org:123/udp"]
on_deny = "blackhole"
sidecar = "registry.example.org:5000/laz/sidecar:1"
[escalation]
enabled = true
socket_dir = "/tmp/lazaret"
auto_approve = ["aws sts get-caller-identity", "'date'"]
auto_approve_exact = ['hostname -f']
timeout = "90s"
max_output = "2m"
[profiles.a_b-2]
image = "docker.io/library/debian:trixie"
persistent_dirs = ["/var", "/usr"]
allow_egress = ["0.0.0.0/0"]
allow_hosts = ["api.example.com"]
env = { A = "x\n\ty", B = "env:HOST_B?", PATH = "/bin" }
volumes = [
  { host = "{profile_dir}/cache/", container = "/c" },
  { host = "{profile_dir}/look", container = "/d", mode = "ro,Z" },
  { host = "~/.aws", container = "/root/.aws" },
  { host = "{workspace_dir}/out", container = "/out", mode = "rw" },
  { host = "/srv/{profile_name}/a b:c,d", container = "/e f", mode = "z" },
]
command = "claude --say 'a b'"
setup = ["npm i", """
x
y"""]
ports = ["8080:80", "1455"]
git = "writeback"
branch = "agent/x"
tree = "worktree"
state = "workspace"
memory = "4G"
cpus = 1.50
pids = 512
`)
	want := &Config{
		Storage: Storage{DataRoot: "/var/lib/laz", Overlay: "native"},
		Network: Network{
			DefaultAllow: []Endpoint{
				{Prefix: netip.MustParsePrefix("10.0.0.5/32"), Port: 5432},
				{Prefix: netip.MustParsePrefix("10.2.0.0/16")},
				{Prefix: netip.MustParsePrefix("2001:db8::/32"), Port: 443, Proto: "tcp"},
			},
			DefaultDeny: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
			AllowHosts:  []Host{{"*.example.org", 123, "udp"}, {"pypi.org", 443, ""}},
			OnDeny:      "blackhole",
			Sidecar:     "registry.example.org:5000/laz/sidecar:1",
		},
		Escalation: Escalation{
			Enabled: true, SocketDir: "/tmp/lazaret",
			AutoApprove:      [][]string{{"aws", "sts", "get-caller-identity"}, {"date"}},
			AutoApproveExact: [][]string{{"hostname", "-f"}},
			Timeout:          90 * time.Second, MaxOutput: 2 << 20,
		},
		Profiles: map[string]Profile{"a_b-2": {
			Image:          "docker.io/library/debian:trixie",
			PersistentDirs: []string{"/usr", "/var"},
			AllowEgress:    []Endpoint{{Prefix: netip.MustParsePrefix("0.0.0.0/0")}},
			AllowHosts:     []Host{{"api.example.com", 443, ""}},
			Env:            map[string]string{"A": "x\n\ty", "B": "env:HOST_B?", "PATH": "/bin"},
			Volumes: []Volume{
				{Host: "{profile_dir}/cache", Container: "/c"},
				{Host: "{profile_dir}/look", Container: "/d", ReadOnly: true, Relabel: "Z"},
				{Host: "~/.aws", Container: "/root/.aws", ReadOnly: true},
				{Host: "{workspace_dir}/out", Container: "/out"},
				{Host: "/srv/{profile_name}/a b:c,d", Container: "/e f", ReadOnly: true, Relabel: "z"},
			},
			Command: []string{"claude", "--say", "a b"},
			Setup:   []string{"npm i", "x\ny"},
			Ports:   []Port{{1455, 1455}, {8080, 80}},
			Git:     "writeback", Branch: "agent/x", Tree: "worktree", State: "workspace",
			Memory: "4g", CPUs: "1.5", PIDs: 512,
		}},
	}
	origin := c.Origin
	c.Origin = nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	for key, line := range map[string]int{"storage": 2, "network.on_deny": 9, "profiles.a_b-2": 18, "profiles.a_b-2.env.B": 23, "profiles.a_b-2.pids": 42} {
		if want := (Position{"lazaret.toml", line, Workspace}); origin[key] != want {
			t.Errorf("origin of %s is %+v, want %+v", key, origin[key], want)
		}
	}
}

func TestMerge(t *testing.T) {
	c := mustLoad(t, `
[network]
default_deny = ["192.168.0.0/16"]
allow_hosts = ["a.example.org"]
[profiles.p1]
image = "builtin:shell"
ports = ["1", "2"]
env = { A = "1", B = "1" }
`, `
[network]
default_deny = []
allow_hosts = ["b.example.org"]
[profiles.p1]
ports = ["3"]
[profiles.p1.env]
B = "2"
`)
	if got, want := c.Network.DefaultDeny, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.0.0/16")}; !reflect.DeepEqual(got, want) {
		t.Errorf("default_deny is %v: it must be the union %v", got, want)
	}
	if got, want := c.Network.AllowHosts, []Host{{"b.example.org", 443, ""}}; !reflect.DeepEqual(got, want) {
		t.Errorf("allow_hosts is %v: arrays are replaced, want %v", got, want)
	}
	p := c.Profiles["p1"]
	if want := []Port{{3, 3}}; !reflect.DeepEqual(p.Ports, want) {
		t.Errorf("ports are %v, want %v", p.Ports, want)
	}
	if want := map[string]string{"A": "1", "B": "2"}; !reflect.DeepEqual(p.Env, want) {
		t.Errorf("env is %v: tables merge by key, want %v", p.Env, want)
	}
	for key, want := range map[string]Position{
		"storage.data_root":    {"config.toml", 3, User},
		"profiles.p1.image":    {"lazaret.toml", 6, Workspace},
		"profiles.p1.ports":    {"over.toml", 6, Override},
		"profiles.p1.env.A":    {"lazaret.toml", 8, Workspace},
		"profiles.p1.env.B":    {"over.toml", 8, Override},
		"network.default_deny": {"over.toml", 3, Override},
	} {
		if c.Origin[key] != want {
			t.Errorf("origin of %s is %+v, want %+v", key, c.Origin[key], want)
		}
	}
	if _, ok := c.Origin["profiles.p1.git"]; ok {
		t.Error("a default has an origin")
	}
}

// A lower layer's array elements keep their own file and line in the union.
func TestMergeReportsInTheRightFile(t *testing.T) {
	_, err := Load([]Layer{
		{Kind: User, Name: "config.toml", Data: []byte(strings.Replace(base, "10.0.0.0/8", "10.0.0.1/8", 1))},
		{Kind: Workspace, Name: "lazaret.toml", Data: []byte("[network]\ndefault_deny = [\n'::1']")},
	})
	want := `config.toml:7: network.default_deny[0]: "10.0.0.1/8": the address goes on after its first 8 bits; write "10.0.0.0/8", or "10.0.0.1/32" for the one address
lazaret.toml:3: network.default_deny[0]: "::1" is an address without a length; write "::1/128"
`
	if got := all(err); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNoLayers(t *testing.T) {
	if _, err := Load(nil); err == nil || err.Error() != "no configuration" {
		t.Errorf("got %v", err)
	}
}

func TestMissingKeys(t *testing.T) {
	_, err := Load([]Layer{{Name: "lazaret.toml", Data: []byte("\n[storage]\noverlay = 'auto'\n[profiles.p1]\nvolumes = [\n{ host = '/srv' },\n{ container = '/srv' } ]")}})
	want := `lazaret.toml: escalation.enabled: missing; add enabled = false
lazaret.toml: escalation.socket_dir: missing; add socket_dir = "{runtime_dir}/lazaret"
lazaret.toml: network.default_allow: missing; add default_allow = []
lazaret.toml: network.default_deny: missing; add default_deny = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
lazaret.toml:2: storage.data_root: missing; add data_root = "~/.local/share/lazaret"
lazaret.toml:4: profiles.p1.image: missing; add image = "docker.io/library/debian:trixie"
lazaret.toml:6: profiles.p1.volumes[0].container: missing; add container = "/root/.cache"
lazaret.toml:7: profiles.p1.volumes[1].host: missing; add host = "{profile_dir}/cache"
`
	if got := all(err); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// One error prints as itself and keeps its hint apart; several print a line
// each, with the hints, and claim none for the whole.
func TestErrorForms(t *testing.T) {
	_, err := load("[storage]\noverlay = 'nativ'")
	var h interface{ Hint() string }
	if !errors.As(err, &h) || h.Hint() != "did you mean native?" {
		t.Errorf("hint of one error is wrong: %v", err)
	}
	if got, want := err.Error(), `lazaret.toml:2: storage.overlay: "nativ" is not one of auto, native, fuse-overlayfs`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = load("[storage]\noverlay = 'nativ'\n[network]\non_deny = 'rejct'")
	if !errors.As(err, &h) || h.Hint() != "" {
		t.Errorf("two errors have the hint of one: %q", h.Hint())
	}
	want := `lazaret.toml:2: storage.overlay: "nativ" is not one of auto, native, fuse-overlayfs; did you mean native?
lazaret.toml:4: network.on_deny: "rejct" is not one of reject, blackhole; did you mean reject?`
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}
