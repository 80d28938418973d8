package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestTrustedHelpers: the person's own layer says whose programs may run here,
// and no other one.
func TestTrustedHelpers(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	text := "[trust]\nhelpers = [\"" + b + "\", \"" + a + "\", \"" + b + "\"]\n"
	got, err := TrustedHelpers(Layer{Kind: User, Name: "config.toml", Data: []byte(text)})
	if err != nil || !slices.Equal(got, []string{a, b}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := TrustedHelpers(Layer{Kind: User, Name: "config.toml", Data: []byte("[network]\ndefault_allow = []\n")}); err != nil || len(got) != 0 {
		t.Errorf("without the table: %q, %v", got, err)
	}
	for _, kind := range []Kind{Workspace, Override} {
		l := Layer{Kind: kind, Name: "lazaret.toml", Data: []byte(text)}
		if got, err := TrustedHelpers(l); err == nil {
			t.Errorf("%s: %q", kind, got)
		}
		if _, err := Load([]Layer{l}); err == nil || !strings.Contains(err.Error(), "only for your own configuration") {
			t.Errorf("%s: loaded: %v", kind, err)
		}
		if _, err := l.Canonical(); err == nil {
			t.Errorf("%s: has a canonical form", kind)
		}
	}
	for _, bad := range []string{`["sha256:abc"]`, `["` + a[7:] + `"]`, `"` + a + `"`, `[1]`} {
		if _, err := TrustedHelpers(Layer{Kind: User, Name: "config.toml", Data: []byte("[trust]\nhelpers = " + bad)}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	// No lock depends on it.
	with, err1 := Layer{Kind: User, Name: "config.toml", Data: []byte("[network]\nsidecar = \"\"\n" + text)}.Canonical()
	without, err2 := Layer{Kind: User, Name: "config.toml", Data: []byte("[network]\nsidecar = \"\"\n")}.Canonical()
	if err1 != nil || err2 != nil || !bytes.Equal(with, without) {
		t.Errorf("%q and %q, %v %v", with, without, err1, err2)
	}
}
