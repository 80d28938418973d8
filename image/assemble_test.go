package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func fixedSpec() Spec {
	return Spec{
		Platform: "linux/arm64",
		Files: []File{
			{Path: "/bin/z", Link: "/bin/tool"},
			{Path: "/bin/tool", Mode: 0o755, Data: []byte("#!/bin/true\n")},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
			{Path: "/bin/a", Link: "/bin/tool"},
			{Path: "/empty", Mode: 0o600},
		},
		Entrypoint: []string{"/bin/tool"},
		Command:    []string{"<&>"},
		Env:        []string{"A=b"},
		User:       "0:0",
		WorkingDir: "/",
		Labels:     map[string]string{"b": "2", "a": "1"},
	}
}

// These digests are what every build on every machine must give. When they
// change, every lock changes: that must be meant.
func TestAssembleGolden(t *testing.T) {
	spec := fixedSpec()
	for range 3 { // whatever order maps and callers have
		img, err := Assemble(spec)
		if err != nil {
			t.Fatal(err)
		}
		manifest, config, layer, size, err := digestsOf(img)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{manifest.Hex, config.Hex, layer.Hex}
		want := []string{
			"e4ad9cb574aaa941073bf5f798881ddc8f3ee0b85f921b7e93c2ad3b966bc2aa",
			"daf84c23176bb016347b1f115bdcf6f0ffc2c8d4b75ddbde22d1c89a9ddc9908",
			"407635a287b71d6d75bbf30079fb214830639925a96be1d2c33345ee39185193",
		}
		if !slices.Equal(got, want) {
			t.Errorf("manifest, config and layer are\n%q\nwant\n%q", got, want)
		}
		if size%512 != 0 || size == 0 {
			t.Errorf("the layer has %d bytes, which is no tar", size)
		}
		slices.Reverse(spec.Files)
	}
}

func TestAssembledLayer(t *testing.T) {
	img, err := Assemble(fixedSpec())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for h := range entries(t, img) {
		got = append(got, string(h.Typeflag)+" "+h.Name+" "+h.Linkname)
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Format&tar.FormatUSTAR == 0 {
			t.Errorf("%s carries something of the machine it was packed on: %+v", h.Name, h)
		}
		if h.Name == "tmp/" && h.Mode != 0o1777 {
			t.Errorf("tmp has mode %o", h.Mode)
		}
	}
	want := []string{"5 bin/ ", "0 bin/tool ", "0 empty ", "5 tmp/ ", "1 bin/a bin/tool", "1 bin/z bin/tool"}
	if !slices.Equal(got, want) {
		t.Errorf("the layer holds %q, want %q", got, want)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.History) != 0 || !cfg.Created.IsZero() {
		t.Errorf("the config has history %v and time %v", cfg.History, cfg.Created)
	}
}

func entries(t *testing.T, img v1.Image) func(func(*tar.Header) bool) {
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(r)
	return func(yield func(*tar.Header) bool) {
		defer r.Close()
		for {
			h, err := tr.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(h) {
				return
			}
		}
	}
}

func TestAssembleRefuses(t *testing.T) {
	for _, files := range [][]File{
		{{Path: "bin/x"}},
		{{Path: "/bin/../x"}},
		{{Path: "/"}},
		{{Path: "/a"}, {Path: "/a"}},
		{{Path: "/a"}, {Path: "/a/b"}},
		{{Path: "/a", Link: "/b"}},
		{{Path: "/a", Link: "/b"}, {Path: "/b", Link: "/c"}, {Path: "/c"}},
		{{Path: "/" + strings.Repeat("n", 101)}}, // more than USTAR holds: no silent PAX
	} {
		if _, err := Assemble(Spec{Platform: "linux/amd64", Files: files}); err == nil {
			t.Errorf("%+v was assembled", files)
		}
	}
	if _, err := Assemble(Spec{Platform: "amd64"}); err == nil {
		t.Error("a platform without a system was accepted")
	}
}

func TestWriteLayout(t *testing.T) {
	img, err := Assemble(fixedSpec())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if err := WriteLayout(dir, img, "tag"); err != nil {
		t.Fatal(err)
	}
	got, err := NewResolver(Options{}).Resolve(t.Context(), "oci:"+dir, []string{"linux/arm64"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Platforms["linux-arm64"]; p.Config != config.String() || p.User != "0:0" {
		t.Errorf("the layout resolves to %+v, want config %s", p, config)
	}
	layer, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer[0].DiffID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "blobs", "sha256", digest.Hex)); err != nil {
		t.Errorf("the layer is not there under its diff id, so it was compressed: %v", err)
	}
}

// A fresh clone builds without helpers and says what to do.
func TestMissingHelpers(t *testing.T) {
	good, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	sums := []byte(sha256Of(good).Hex + "  lazaret-guest\n")
	file := func(b []byte) *fstest.MapFile { return &fstest.MapFile{Data: b} }
	for name, fsys := range map[string]fstest.MapFS{
		"has none":          {"helpers/README": file(nil)},
		"did not finish":    {"helpers/linux-amd64/lazaret-guest": file(good)},
		"not the one":       {"helpers/linux-amd64/lazaret-guest": file(good[:4096]), "helpers/linux-amd64/SHA256SUMS": file(sums)},
		"not an ELF file":   {"helpers/linux-amd64/lazaret-guest": file(nil), "helpers/linux-amd64/SHA256SUMS": file([]byte(sha256Of(nil).Hex + "  lazaret-guest\n"))},
		"is not of the for": {},
	} {
		platform := "linux/amd64"
		if strings.HasPrefix(name, "is not") {
			platform, name = "amd64", "is not of the form"
		}
		_, err := binary(fsys, GuestName, platform)
		var missing *HelperError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), name) || missing.Hint() != `run "make build"` {
			t.Errorf("got %v, want a *HelperError with %q", err, name)
		}
	}
}

func BenchmarkAssembleSidecar(b *testing.B) {
	spec := sidecarSpec("linux/amd64", bytes.Repeat([]byte("x"), 3<<20))
	for b.Loop() {
		if _, err := Assemble(spec); err != nil {
			b.Fatal(err)
		}
	}
}
