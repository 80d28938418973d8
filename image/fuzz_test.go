package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzAnnotations: no spelling of a key that a runtime obeys gets by, and none
// of those is kept out of the lock as harmless.
func FuzzAnnotations(f *testing.F) {
	for _, o := range obeyed {
		f.Add(o.prefix, "x", uint8(1))
	}
	f.Add("seccomp.security.alpha.kubernetes.io/", "pod", uint8(9))
	f.Add("org.opencontainers.image.", "source", uint8(3))
	f.Fuzz(func(t *testing.T, prefix, rest string, shift uint8) {
		key := prefix + rest
		flipped := strings.Map(func(r rune) rune {
			if shift++; shift%3 == 0 {
				return unicode.ToUpper(r)
			}
			return r
		}, key)
		// Not EqualFold, to which more letters are the same.
		if a, b := strings.ToLower(flipped), strings.ToLower(key); a == b && (isObeyed(key) != isObeyed(flipped) || isObeyed(key) != isObeyed(" "+key+"\t")) {
			t.Fatalf("%q and %q are not judged alike", key, flipped)
		}
		for _, o := range obeyed {
			if strings.HasPrefix(key, o.prefix) && !isObeyed(key) {
				t.Fatalf("%q gets by", key)
			}
		}
		if isObeyed(key) && len(shownAnnotations(map[string]string{key: "v"})) == 0 {
			t.Fatalf("%q is obeyed, and would not be shown", key)
		}
	})
}

// FuzzLayout: whatever a stranger's layout says, resolving it ends, with an
// error that a terminal can be shown or with digests of what is there.
func FuzzLayout(f *testing.F) {
	f.Add(`{"imageLayoutVersion":"1.0.0"}`, `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:`+zeros+`","size":2}]}`, "{}")
	f.Add(`{"imageLayoutVersion":"1.0.0"}`, `{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:`+zeros+`","platform":{"os":"linux","architecture":"amd64"},"annotations":{"org.opencontainers.image.ref.name":"\u001b[2J"}}]}`, `{"manifests":[]}`)
	f.Add(`{"imageLayoutVersion":"\u202e"}`, `[]`, "")
	f.Add("", "{\"manifests\":[{\"digest\":\"sha256:../../../../etc/passwd\"}]}", "x")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, version, index, blob string) {
		sum := sha256Of([]byte(blob))
		index = strings.ReplaceAll(index, zeros, sum.Hex)
		defer os.Remove(filepath.Join(dir, "l", blobPath(sum)))
		for name, text := range map[string]string{"oci-layout": version, "index.json": index, blobPath(sum): blob} {
			path := filepath.Join(dir, "l", name)
			if os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, []byte(text), 0o600) != nil {
				t.Fatal("no layout can be made")
			}
		}
		got, err := NewResolver(Options{Dir: dir}).Resolve(t.Context(), "oci:l", []string{"linux/amd64"})
		if err == nil {
			t.Fatalf("a layout without a config is an image: %+v", got)
		}
		if msg := err.Error(); strings.ContainsFunc(msg, hides) {
			t.Fatalf("the error could act on a terminal: %q", msg)
		}
	})
}

// hides tells of a character that a person does not see, or that acts.
func hides(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// FuzzPlatform: a platform that is read is written so that it is read again.
func FuzzPlatform(f *testing.F) {
	for _, s := range []string{"linux/amd64", "linux/arm64/v8", "linux/arm/v7", "linux", "a/b/c/d", "//", "linux//x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePlatform(s)
		if err != nil {
			return
		}
		if again, err := parsePlatform(p.String()); err != nil || again != p {
			t.Fatalf("%q is %v, then %v %v", s, p, again, err)
		}
		if strings.Contains(p.key(), "/") {
			t.Fatalf("%q has the key %q", s, p.key())
		}
	})
}

// FuzzPrintable: what a registry says is shown in characters that show, and not
// without end.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[2Jb\u202e\u200b\x9b\xff", 10)
	f.Add("a\u3164b\ufe0f", 10)
	f.Add(strings.Repeat("\u0000", 100), 20)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = limit&1023 + 1
		out := printable(s, limit)
		if strings.ContainsFunc(out, hides) || len(out) > limit+16 {
			t.Fatalf("%q is shown as %q", s, out)
		}
	})
}

// FuzzAuth: a file of credentials never makes an error that quotes it.
func FuzzAuth(f *testing.F) {
	f.Add(`{"auths":{"r.example":{"auth":"dTpTRUNSRVQ="}}}`)
	f.Add(`{"auths":{"r.example":{"auth":"SECRET"}},"credsStore":"../x"}`)
	f.Add(`{"auths":{"https://r.example/v1/":{"username":"SECRET","password":1}}}`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "auth.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k := NewKeychain([]string{"REGISTRY_AUTH_FILE=" + path, "PATH=" + dir}, "")
		found, err := k.Resolve(resource("r.example/a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found.(*login).problems {
			if strings.Contains(p, "SECRET") {
				t.Fatalf("%q", p)
			}
		}
	})
}

// resource is a registry's name, and what is below it.
type resource string

func (r resource) String() string      { return string(r) }
func (r resource) RegistryStr() string { host, _, _ := strings.Cut(string(r), "/"); return host }
