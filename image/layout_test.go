package image

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"

	"lazaret/lock"
)

// workspace is a directory with layouts in it.
func workspace(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newLayout(t *testing.T, dir string, add ...any) layout.Path {
	t.Helper()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range add {
		tag := layout.WithAnnotations(map[string]string{refName: string(rune('a' + i))})
		switch a := a.(type) {
		case v1.Image:
			err = l.AppendImage(a, tag)
		case v1.ImageIndex:
			err = l.AppendIndex(a, tag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestResolveLayout(t *testing.T) {
	dir := workspace(t)
	r := NewResolver(Options{Dir: dir})
	index := multiArch(t, "1")
	amd, arm := built(t, "linux/amd64", "1"), built(t, "linux/arm64", "1")
	newLayout(t, filepath.Join(dir, "index"), index)
	newLayout(t, filepath.Join(dir, "deep/er/one"), amd)
	newLayout(t, filepath.Join(dir, "two"), arm, amd)
	newLayout(t, filepath.Join(dir, "twice"), amd, amd) // one image under two names
	for ref, want := range map[string]struct {
		index     string
		platforms []string
	}{
		"oci:index":                          {digest(t, index), both},
		"oci:./index/":                       {digest(t, index), both},
		"oci:deep/er/one":                    {"", both[:1]},
		"oci:two":                            {"", both},
		"oci:twice":                          {"", both[:1]},
		"oci:" + filepath.Join(dir, "index"): {digest(t, index), both},
	} {
		got, err := r.Resolve(t.Context(), ref, want.platforms)
		if err != nil {
			t.Error(err)
			continue
		}
		if got.Ref != ref || got.Index != want.index || got.Platforms["linux-amd64"].Manifest != digest(t, amd) {
			t.Errorf("%s is %+v", ref, got)
		}
		if len(want.platforms) == 2 && got.Platforms["linux-arm64"].Manifest != digest(t, arm) {
			t.Errorf("%s for arm64 is %+v", ref, got)
		}
	}
}

func TestResolveLayoutRefuses(t *testing.T) {
	dir := workspace(t)
	r := NewResolver(Options{Dir: dir})
	amd := built(t, "linux/amd64", "1")
	blob := func(l layout.Path, h v1.Hash) string { return filepath.Join(string(l), "blobs", h.Algorithm, h.Hex) }
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(path string, with func(string) error) {
		t.Helper()
		must(os.Remove(path), with(path))
	}
	config, err := amd.ConfigName()
	must(err)
	manifest, err := amd.Digest()
	must(err)

	outside := filepath.Join(filepath.Dir(dir), "outside")
	newLayout(t, outside, amd)
	must(os.Symlink("../outside", filepath.Join(dir, "link")))
	must(os.Symlink(outside, filepath.Join(dir, "abslink")))

	newLayout(t, filepath.Join(dir, "ambiguous"), amd, built(t, "linux/amd64", "2"))
	named := newLayout(t, filepath.Join(dir, "named"))
	for _, seed := range []string{"1", "2"} {
		must(named.AppendImage(built(t, "linux/amd64", seed), layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})))
	}
	newLayout(t, filepath.Join(dir, "mixed"), multiArch(t, "1"), amd)
	newLayout(t, filepath.Join(dir, "indexes"), multiArch(t, "1"), multiArch(t, "2"))
	newLayout(t, filepath.Join(dir, "arm"), built(t, "linux/arm64", "1"))
	newLayout(t, filepath.Join(dir, "nothing"))

	holed := newLayout(t, filepath.Join(dir, "holed"), amd)
	must(os.Remove(blob(holed, manifest)))
	noConfig := newLayout(t, filepath.Join(dir, "no-config"), amd)
	must(os.Remove(blob(noConfig, config)))

	tampered := newLayout(t, filepath.Join(dir, "tampered"), amd)
	replace(blob(tampered, config), func(p string) error { return os.WriteFile(p, []byte(`{"os":"linux","architecture":"amd64"}`), 0o644) })
	leaky := newLayout(t, filepath.Join(dir, "leaky"), amd)
	replace(blob(leaky, config), func(p string) error { return os.Symlink("/etc/passwd", p) })
	relative := newLayout(t, filepath.Join(dir, "relative"), amd)
	replace(filepath.Join(string(relative), "index.json"), func(p string) error { return os.Symlink("../../outside/index.json", p) })
	endless := newLayout(t, filepath.Join(dir, "endless"), amd)
	replace(filepath.Join(string(endless), "index.json"), func(p string) error { return syscall.Mkfifo(p, 0o644) })
	zero := newLayout(t, filepath.Join(dir, "zero"), amd)
	replace(filepath.Join(string(zero), "index.json"), func(p string) error { return os.Symlink("/dev/zero", p) })
	huge := newLayout(t, filepath.Join(dir, "huge"), amd)
	must(os.Truncate(filepath.Join(string(huge), "index.json"), maxManifest+1))
	future := newLayout(t, filepath.Join(dir, "future"), amd)
	must(os.WriteFile(filepath.Join(string(future), "oci-layout"), []byte(`{"imageLayoutVersion":"2.0.0"}`), 0o644))
	hexed := newLayout(t, filepath.Join(dir, "hexed"), amd)
	must(os.WriteFile(filepath.Join(string(hexed), "index.json"), []byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../../../../outside/index.json"}]}`), 0o644))

	for ref, want := range map[string]struct {
		err  any
		says string
	}{
		"oci:":           {new(*LayoutError), "no directory"},
		"oci:missing":    {new(*LayoutError), "opening"},
		"oci:../outside": {new(*LayoutError), "escapes"},
		"oci:link":       {new(*LayoutError), "escapes"},
		"oci:abslink":    {new(*LayoutError), "escapes"},
		"oci:ambiguous":  {new(*LayoutError), "several images for linux/amd64"},
		"oci:named":      {new(*LayoutError), "several images for linux/amd64"},
		"oci:mixed":      {new(*LayoutError), "more than one image"},
		"oci:indexes":    {new(*LayoutError), "more than one image"},
		"oci:arm":        {new(*PlatformError), "it has linux/arm64"},
		"oci:nothing":    {new(*PlatformError), "nothing that runs"},
		"oci:holed":      {new(*MissingChildError), "index.json"},
		"oci:no-config":  {new(*LayoutError), "lacks the config"},
		"oci:tampered":   {new(*DigestError), "CONFIG DOES NOT MATCH"},
		"oci:leaky":      {new(*LayoutError), "escapes"},
		"oci:relative":   {new(*LayoutError), "escapes"},
		"oci:endless":    {new(*LayoutError), "not a regular file"},
		"oci:zero":       {new(*LayoutError), "escapes"},
		"oci:huge":       {new(*LayoutError), "larger"},
		"oci:future":     {new(*LayoutError), "2.0.0"},
		"oci:hexed":      {new(*LayoutError), "JSON"},
	} {
		done := make(chan error, 1)
		go func() {
			_, err := r.Resolve(t.Context(), ref, both[:1])
			done <- err
		}()
		select {
		case err := <-done:
			checkError(t, err, want.err, want.says)
		case <-time.After(time.Minute):
			t.Fatalf("%s hangs", ref)
		}
	}
	if _, err := NewResolver(Options{}).Resolve(t.Context(), "oci:index", both); err == nil {
		t.Error("a relative layout was found without a workspace")
	}
}

func TestOpenLocal(t *testing.T) {
	dir := workspace(t)
	amd := built(t, "linux/amd64", "1")
	l := newLayout(t, filepath.Join(dir, "l"), amd, built(t, "linux/arm64", "1"))
	locked, err := NewResolver(Options{Dir: dir}).Resolve(t.Context(), "oci:l", both)
	if err != nil {
		t.Fatal(err)
	}
	pinned := locked.Platforms["linux-amd64"]
	// The layout moves on; what is pinned is still what is opened.
	if err := l.ReplaceImage(built(t, "linux/amd64", "2"), match.Digests(mustDigest(t, amd))); err != nil {
		t.Fatal(err)
	}
	write := func(pinned lock.PlatformImage) (string, error) {
		img, closer, err := OpenLocal("oci:l", dir, "linux/amd64", pinned)
		if err != nil {
			return "", err
		}
		defer closer.Close()
		out := filepath.Join(t.TempDir(), "out")
		return out, WriteLayout(out, img, "")
	}
	out, err := write(pinned)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := NewResolver(Options{}).Resolve(t.Context(), "oci:"+out, both[:1])
	if err != nil || copied.Platforms["linux-amd64"].Config != pinned.Config {
		t.Errorf("the copy is %+v, %v", copied, err)
	}

	other := pinned
	other.Config = "sha256:" + zeros
	_, err = write(other)
	checkError(t, err, new(*DigestError), zeros)
	other = pinned
	other.Manifest = "sha256:" + zeros
	_, err = write(other)
	checkError(t, err, new(*LayoutError), "manifest")

	layers, err := amd.Layers()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "l/blobs/sha256", mustDigest(t, layers[0]).Hex)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2]++
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = write(pinned)
	checkError(t, err, new(*DigestError), "LAYER DOES NOT MATCH")
	if err := errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)); err != nil {
		t.Fatal(err)
	}
	if _, err = write(pinned); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("a layer that is a link out of the layout: %v", err)
	}
}

