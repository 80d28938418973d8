package lock

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"lazaret/lock/config"
)

// base is the part of a config that every test needs.
const base = `
[storage]
data_root = "~/.local/share/lazaret"
[network]
default_allow = []
default_deny = []
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
`

// rich uses every key of the config.
const rich = `
[storage]
data_root = "~/.local/share/lazaret"
overlay = "native"
[network]
default_allow = ["10.20.0.0/16"]
default_deny = ["10.0.0.0/8", "2001:db8::/32"]
allow_hosts = ["pypi.org"]
on_deny = "blackhole"
[escalation]
enabled = true
socket_dir = "{runtime_dir}/lazaret"
auto_approve = ["aws sts get-caller-identity"]
auto_approve_exact = ["date -u"]
timeout = "90s"
max_output = "64k"
[profiles.claude]
image = "registry.example/node:24"
persistent_dirs = ["/root", "/usr/local"]
allow_egress = ["[2001:db8:1::/48]:443/tcp", "9.9.9.9/32:53"]
allow_hosts = ["*.example.org:8443", "api.example.com"]
command = ["claude", "--model", "it's \"quoted\""]
setup = ["npm install -g claude", "printf 'a\tb'\necho done"]
ports = ["1455", "8080:80"]
branch = "feature/x"
tree = "worktree"
state = "workspace"
memory = "4g"
cpus = 1.5
pids = 512
volumes = [
  { host = "{profile_dir}/cache", container = "/root/.cache" },
  { host = "~/.aws", container = "/root/.aws", mode = "ro" },
  { host = "/srv/wörk dir", container = "/srv/a:b,c", mode = "rw,Z" },
]
[profiles.claude.env]
ANTHROPIC_API_KEY = "env:ANTHROPIC_API_KEY?"
TOKEN = "env:TOKEN"
GREETING = "grüß \"dich\" \\ 'you'"
[profiles.plain]
image = "registry.example/debian@sha256:1111111111111111111111111111111111111111111111111111111111111111"
git = "none"
`

func load(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Load([]config.Layer{{Kind: config.Workspace, Name: "lazaret.toml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// digest makes a digest of words, the same each time.
func digest(words ...string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.Join(words, " "))))
}

// registry is a model of a registry: a reference leads to an image whose
// digests follow from its name and how often it was pushed.
type registry struct {
	mu     sync.Mutex
	pushed map[string]int // by reference
	asked  []string
	fail   map[string]error
	images func(ref string, i *Image) // changes what is answered, or nil
	busy   int
	most   int // references resolved at once
	meet   chan struct{}
}

func (r *registry) Resolve(_ context.Context, ref string, platforms []string) (Image, error) {
	r.mu.Lock()
	r.asked = append(r.asked, ref)
	r.busy++
	r.most = max(r.most, r.busy)
	n := r.pushed[ref]
	err := r.fail[ref]
	r.mu.Unlock()
	if r.meet != nil {
		r.meet <- struct{}{}
	}
	r.mu.Lock()
	r.busy--
	r.mu.Unlock()
	if err != nil {
		return Image{}, err
	}
	i := Image{Ref: "ignored", Index: digest(ref, "index", fmt.Sprint(n)), Platforms: map[string]PlatformImage{}}
	for _, p := range platforms {
		i.Platforms[PlatformKey(p)] = PlatformImage{
			Manifest:    digest(ref, p, "manifest", fmt.Sprint(n)),
			Config:      digest(ref, p, "config", fmt.Sprint(n)),
			Size:        4711,
			Entrypoint:  []string{"docker-entrypoint.sh"},
			Command:     []string{"sh", "-c", "a\tb\u202e"},
			User:        "node",
			WorkingDir:  "/app",
			Env:         []string{"PATH=/usr/bin", "PS1=\x1b[1m$"},
			Volumes:     []string{"/data"},
			Annotations: map[string]string{"com.example/what": "it\nis"},
		}
	}
	if r.images != nil {
		r.images(ref, &i)
	}
	return i, nil
}

func (r *registry) push(ref string) {
	if r.pushed == nil {
		r.pushed = map[string]int{}
	}
	r.pushed[ref]++
}

func ownHelpers() Helpers {
	h := Helpers{Sidecar: map[string]Sidecar{}, Escalate: map[string]Binary{}}
	for _, p := range Platforms() {
		h.Sidecar[PlatformKey(p)] = Sidecar{
			Binary: digest(p, "sidecar"), Layer: digest(p, "layer"), Config: digest(p, "config"), Manifest: digest(p, "manifest"), Size: 3459072,
		}
		h.Escalate[PlatformKey(p)] = Binary{digest(p, "escalate")}
	}
	return h
}

func request(t testing.TB, text string, r Resolver) Request {
	t.Helper()
	return Request{
		Config: load(t, text),
		Inputs: Inputs{
			Platforms: Platforms(),
			Workspace: &Input{WorkspacePath, strings.TrimPrefix(digest(text), "sha256:")},
		},
		Helpers:  ownHelpers(),
		Resolver: r,
	}
}

func build(t testing.TB, req Request) *File {
	t.Helper()
	f, _, err := Build(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// richFile is a lock in which every field is set.
func richFile(t testing.TB) *File {
	req := request(t, rich, &registry{})
	req.Inputs.User = &Input{UserPath, strings.TrimPrefix(digest("u"), "sha256:")}
	req.Inputs.Override = &Input{"ci/lazaret.toml", strings.TrimPrefix(digest("o"), "sha256:")}
	f := build(t, req)
	for k, s := range f.Sidecar {
		s.Ref = "registry.example/sidecar:1"
		f.Sidecar[k] = s
	}
	return f
}

// TestGolden keeps the text of a lock from changing unnoticed: every lock in
// every repository would be refused.
func TestGolden(t *testing.T) {
	const name = "testdata/rich.lock"
	got := richFile(t).Format()
	if os.Getenv("LAZARET_UPDATE") == "1" {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the lock is\n%s\nwant\n%s", got, want)
	}
	if f, err := Parse(got); err != nil {
		t.Errorf("Parse: %v", err)
	} else if again := f.Format(); string(again) != string(got) {
		t.Errorf("parsed and formatted again it is\n%s", again)
	}
}

// hint gives an error's hint.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func names(r *registry) []string {
	slices.Sort(r.asked)
	return r.asked
}
