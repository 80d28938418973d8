package lock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func clone(t testing.TB, f *File) *File {
	t.Helper()
	out, err := Salvage(f.Format())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// oneProfile is a lock in which every field is set, and no more of them than
// that takes.
func oneProfile(t testing.TB) *File {
	f := richFile(t)
	delete(f.Profiles, "plain")
	return f
}

// mutations are all the ways to change one value of a lock, by dotted key.
func mutations(t testing.TB, f *File, r *rand.Rand) (out []func()) {
	t.Helper()
	var visit func(v reflect.Value, set func(reflect.Value))
	visit = func(v reflect.Value, set func(reflect.Value)) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem(), func(n reflect.Value) { v.Elem().Set(n) })
			}
		case reflect.Struct:
			now := reflect.New(v.Type()).Elem()
			now.Set(v)
			for i := range v.NumField() {
				visit(now.Field(i), func(n reflect.Value) {
					now.Field(i).Set(n)
					set(now)
				})
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				visit(v.MapIndex(k), func(n reflect.Value) { v.SetMapIndex(k, n) })
			}
			if v.Type().Elem().Kind() == reflect.String {
				out = append(out, func() {
					if v.Len() > 0 {
						v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("NEW%d", r.IntN(3))), reflect.ValueOf(fmt.Sprint("fresh ", r.IntN(3))))
					}
				})
			}
		case reflect.Slice:
			out = append(out, func() {
				n := reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()+1), v)
				switch {
				case n.Len() > 1 && r.IntN(3) == 0: // another order
					a := reflect.New(v.Type().Elem()).Elem()
					a.Set(n.Index(0))
					n.Index(0).Set(n.Index(n.Len() - 1))
					n.Index(n.Len() - 1).Set(a)
				case n.Len() > 0 && r.IntN(2) == 0:
					n = n.Slice(0, n.Len()-1)
				default:
					n = reflect.Append(n, element(v.Type().Elem(), r))
				}
				set(n)
			})
		default:
			out = append(out, func() {
				switch v.Kind() {
				case reflect.String:
					set(reflect.ValueOf(fmt.Sprint("mutant-", r.IntN(3))))
				case reflect.Bool:
					set(reflect.ValueOf(!v.Bool()))
				default:
					set(reflect.ValueOf(int64(4000 + r.IntN(3))).Convert(v.Type()))
				}
			})
		}
	}
	visit(reflect.ValueOf(f).Elem(), func(n reflect.Value) { reflect.ValueOf(f).Elem().Set(n) })
	return out
}

func element(t reflect.Type, r *rand.Rand) reflect.Value {
	if t.Kind() == reflect.Slice {
		return reflect.ValueOf([]string{"mutant", fmt.Sprint(r.IntN(3))})
	}
	return reflect.ValueOf(fmt.Sprint("mutant-", r.IntN(3)))
}

// differingKeys finds out by itself, from the text, which keys differ.
func differingKeys(a, b *File) map[string]bool {
	text := func(f *File) map[string][]string {
		m := map[string][]string{}
		walk(nil, reflect.ValueOf(f).Elem(), func(l leaf) { k := keyPath(l.path); m[k] = append(m[k], show(l.value)) })
		return m
	}
	x, y := text(a), text(b)
	out := map[string]bool{}
	for k := range x {
		if !slices.Equal(x[k], y[k]) {
			out[k] = true
		}
	}
	for k := range y {
		if !slices.Equal(x[k], y[k]) {
			out[k] = true
		}
	}
	return out
}