// TestOpenLocalTampered: what is opened is what was pinned, byte for byte, also
// where the files have the right names and still mean something.
func TestOpenLocalTampered(t *testing.T) {
	amd := built(t, "linux/amd64", "1")
	config, err := amd.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	for what, h := range map[string]v1.Hash{"manifest": mustDigest(t, amd), "config": config} {
		dir := workspace(t)
		newLayout(t, filepath.Join(dir, "l"), amd)
		locked, err := NewResolver(Options{Dir: dir}).Resolve(t.Context(), "oci:l", both[:1])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "l", blobPath(h))
		raw, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(raw, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		img, closer, err := OpenLocal("oci:l", dir, "linux/amd64", locked.Platforms["linux-amd64"])
		if err == nil {
			err = WriteLayout(filepath.Join(t.TempDir(), "out"), img, "")
			closer.Close()
		}
		checkError(t, err, new(*DigestError), strings.ToUpper(what)+" DOES NOT MATCH")
	}
}

// TestPipesForLayouts: a pipe where a layout, or a part of it, should be is
// refused. Nobody writes to it, so whoever opened it would wait for ever.
func TestPipesForLayouts(t *testing.T) {
	dir := workspace(t)
	newLayout(t, filepath.Join(dir, "l"), built(t, "linux/amd64", "1"))
	for _, name := range []string{"pipe", "l/index.json"} {
		os.Remove(filepath.Join(dir, name))
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range []string{"oci:pipe", "oci:" + filepath.Join(dir, "pipe"), "oci:pipe/x", "oci:l"} {
		done := make(chan error, 2)
		go func() {
			_, err := NewResolver(Options{Dir: dir}).Resolve(t.Context(), ref, both)
			done <- err
			_, _, err = OpenLocal(ref, dir, "linux/amd64", lock.PlatformImage{Manifest: "sha256:" + zeros, Config: "sha256:" + zeros})
			done <- err
		}()
		for range 2 {
			select {
			case err := <-done:
				checkError(t, err, new(*LayoutError), "")
			case <-time.After(time.Minute):
				t.Fatalf("%s: it waits", ref)
			}
		}
	}
}

func mustDigest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	h, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The layer's reader must not be bypassed by a faster way to copy a file.
func TestVerifyingReader(t *testing.T) {
	dir := workspace(t)
	amd := built(t, "linux/amd64", "1")
	newLayout(t, filepath.Join(dir, "l"), amd)
	layers, _ := amd.Layers()
	h := mustDigest(t, layers[0])
	l, err := openLayout("oci:l", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.root.Close()
	layer := &layoutLayer{l, v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: zeros}}}
	if err := os.Rename(filepath.Join(dir, "l", blobPath(h)), filepath.Join(dir, "l/blobs/sha256", zeros)); err != nil {
		t.Fatal(err)
	}
	in, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_, err = io.Copy(out, in)
	checkError(t, err, new(*DigestError), h.Hex)
}
