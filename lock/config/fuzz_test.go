package config

import (
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLoad reads any text as a repository's layer over the user's own.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../example.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add(base)
	f.Add("[network]\ndefault_deny = []\nallow_hosts = ['a.b']\n[profiles.p1]\nimage = 'builtin:shell'\nenv = { A = 'env:B?' }")
	f.Add("[profiles.p1]\nimage = 'oci:x'\nvolumes = [{ host = '{profile_dir}/x', container = '/x', mode = 'ro,Z' }]\ncommand = 'a b'\ncpus = 1.5")
	f.Add("[escalation]\nauto_approve = ['aws sts']\nmax_output = 1\n[storage]\ndata_root = '~/x'")
	f.Add("profiles.p1 = 1\nstorage = []\n[[network]]\n")
	f.Add("\"\\u202e\" = \"\\u001b\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		layer := Layer{Kind: Workspace, Name: "lazaret.toml", Data: []byte(text)}
		layers := []Layer{{Kind: User, Name: "config.toml", Data: []byte(base)}, layer}
		c, err := Load(layers)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "lazaret.toml") {
					t.Fatalf("an error without a place: %q", line)
				}
				if checkVisible(line, "") != nil {
					t.Fatalf("an error that a screen would obey: %q", line)
				}
			}
			return
		}
		canonical, err := layer.Canonical()
		if err != nil || len(canonical) == 0 {
			t.Fatalf("a layer that loads has no canonical form: %v", err)
		}
		again, err := Load(layers)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("the same layers load differently: %v", err)
		}
		if !slices.Contains(c.Network.DefaultDeny, netip.MustParsePrefix("10.0.0.0/8")) {
			t.Fatal("the repository unblocked what the user had blocked")
		}
		for _, e := range c.Network.DefaultAllow {
			if back, err := ParseEndpoint(e.String()); err != nil || back != e {
				t.Fatalf("%s does not parse back: %v", e, err)
			}
		}
		for name, p := range c.Profiles {
			tk := Tokens{ProfileName: name, ProfileDir: "/d/" + name, WorkspaceDir: "/w", RuntimeDir: "/r", Home: "/h"}
			for _, v := range p.Volumes {
				if _, err := Expand(v.Host, tk); err != nil {
					t.Fatalf("%s was taken and does not expand: %v", v.Host, err)
				}
			}
			for _, key := range []string{"profiles." + name, "profiles." + name + ".image"} {
				if c.Origin[key].Line < 1 || c.Origin[key].File != "lazaret.toml" {
					t.Fatalf("%s has the origin %+v", key, c.Origin[key])
				}
			}
		}
		for _, argv := range slices.Concat(c.Escalation.AutoApprove, c.Escalation.AutoApproveExact) {
			if reason, banned := Banned(argv); banned {
				t.Fatalf("%q was taken although it %s", argv, reason)
			}
		}
	})
}

// FuzzShow: whatever is shown of others' text acts on no terminal, is one line,
// and text that shows as itself is shown as it is.
func FuzzShow(f *testing.F) {
	for _, s := range []string{"a b", "a\nb\r\t\x1b[2J", "\u202e\u200b\u009b31m\ufeff", "é日本", "\xff\xfe", "\U000e0001", "\u3164"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Show(s)
		if !utf8.ValidString(out) || checkVisible(out, "") != nil {
			t.Fatalf("%q is shown as %q", s, out)
		}
		if utf8.ValidString(s) && checkVisible(s, "") == nil && out != s {
			t.Fatalf("%q is shown as %q", s, out)
		}
		if Show(out) != out {
			t.Fatalf("%q, then %q", out, Show(out))
		}
	})
}
