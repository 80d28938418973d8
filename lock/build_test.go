package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lazaret/lock/config"
)

func profileText(name, ref string) string {
	return fmt.Sprintf("[profiles.%s]\nimage = %q\n", name, ref)
}

func TestBuildAsksOncePerReference(t *testing.T) {
	r := &registry{}
	f := build(t, request(t, base+profileText("aa", "r.example/x:1")+profileText("bb", "r.example/x:1")+profileText("cc", "r.example/y:1"), r))
	if got := names(r); !slices.Equal(got, []string{"r.example/x:1", "r.example/y:1"}) {
		t.Errorf("asked for %q", got)
	}
	if a, b := f.Profiles["aa"].Image, f.Profiles["bb"].Image; a.Ref != "r.example/x:1" || a.Index != b.Index {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	want := string(richFile(t).Format())
	for range 20 {
		if got := string(richFile(t).Format()); got != want {
			t.Fatalf("the same question gave\n%s\nand\n%s", want, got)
		}
	}
}

func TestBuildKeepsPins(t *testing.T) {
	text := base + profileText("aa", "r.example/x:1") + profileText("bb", "r.example/x:1") + profileText("cc", "r.example/y:1") + profileText("local", "builtin:shell")
	r := &registry{}
	old := build(t, request(t, text, r))
	for _, ref := range []string{"r.example/x:1", "r.example/y:1", "builtin:shell"} {
		r.push(ref)
	}
	moved := func(f *File) (out []string) {
		for name, p := range f.Profiles {
			if p.Image.Index != old.Profiles[name].Image.Index {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	for _, tt := range []struct {
		name  string
		edit  func(*Request)
		asked []string
		moved []string
	}{
		{"nothing changed", func(*Request) {}, []string{"builtin:shell"}, []string{"local"}},
		{"update one", func(q *Request) { q.Update = []string{"aa"} }, []string{"builtin:shell", "r.example/x:1"}, []string{"aa", "local"}},
		{"update all", func(q *Request) { q.UpdateAll = true }, []string{"builtin:shell", "r.example/x:1", "r.example/y:1"}, []string{"aa", "bb", "cc", "local"}},
		{"fewer platforms", func(q *Request) { q.Inputs.Platforms = []string{"linux/arm64"} }, []string{"builtin:shell"}, []string{"local"}},
		{"no earlier lock", func(q *Request) { q.Previous = nil }, []string{"builtin:shell", "r.example/x:1", "r.example/y:1"}, []string{"aa", "bb", "cc", "local"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.asked = nil
			req := request(t, text, r)
			req.Previous = old
			tt.edit(&req)
			f := build(t, req)
			if got := names(r); !slices.Equal(got, tt.asked) {
				t.Errorf("asked for %q, want %q", got, tt.asked)
			}
			if got := moved(f); !slices.Equal(got, tt.moved) {
				t.Errorf("moved %q, want %q", got, tt.moved)
			}
		})
	}

	t.Run("renamed profile", func(t *testing.T) {
		r.asked = nil
		req := request(t, base+profileText("zz", "r.example/y:1"), r)
		req.Previous = old
		if f := build(t, req); f.Profiles["zz"].Image.Index != old.Profiles["cc"].Image.Index || len(r.asked) > 0 {
			t.Errorf("asked for %q", r.asked)
		}
	})
	t.Run("a pin of too few platforms is none", func(t *testing.T) {
		r.asked = nil
		req := request(t, base+profileText("aa", "r.example/x:1"), r)
		req.Inputs.Platforms = []string{"linux/amd64"}
		one := build(t, req)
		r.asked = nil
		req = request(t, base+profileText("aa", "r.example/x:1"), r)
		req.Previous = one
		build(t, req)
		if len(r.asked) != 1 {
			t.Errorf("asked for %q", r.asked)
		}
	})
}

func TestBuildUpdateOfUnknownProfile(t *testing.T) {
	req := request(t, base+profileText("aa", "r.example/x:1"), &registry{})
	req.Update = []string{"bb"}
	_, _, err := Build(context.Background(), req)
	if err == nil || !strings.Contains(err.Error(), `updating "bb": there is no such profile: the config has aa`) {
		t.Errorf("got %v", err)
	}
}

// TestBuildResolvesConcurrently: eight at a time and no more, in a bubble where
// all of them wait for each other.
func TestBuildResolvesConcurrently(t *testing.T) {
	var text strings.Builder
	text.WriteString(base)
	for i := range 30 {
		text.WriteString(profileText(fmt.Sprintf("p%02d", i), fmt.Sprintf("r.example/x:%d", i)))
	}
	synctest.Test(t, func(t *testing.T) {
		r := &registry{meet: make(chan struct{})}
		done := make(chan struct{})
		var last, calls int
		go func() {
			defer close(done)
			req := request(t, text.String(), r)
			req.Resolved = func(_ string, n, total int) {
				calls++
				if n != last+1 || total != 30 {
					t.Errorf("told %d of %d after %d", n, total, last)
				}
				last = n
			}
			build(t, req)
		}()
		synctest.Wait()
		if r.busy != 8 {
			t.Errorf("%d references are being resolved at once, want 8", r.busy)
		}
		for range 30 {
			<-r.meet
		}
		<-done
		if r.most != 8 || calls != 30 {
			t.Errorf("at most %d at once, %d told; want 8 and 30", r.most, calls)
		}
	})
}

type hinty struct{ error }

func (hinty) Hint() string { return "do it" }

func TestBuildJoinsErrorsInOrder(t *testing.T) {
	r := &registry{fail: map[string]error{
		"r.example/a:1": hinty{errors.New("image a is gone")},
		"r.example/c:1": errors.New("image c is gone"),
	}}
	_, _, err := Build(context.Background(), request(t, base+
		profileText("cc", "r.example/c:1")+profileText("bb", "r.example/b:1")+profileText("aa", "r.example/a:1"), r))
	want := "lazaret.toml:15: profiles.aa.image: image a is gone; do it\nlazaret.toml:11: profiles.cc.image: image c is gone"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if len(r.asked) != 3 {
		t.Errorf("only %q were looked at", r.asked)
	}
}

func TestBuildStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := Build(ctx, request(t, base+profileText("aa", "r.example/a:1")+profileText("bb", "r.example/b:1"), &registry{}))
	if !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("got %v", err)
	}
}

// TestBuildRefusesNonsense: what a resolver returns is checked like anything else.
func TestBuildRefusesNonsense(t *testing.T) {
	for name, spoil := range map[string]func(string, *Image){
		"is not a digest":              func(_ string, i *Image) { i.Index = "latest" },
		"has no entry for linux/arm64": func(_ string, i *Image) { delete(i.Platforms, "linux-arm64") },
		"holds the character U+001B": func(_ string, i *Image) {
			p := i.Platforms["linux-amd64"]
			p.User = "\x1b[2J"
			i.Platforms["linux-amd64"] = p
		},
	} {
		_, _, err := Build(context.Background(), request(t, base+profileText("aa", "r.example/a:1"), &registry{images: spoil}))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want …%s…", err, name)
		}
	}
}

func TestBuildWarns(t *testing.T) {
	_, warnings, err := Build(context.Background(), request(t, strings.Replace(base, "default_deny = []", `default_deny = ["10.0.0.0/8", "0.0.0.0/0"]`, 1)+
		profileText("aa", "r.example:5000/x")+
		profileText("bb", "r.example/x:latest")+
		profileText("cc", "r.example/x:1")+
		profileText("dd", "r.example/x@"+digest("d"))+
		profileText("ee", "builtin:shell")+
		"allow_egress = [\"10.0.0.0/8:443\", \"0.0.0.0/0\", \"10.1.0.0/16\"]\n", &registry{}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		`profiles.aa.image: "r.example:5000/x" has no tag: it is whatever is newest whenever it is locked`,
		`profiles.bb.image: "r.example/x:latest" is whatever is newest whenever it is locked`,
		`profiles.ee.network: 0.0.0.0/0 is both allowed and denied: it is denied`,
		`profiles.ee.network: 10.0.0.0/8 is both allowed and denied: it is denied`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDNS(t *testing.T) {
	for _, tt := range []struct{ allow, deny, want string }{
		{``, ``, "listed"},
		{`"10.20.0.0/16"`, ``, "listed"}, // else one internal range would let names carry data out
		{`"0.0.0.0/1", "128.0.0.0/1"`, ``, "listed"},
		{`"0.0.0.0/0"`, ``, "open"},
		{`"::/0"`, ``, "open"},
		{`"0.0.0.0/0:443"`, ``, "open"},
		{`"0.0.0.0/0"`, `"0.0.0.0/0"`, "listed"},
		{`"0.0.0.0/0"`, `"10.0.0.0/8"`, "open"},
	} {
		text := strings.Replace(base, "default_deny = []", "default_deny = ["+tt.deny+"]", 1)
		f := build(t, request(t, text+profileText("aa", "r.example/x:1")+"allow_egress = ["+tt.allow+"]\n", &registry{}))
		if got := f.Profiles["aa"].Network.DNS; got != tt.want {
			t.Errorf("allow %s, deny %s: dns is %s, want %s", tt.allow, tt.deny, got, tt.want)
		}
	}
}

func TestAlwaysDeny(t *testing.T) {
	var list []netip.Prefix
	for _, s := range alwaysDeny() {
		p, err := netip.ParsePrefix(s)
		if err != nil || p != p.Masked() || p.String() != s {
			t.Errorf("%s is not canonical: %v", s, err)
		}
		list = append(list, p)
	}
	if !strictlySorted(list, netip.Prefix.Compare) {
		t.Errorf("not sorted: %v", list)
	}
	for _, a := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254", "169.254.1.2", "224.0.0.1", "255.255.255.255",
		"::1", "::", "::ffff:169.254.169.254", "::169.254.169.254", "fe80::1", "ff02::1",
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::1", "2001::1", "fd00:ec2::254",
	} {
		addr := netip.MustParseAddr(a)
		if !slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			t.Errorf("%s can be reached", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "10.0.0.1", "192.168.1.1", "2606:4700::1111", "fd12::1"} {
		addr := netip.MustParseAddr(a)
		if slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			t.Errorf("%s can never be reached", a)
		}
	}
}

// TestSidecarElsewhere: a reference in the config may only lead to this build's
// own sidecar, or a repository could choose the program that routes for it.
func TestSidecarElsewhere(t *testing.T) {
	text := strings.Replace(base, "[network]", "[network]\nsidecar = \"r.example/sidecar:1\"", 1) + profileText("aa", "builtin:shell")
	own := ownHelpers()
	same := func(ref string, i *Image) {
		if ref == "r.example/sidecar:1" {
			for k := range i.Platforms {
				i.Platforms[k] = PlatformImage{Manifest: own.Sidecar[k].Manifest, Config: own.Sidecar[k].Config}
			}
		}
	}
	r := &registry{images: same}
	f := build(t, request(t, text, r))
	if f.Sidecar["linux-amd64"].Ref != "r.example/sidecar:1" || f.Sidecar["linux-amd64"].Binary != own.Sidecar["linux-amd64"].Binary {
		t.Errorf("got %+v", f.Sidecar)
	}
	r.asked = nil
	req := request(t, text, r)
	req.Previous = f
	build(t, req)
	if slices.Contains(r.asked, "r.example/sidecar:1") {
		t.Error("asked again for a sidecar that did not change")
	}

	// A pin that another lazaret made stays, as an image's does, and is up to
	// date; only --update takes this build's own.
	other := req
	other.Helpers = ownHelpers()
	s := other.Helpers.Sidecar["linux-amd64"]
	s.Config, s.Binary = digest("next"), digest("next")
	other.Helpers.Sidecar["linux-amd64"] = s
	kept, warnings, err := Build(context.Background(), other)
	if err != nil || !maps.Equal(kept.Sidecar, f.Sidecar) || len(warnings) != 1 || warnings[0].Key != "network.sidecar" {
		t.Errorf("kept %+v, %v, %v", kept, warnings, err)
	}
	if list, _, err := Check(context.Background(), other, f); err != nil || len(list) != 0 {
		t.Errorf("another lazaret's lock is stale: %v, %v", list, err)
	}
	other.UpdateAll = true
	var moved *HelperError
	if _, _, err := Build(context.Background(), other); !errors.As(err, &moved) || !strings.Contains(hint(err), "lazaret sidecar push r.example/sidecar:1") {
		t.Errorf("updated to what the registry does not have: %v", err)
	}

	_, _, err = Build(context.Background(), request(t, text, &registry{}))
	var he *HelperError
	if !errors.As(err, &he) {
		t.Fatalf("a foreign sidecar was taken: %v", err)
	}
	if msg := err.Error(); !strings.Contains(msg, he.Found) || !strings.Contains(msg, own.Sidecar[PlatformKey(he.Platform)].Config) {
		t.Errorf("not both digests are shown: %v", err)
	}
}

func TestBuildWithoutHelpers(t *testing.T) {
	req := request(t, base+profileText("aa", "builtin:shell"), &registry{})
	delete(req.Helpers.Escalate, "linux-arm64")
	if _, _, err := Build(context.Background(), req); err == nil || !strings.Contains(err.Error(), "no helper programs for linux/arm64") {
		t.Errorf("got %v", err)
	}
}

// TestFixedMountsAreTheOnlyOnesThere: a profile that names one of lazaret's own
// places is refused, by the config or at the latest here.
func TestFixedMountsCannotBeTaken(t *testing.T) {
	for target := range fixedMounts(Inputs{}, "quarantine", true) {
		c := &config.Config{Escalation: config.Escalation{Enabled: true}}
		_, err := mounts("profiles.aa", Inputs{}, c, config.Profile{Git: "quarantine", Volumes: []config.Volume{{Host: "/srv", Container: target}}})
		var ke *KeyError
		if !errors.As(err, &ke) || ke.Key != "profiles.aa.volumes" {
			t.Errorf("%s: got %v", target, err)
		}
	}
}