// TestDiffOmitsNothing: locks differ exactly where the diff is not empty, and
// every key that differs is told in exactly the changes.
func TestDiffOmitsNothing(t *testing.T) {
	if got := Diff(richFile(t), richFile(t)); len(got) != 0 {
		t.Fatalf("a lock differs from itself: %+v", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	base := oneProfile(t)
	kinds := len(mutations(t, clone(t, base), r))
	if kinds < 60 {
		t.Fatalf("only %d values to change", kinds)
	}
	check := func(a, b *File) {
		t.Helper()
		list := Diff(a, b)
		same := bytes.Equal(a.Format(), b.Format())
		if same != (len(list) == 0) {
			t.Fatalf("same text %v, %d changes\n%s", same, len(list), b.Format())
		}
		want := differingKeys(a, b)
		got := map[string]bool{}
		for _, c := range list {
			if len(c.Parts) == 0 || c.Text == "" {
				t.Fatalf("says nothing: %+v", c)
			}
			for _, p := range c.Parts {
				got[p.Key] = true
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("told %v, want %v", got, want)
		}
		if back := Diff(b, a); len(back) == 0 != same {
			t.Fatalf("the other way round: %d changes", len(back))
		}
	}
	for i := range kinds { // each value by itself
		b := clone(t, base)
		mutations(t, b, r)[i]()
		check(base, b)
	}
	for range 60 { // several at once, on both sides
		a, b := clone(t, base), clone(t, base)
		for range 1 + r.IntN(4) {
			m := mutations(t, b, r)
			m[r.IntN(len(m))]()
			if r.IntN(3) == 0 {
				m = mutations(t, a, r)
				m[r.IntN(len(m))]()
			}
		}
		if r.IntN(10) == 0 {
			delete(b.Profiles, "claude")
		}
		check(a, b)
	}
	check(base, &File{Version: 1, Profiles: map[string]Profile{}})
}

// TestDiffSaysTheValue: whatever changes, the sentence holds the new value.
func TestDiffSaysTheValue(t *testing.T) {
	base := oneProfile(t)
	r := rand.New(rand.NewPCG(3, 4))
	n := len(mutations(t, clone(t, base), r))
	said := 0
	for i := range n {
		b := clone(t, base)
		mutations(t, b, r)[i]()
		for _, c := range Diff(base, b) {
			for _, p := range c.Parts {
				if p.New == nil {
					continue
				}
				v := strings.Trim(*p.New, `"`)
				if strings.HasPrefix(v, "mutant") || strings.HasPrefix(v, "400") {
					said++
					if !strings.Contains(c.Text, v) {
						t.Errorf("%s became %s: said only %q", p.Key, v, c.Text)
					}
				}
			}
		}
	}
	if said < 50 {
		t.Errorf("only %d values were looked at", said)
	}
}

// TestGrantsTellEveryField: each field's sentence appears for a lock that sets
// all of them.
func TestGrantsTellEveryField(t *testing.T) {
	told := map[string]bool{}
	for _, c := range Grants(richFile(t)) {
		for _, p := range c.Parts {
			told[p.Key] = true
		}
	}
	walk(nil, reflect.ValueOf(richFile(t)).Elem(), func(l leaf) {
		if !told[keyPath(l.path)] {
			t.Errorf("%s is not told", keyPath(l.path))
		}
	})
}

func diffOf(t *testing.T, edit func(f *File)) []Change {
	t.Helper()
	b := richFile(t)
	edit(b)
	return Diff(richFile(t), b)
}

func profileOf(f *File, name string, edit func(*Profile)) {
	p := f.Profiles[name]
	edit(&p)
	f.Profiles[name] = p
}

func TestDiffWords(t *testing.T) {
	claude := func(edit func(*Profile)) func(*File) {
		return func(f *File) { profileOf(f, "claude", edit) }
	}
	for _, tt := range []struct {
		name string
		edit func(*File)
		want []string
	}{
		{"volume", claude(func(p *Profile) { p.Mounts["/root/.ssh"] = Mount{Kind: KindBind, From: "~/.ssh", Mode: "ro"} }),
			[]string{"! + mounts ~/.ssh at /root/.ssh, read-only"}},
		{"volume gets writable", claude(func(p *Profile) { p.Mounts["/root/.aws"] = Mount{Kind: KindBind, From: "~/.aws", Mode: "rw"} }),
			[]string{"! ~ mounts ~/.aws at /root/.aws, read-only → mounts ~/.aws at /root/.aws, read-write"}},
		{"volume under the profile", claude(func(p *Profile) { p.Mounts["/x"] = Mount{Kind: KindBind, From: "{profile_dir}/x", Mode: "rw"} }),
			[]string{"  + mounts {profile_dir}/x at /x, read-write"}},
		{"name with a blank and worse", claude(func(p *Profile) { p.Mounts["/x"] = Mount{Kind: KindBind, From: "/a b\u202e", Mode: "rw,z"} }),
			[]string{`! + mounts "/a b\u202E" at /x, read-write, relabelled (z)`}},
		{"mask gone", claude(func(p *Profile) { delete(p.Mounts, "/workspace/.vscode") }),
			[]string{"! - an empty directory in memory at /workspace/.vscode, at most 16m"}},
		{"lock writable", claude(func(p *Profile) {
			p.Mounts["/workspace/lazaret.lock"] = Mount{Kind: KindBind, From: "{workspace_dir}/lazaret.lock", Mode: "rw"}
		}), []string{"! ~ mounts {workspace_dir}/lazaret.lock at /workspace/lazaret.lock, read-only → mounts {workspace_dir}/lazaret.lock at /workspace/lazaret.lock, read-write"}},
		{"host variable", claude(func(p *Profile) { p.Env["AWS_SECRET"] = "env:AWS_SECRET" }), []string{"! + sets AWS_SECRET to env:AWS_SECRET"}},
		{"plain variable", claude(func(p *Profile) { p.Env["A"] = "b c" }), []string{`  + sets A to "b c"`}},
		{"public range", claude(func(p *Profile) { p.Network.Allow = append(p.Network.Allow, "1.1.1.1/32") }), []string{"  + reaches 1.1.1.1/32"}},
		{"private range", claude(func(p *Profile) { p.Network.Allow = append(p.Network.Allow, "192.168.7.0/24") }), []string{"! + reaches 192.168.7.0/24"}},
		{"everything", claude(func(p *Profile) { p.Network.Allow = []string{"0.0.0.0/0"} }),
			[]string{"! + reaches 0.0.0.0/0", "  - reaches 9.9.9.9/32:53", "  - reaches 10.20.0.0/16", "  - reaches [2001:db8:1::/48]:443/tcp"}},
		{"denied no more", claude(func(p *Profile) { p.Network.Deny = p.Network.Deny[1:] }), []string{"! - never reaches 10.0.0.0/8"}},
		{"always denied no more", claude(func(p *Profile) { p.Network.AlwaysDeny = p.Network.AlwaysDeny[1:] }),
			[]string{"! - never reaches 0.0.0.0/8 unless a narrower range is allowed"}},
		{"writeback", claude(func(p *Profile) { p.Git.Mode = "writeback" }), []string{"! ~ git quarantine → writeback (your repository's own objects and branches)"}},
		{"runtime", claude(func(p *Profile) { p.Runtime = []string{"crun"} }), []string{"! ~ runs under runsc host-uds=open → crun"}},
		{"auto approve", claude(func(p *Profile) {
			p.Escalation.AutoApprove = append(p.Escalation.AutoApprove, []string{"ls", "a b"})
		}), []string{`! + runs ls "a b" … on the host without asking`}},
		{"setup in another order", claude(func(p *Profile) { slices.Reverse(p.Setup) }),
			[]string{`  ~ sets up with "printf 'a\tb'\necho done", "npm install -g claude" (in this order now)`}},
		{"data root", func(f *File) { f.Storage.DataRoot = "~/.config" }, []string{"! ~ keeps state under ~/.local/share/lazaret → ~/.config"}},
		{"image", claude(func(p *Profile) {
			p.Image.Index = "sha256:" + strings.Repeat("ab", 32)
			pi := p.Image.Platforms["linux-amd64"]
			pi.Config = "sha256:" + strings.Repeat("cd", 32)
			p.Image.Platforms["linux-amd64"] = pi
		}), []string{"  ~ image registry.example/node:24: index c4655ea86c9c… → abababababab…, linux-amd64 image id 6cb2257cb782… → cdcdcdcdcdcd…"}},
		{"entrypoint on both", claude(func(p *Profile) {
			for k, pi := range p.Image.Platforms {
				pi.Entrypoint = []string{"/evil"}
				p.Image.Platforms[k] = pi
			}
		}), []string{"  ~ image entrypoint docker-entrypoint.sh → /evil"}},
		{"entrypoint on one", claude(func(p *Profile) {
			pi := p.Image.Platforms["linux-arm64"]
			pi.Entrypoint = []string{"/evil"}
			p.Image.Platforms["linux-arm64"] = pi
		}), []string{"  ~ image entrypoint docker-entrypoint.sh → /evil (linux-arm64)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range diffOf(t, tt.edit) {
				got = append(got, c.Line())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestDiffOrder: whatever a change is hidden among, alarms come first, and
// what every sandbox has comes last.
func TestDiffOrder(t *testing.T) {
	list := Grants(richFile(t))
	for _, g := range Groups(list) {
		last := -1
		for _, c := range g {
			if c.rank() < last {
				t.Errorf("%s stands below what is less risky", c.Line())
			}
			last = c.rank()
		}
	}
	if !list[0].Alarm {
		t.Errorf("the first is %s of %q", list[0].Line(), list[0].Profile)
	}
	// The base of every sandbox is told in few lines, none of them an alarm.
	own := 0
	for _, c := range list {
		if c.Own {
			own++
			if c.Alarm {
				t.Errorf("an alarm about what every sandbox has: %s", c.Line())
			}
		}
	}
	if own < 10 || own > 40 {
		t.Errorf("%d lines about what every sandbox has", own)
	}
}

func TestDiffHeadings(t *testing.T) {
	f := richFile(t)
	delete(f.Profiles, "plain")
	text := Text(Diff(richFile(t), f))
	if !strings.HasPrefix(text, "profile plain (gone)\n") {
		t.Errorf("got %s", text)
	}
	if text := Text(Diff(f, richFile(t))); !strings.HasPrefix(text, "profile plain (new)\n! + ") {
		t.Errorf("got %s", text)
	}
}

// TestDiffIsOneLine: nothing that a lock holds can begin a line of its own,
// end a fenced block, or show as something else.
func TestDiffIsOneLine(t *testing.T) {
	hostile := "x\n```\n# heading @everyone <img src=//evil>\x1b[2J\u202e"
	list := diffOf(t, func(f *File) {
		f.Storage.Overlay = hostile
		profileOf(f, "claude", func(p *Profile) {
			p.Env["A"], p.State = hostile, hostile
			p.Command = []string{hostile}
			p.Setup = append(p.Setup, hostile)
			p.Mounts["/a"+hostile] = Mount{Kind: hostile, From: hostile, Name: hostile, Mode: hostile, Size: hostile}
		})
	})
	for _, c := range list {
		for _, r := range c.Text {
			if !visible(r) {
				t.Errorf("%q holds %U", c.Text, r)
			}
		}
	}
	fences := 0
	for line := range strings.Lines(Markdown(list)) {
		switch {
		case strings.HasPrefix(line, "```"):
			fences++
		case fences%2 == 1 && !strings.ContainsAny(line[:1], "+-!#"):
			t.Errorf("a line of a block begins with %q", line[:1])
		case fences%2 == 0 && strings.Contains(line, "everyone"):
			t.Errorf("outside of a block: %s", line)
		}
	}
	if fences == 0 || fences%2 != 0 {
		t.Errorf("%d fences", fences)
	}
}

func TestDiffJSON(t *testing.T) {
	list := diffOf(t, func(f *File) { f.Storage.Overlay = "auto" })
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"~","risk":"none","text":"overlay driver native → auto","parts":[{"key":"storage.overlay","old":"\"native\"","new":"\"auto\""}]}]`
	if string(b) != want {
		t.Errorf("got %s", b)
	}
}
