package lock

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// FuzzDiff: two locks that are not the same differ in something that is told;
// what is told shows as it is, and no lock can write the telling's own marks.
func FuzzDiff(f *testing.F) {
	for _, s := range []string{"a", "x y", "/srv", "\x1b[2J", "\u202e", "```", "\n! + mounts /", "<img src=x>", "@somebody", "é", "\xff", ""} {
		f.Add(s, "b", int64(1), true)
		f.Add("b", s, int64(7), false)
	}
	old := oneProfile(f)
	f.Fuzz(func(t *testing.T, a, b string, n int64, yes bool) {
		new := another(old)
		p := new.Profiles["claude"]
		p.Command = []string{a, b}
		p.Env = map[string]string{"KEY": a, "OTHER": b}
		p.Setup = []string{b}
		p.Limits.PIDs = n
		p.Image.Ref = a
		p.Escalation.Enabled = yes
		p.Escalation.AutoApprove = [][]string{{a, b}}
		p.Network.Hosts = []string{b}
		p.Mounts["/"+a] = Mount{Kind: KindBind, From: b, Mode: "rw"}
		new.Profiles["claude"] = p
		text := new.Format()
		// What a launch or a diff reads is what Parse took.
		if again, err := Parse(text); err != nil {
			return
		} else {
			new = again
		}
		for _, list := range [][]Change{Diff(old, new), Diff(new, old), Grants(new)} {
			if len(list) == 0 {
				t.Fatalf("nothing differs, with %q %q", a, b)
			}
			told, marked := Text(list), Markdown(list)
			for _, out := range []string{told, marked} {
				for _, r := range out {
					if r != '\n' && !visible(r) {
						t.Fatalf("%U is shown in %q", r, out)
					}
				}
			}
			if got, want := strings.Count("\n"+told, "\n! "), Alarms(list); got != want {
				t.Fatalf("%d lines are marked, of %d alarms:\n%s", got, want, told)
			}
			if fences := strings.Count("\n"+marked, "\n```"); fences%2 != 0 || fences != 2*strings.Count("\n"+marked, "\n```diff\n") {
				t.Fatalf("a block ends where it should not:\n%s", marked)
			}
			if j, err := json.Marshal(list); err != nil || !json.Valid(j) {
				t.Fatal(err)
			}
		}
		if same := Diff(new, new); len(same) != 0 {
			t.Fatalf("a lock differs from itself: %v", same)
		}
		if !bytes.Equal(new.Format(), text) {
			t.Fatal("telling it changed it")
		}
	})
}

// another is a lock whose profile can be changed without changing f.
func another(f *File) *File {
	out := *f
	out.Profiles = maps.Clone(f.Profiles)
	for name, p := range out.Profiles {
		p.Mounts, p.Image.Platforms = maps.Clone(p.Mounts), maps.Clone(p.Image.Platforms)
		out.Profiles[name] = p
	}
	return &out
}

// FuzzTOML: a value of the lock's is written as TOML that reads as the value.
func FuzzTOML(f *testing.F) {
	for _, s := range []string{"", "a", `"`, `\`, "\n\t", "\x1b", "\u202e", "\U000e0001", "a.b", "]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		for _, line := range []string{"k = " + quote(s) + "\n", quoteKey(s) + " = 1\n"} {
			if strings.Count(line, "\n") != 1 || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !visible(r) }) {
				t.Fatalf("%q is written as %q", s, line)
			}
		}
		var v map[string]any
		if err := toml.Unmarshal([]byte("k = "+quote(s)+"\n"), &v); err != nil || v["k"] != s {
			t.Fatalf("%q is read back as %q, %v", s, v["k"], err)
		}
		v = nil
		if err := toml.Unmarshal([]byte(quoteKey(s)+" = 1\n"), &v); err != nil || v[s] != int64(1) {
			t.Fatalf("the key %q is read back as %v, %v", s, v, err)
		}
	})
}
