package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/sidecar"
)

const reaching = `
[storage]
data_root = "~/state"
[network]
default_allow = ["10.20.0.0/16", "10.0.0.5/32:5432/tcp"]
default_deny = ["10.0.0.0/8"]
allow_hosts = ["*.example.org"]
on_deny = "blackhole"
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.my_agent]
image = "registry.example/team/image:1"
ports = ["8080:80"]
`

func networkHost() Host {
	h := fixedHost()
	h.Runc, h.Uplink = Tool{Path: "/usr/sbin/runc"}, slirp
	return h
}

func networkSteps(p *Plan) (out []string) {
	for _, s := range p.Steps {
		if strings.HasPrefix(s.Name, "network.") {
			out = append(out, s.Name)
		}
	}
	return out
}

// TestNoReachNoNetwork: where nothing is reachable there is nothing that could
// be got wrong.
func TestNoReachNoNetwork(t *testing.T) {
	plan, err := Resolve(locked(t, base), "my_agent", fixedHost(), options())
	if err != nil {
		t.Fatal(err)
	}
	if got := networkSteps(plan); got != nil || plan.HasNetwork() || !strings.Contains(plan.Text(), "--network=none") {
		t.Errorf("steps %v\n%s", got, plan.Text())
	}
}

func TestNetworkPlan(t *testing.T) {
	plan, err := Resolve(locked(t, reaching), "my_agent", networkHost(), options())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"network.socket", "network.host", "network.image", "network.box", "network.router", "network.hello", "network.cable", "network.policy", "network.ports"}
	if got := networkSteps(plan); !slices.Equal(got, want) {
		t.Errorf("steps %v", got)
	}
	last := plan.Steps[len(plan.Steps)-1]
	if last.Name != "sandbox" || !slices.Contains(last.Needs, "network.policy") {
		t.Errorf("the sandbox (%s) does not wait for the policy: %v", last.Name, last.Needs)
	}
	text := plan.Text()
	for _, line := range []string{
		`--network=ns:\<sandbox.netns\>`, "--cap-drop=all --cap-add=NET_ADMIN", "--read-only ",
		"undo: container lazaret-my_agent-0123456789ab-net", "  allow 10.20.0.0/16 0 -\n", "  allow 10.0.0.5/32 5432 tcp\n",
		"  host *.example.org 443 -\n", "  blackhole\n", "127.0.0.1:8080 to port 80", "allow_host_loopback=false", "always 169.254.0.0/16",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the plan does not say %q:\n%s", line, text)
		}
	}
}

// TestNetworkCrossesTheWire: the helper gets each operation as it was planned.
func TestNetworkCrossesTheWire(t *testing.T) {
	plan, err := Resolve(locked(t, reaching), "my_agent", networkHost(), options())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plan.Steps {
		if s.Where != step.Podman || !strings.HasPrefix(s.Name, "network.") {
			continue
		}
		kind, err := opKind(s.Op)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		raw, err := json.Marshal(s.Op)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeOp(kind, raw); err != nil || !reflect.DeepEqual(got, s.Op) {
			t.Errorf("%s: %v, %v arrives as %v", s.Name, err, s.Op, got)
		}
	}
}

func TestUplinkKind(t *testing.T) {
	if got, err := uplinkKind(Tool{Version: "4.9.4"}, "/nowhere"); err == nil && got != slirp {
		t.Errorf("podman 4: %s", got)
	}
	for _, kind := range []string{slirp, pasta} {
		argv := podman.Engine{}.Router(podman.Router{Uplink: kind})
		i := slices.Index(argv, "--network")
		if i < 0 || !strings.HasPrefix(argv[i+1], kind+":") {
			t.Errorf("%s: %q", kind, argv)
		}
	}
}

// caller plays the router.
func caller(t *testing.T, u *uplink) (net.Conn, *bufio.Reader) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net", routerSocket)
	if _, err := (ListenRouter{path, u}).Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

// TestConversation: hello, policy with the host's addresses, events, flush, end.
func TestConversation(t *testing.T) {
	policy := sidecar.Policy{Link: cable()}
	events := make(chan step.Event, 10)
	u := &uplink{policy: policy, kind: slirp, emit: func(e step.Event) { events <- e }, end: func(error) { t.Error("ended") }}
	c, r := caller(t, u)
	c.Write([]byte("hello tap0 65520\n"))
	out, err := Hello{u}.Do(t.Context(), nil)
	if err != nil || out[mtuValue] != "65520" {
		t.Fatalf("%v, %v", out, err)
	}
	got := make(chan sidecar.Policy, 1)
	go func() {
		p, _ := sidecar.ReadPolicy(r)
		c.Write([]byte("ready 3\n"))
		got <- p
	}()
	if _, err := (SendPolicy{u}).Do(t.Context(), step.Values{addrsValue: "192.0.2.1 2001:db8::1", sixValue: "yes"}); err != nil {
		t.Fatal(err)
	}
	p := <-got
	if len(p.Self) != 2 || !p.Link.IPv6() || p.Uplink6.Gateway != netip.MustParseAddr("fd00::2") {
		t.Errorf("the router got %v", p)
	}
	c.Write([]byte("denied 2 tcp 10.0.0.1 443 a%0Ab\n"))
	if e := <-events; e.Kind != step.Denied || e.Attr["address"] != "10.0.0.1" || e.Attr["name"] != "a\nb" || e.Attr["count"] != "2" {
		t.Errorf("event %v", e)
	}
	go func() {
		for {
			l, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if l == "flush\n" {
				c.Write([]byte("refused 1 x.test\nflushed\n"))
			}
		}
	}()
	u.finish(t.Context())
	if e := <-events; e.Attr["what"] != "refused" {
		t.Errorf("event %v", e)
	}
	select {
	case e := <-events:
		t.Errorf("after an orderly end: %v", e)
	default:
	}
}

// TestRouterIsHostile: whatever the router says instead of what it should, the
// sandbox does not start, or its network is taken for lost.
func TestRouterIsHostile(t *testing.T) {
	for _, said := range []string{"ready 1\n", "hello \x1b[2J 1500\n", "hello tap0 1\n", "hello tap0 99999999\n", "failed no%20route\n", strings.Repeat("x", 10000), "\n", ""} {
		u := &uplink{policy: sidecar.Policy{Link: cable()}}
		c, _ := caller(t, u)
		c.Write([]byte(said))
		if said == "" || !strings.HasSuffix(said, "\n") {
			c.Close()
		}
		if out, err := (Hello{u}).Do(t.Context(), nil); err == nil {
			t.Errorf("%.20q is taken for a hello: %v", said, out)
		}
	}
	lost := make(chan error, 1)
	events := make(chan step.Event, 10)
	u := &uplink{policy: sidecar.Policy{Link: cable()}, endWithout: true, emit: func(e step.Event) { events <- e }, end: func(err error) { lost <- err }}
	c, r := caller(t, u)
	c.Write([]byte("hello tap0 1500\n"))
	if _, err := (Hello{u}).Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		sidecar.ReadPolicy(r)
		c.Write([]byte("ready 3\nshutdown -h now\n"))
	}()
	if _, err := (SendPolicy{u}).Do(t.Context(), step.Values{}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != step.Notice || e.Err == "" {
		t.Errorf("event %v", e)
	}
	if err := <-lost; err != ErrNetworkLost {
		t.Errorf("lost: %v", err)
	}
}

// TestHelloGivesUp: a router that does not call does not keep lazaret.
func TestHelloGivesUp(t *testing.T) {
	u := &uplink{}
	if _, err := (ListenRouter{filepath.Join(t.TempDir(), "net", routerSocket), u}).Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (Hello{u}).Do(ctx, nil); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestUndoOfTheRouter(t *testing.T) {
	u := undoer{record: Record{ID: "0123456789ab", Profile: "my_agent"}, cache: t.TempDir()}
	for _, name := range []string{"lazaret-other-0123456789ab-net", "lazaret-my_agent-0123456789ab-net2", "lazaret-my_agent-ffffffffffff-net"} {
		if err := u.undo(t.Context(), step.Undo{Kind: undoContainer, Name: name}); err == nil || !strings.Contains(err.Error(), "refusing") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(u.cache, "layout-net-0123456789ab", "lazaret"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := u.undo(t.Context(), step.Undo{Kind: undoTree, Base: baseCache, Name: "layout-net-0123456789ab"}); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(u.cache); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRouterNetnsIsNotOurs: a process that shares our network is no router.
func TestRouterNetnsIsNotOurs(t *testing.T) {
	if fd, err := routerNetns(os.Getpid()); err == nil {
		t.Errorf("taken for a router's: %d", fd)
	}
}
