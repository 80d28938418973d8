package image

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lazaret/lock"
)

func TestParseDocument(t *testing.T) {
	const manifest = `"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:` + zeros + `","size":1}`
	for raw, want := range map[string]string{
		`{"manifests":[]}`:   "index",
		`{` + manifest + `}`: "image",
		`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`:                "index",
		`{"mediaType":"application/vnd.docker.distribution.manifest.v2+json",` + manifest + `}`: "image",
		`{"mediaType":"application/vnd.oci.image.index.v1+json"}`:                               "refused",
		`{"mediaType":"application/vnd.oci.image.index.v1+json",` + manifest + `}`:              "refused",
		`{"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[]}`:             "refused",
		`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[],"layers":[]}`:    "refused",
		`{"manifests":[],` + manifest + `}`:                                                     "refused",
		`{"mediaType":"application/vnd.oci.artifact.manifest.v1+json","blobs":[]}`:              "refused",
		`{"mediaType":"text/html",` + manifest + `}`:                                            "refused",
		`{"schemaVersion":1,"fsLayers":[]}`:                                                     "refused",
		`{}`:                                                                                    "refused",
		`[]`:                                                                                    "refused",
		`{` + manifest + `,"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:` + zeros + `","urls":[]}]}`:        "image",
		`{` + manifest + `,"layers":[{"digest":"sha256:` + zeros + `","urls":["http://169.254.169.254/"]}]}`:                                         "refused",
		`{` + manifest + `,"layers":[{"digest":"sha256:` + zeros + `"},{"digest":"sha256:` + zeros + `","URLs":["https://x/"]}]}`:                    "refused",
		`{` + manifest + `,"layers":[{"digest":"sha256:` + zeros + `","urls":["https://x/"]}],"Layers":[{"digest":"sha256:` + zeros + `"}]}`:         "refused",
		`{` + strings.TrimSuffix(manifest, "}") + `,"urls":["http://127.0.0.1/"]}}`:                                                                  "refused",
		`{` + manifest + `,"layers":[{"mediaType":"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip","digest":"sha256:` + zeros + `"}]}`: "refused",
		`{` + manifest + `,"layers":[{"mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar","digest":"sha256:` + zeros + `"}]}`:         "refused",
		`{]`: "refused",
		``:   "refused",
		`{"config":{"digest":"sha512:` + zeros + zeros + `"}}`:     "image", // describe refuses it
		`{"config":{"digest":"md5:00"}}`:                           "refused",
		`{"config":{"digest":"sha256:../../../../../etc/passwd"}}`: "refused",
		strings.Repeat(" ", maxManifest) + `{}`:                    "refused",
	} {
		d, err := parseDocument("ref", []byte(raw))
		got := "image"
		var refused *ManifestError
		switch {
		case errors.As(err, &refused):
			got = "refused"
		case err != nil:
			t.Error(err)
		case d.isIndex():
			got = "index"
		}
		if got != want {
			t.Errorf("%.90s is %s, want %s", raw, got, want)
		}
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func FuzzParseDocument(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"digest":"sha256:` + zeros + `","platform":{"os":"linux"}}]}`))
	f.Add([]byte(`{"config":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := parseDocument("ref", raw)
		if err != nil {
			return
		}
		if d.isIndex() == (d.Config != nil) || d.isIndex() && d.Layers != nil || !d.isIndex() && d.Manifests != nil {
			t.Errorf("%q can be read both ways", raw)
		}
		has(d.Manifests)
		for _, l := range d.Layers {
			if len(l.URLs) > 0 || !l.MediaType.IsDistributable() {
				t.Errorf("%q has podman ask %q", raw, l.URLs)
			}
		}
	})
}

func TestObeyedAnnotations(t *testing.T) {
	for key, obeyed := range map[string]bool{
		"dev.gvisor.flag.host-uds":                 true,
		"dev.gvisor.spec.mount.x.source":           true,
		"DEV.gVisor.flag.debug":                    true,
		"io.kubernetes.cri.sandbox-id":             true,
		"io.kubernetes.cri-o.SandboxID":            true,
		"io.podman.annotations.privileged":         true,
		"io.containers.trace-syscall":              true,
		"run.oci.handler":                          true,
		"org.systemd.property.MemoryMax":           true,
		"org.criu.config":                          true,
		"io.crun.x":                                true,
		"module.wasm.image/variant":                true,
		"seccomp.security.alpha.kubernetes.io/pod": true,
		"cdi.k8s.io/device":                        true,
		"io.katacontainers.config.hypervisor.path": true,
		"org.opencontainers.image.source":          false,
		"com.docker.official-images.bashbrew.arch": false,
		"dev.gvisorish":                            false,
		"org.example.run.oci.handler":              false,
		"kubernetes.io.example.org/x":              false,
		"":                                         false,
	} {
		if got := ObeyedAnnotations(map[string]string{key: ""}); len(got) > 0 != obeyed {
			t.Errorf("%q: obeyed is %v", key, !obeyed)
		}
	}
	got := ObeyedAnnotations(map[string]string{"run.oci.b": "", "x": "", "run.oci.a": ""})
	if !slices.Equal(got, []string{"run.oci.a", "run.oci.b"}) {
		t.Errorf("keys are %q", got)
	}
}

func TestPlatforms(t *testing.T) {
	for in, want := range map[string]string{
		"linux/amd64": "linux-amd64", "linux/arm64": "linux-arm64", "linux/arm64/v8": "linux-arm64",
		"linux/amd64/v1": "linux-amd64", "linux/amd64/v3": "linux-amd64-v3", "linux/arm64/v9": "linux-arm64-v9", "linux/arm/v7": "linux-arm-v7",
		"linux": "", "": "", "/amd64": "", "linux/": "", "a/b/c/d": "",
	} {
		p, err := parsePlatform(in)
		if got := p.key(); err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q is %q, %v; want %q", in, got, err, want)
		}
	}
	if platformOf(&v1.Platform{OS: "unknown", Architecture: "unknown"}).real() || platformOf(nil).real() {
		t.Error("unknown/unknown counts as a platform")
	}
}

// A manifest has nobody ask addresses of its choosing: such an image is neither
// locked nor, pinned by whom it may be, laid out for podman; nor does a registry
// that has it pass verification.
func TestLayersFromElsewhere(t *testing.T) {
	var asked atomic.Bool
	victim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer victim.Close()
	extra, err := random.Layer(100, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	for what, add := range map[string]mutate.Addendum{
		"has addresses of its own (" + victim.URL + "/secret)": {Layer: extra, URLs: []string{victim.URL + "/secret"}},
		"is not distributed with the image":                    {Layer: extra, MediaType: types.OCIRestrictedLayer},
	} {
		img, err := mutate.Append(built(t, "linux/amd64", "1"), add)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		what = "its layer " + mustDigest(t, extra).String() + " " + what
		pinned := lock.PlatformImage{Manifest: digest(t, img), Config: config.String()}
		dir := workspace(t)
		newLayout(t, filepath.Join(dir, "l"), img)
		_, err = NewResolver(Options{Dir: dir}).Resolve(t.Context(), "oci:l", both[:1])
		checkError(t, err, new(*ManifestError), what)
		_, _, err = OpenLocal("oci:l", dir, both[0], pinned)
		checkError(t, err, new(*ManifestError), what)

		r := newRegistry(t)
		ref := r.push(t, "app:1", img)
		_, err = NewResolver(Options{}).Resolve(t.Context(), ref, both[:1])
		checkError(t, err, new(*ManifestError), what)
		list, err := NewResolver(Options{}).Verify(t.Context(), lock.Image{Ref: ref, Platforms: map[string]lock.PlatformImage{"linux-amd64": pinned}})
		if err != nil || len(list) != 1 {
			t.Fatalf("verified as %v, %v", list, err)
		}
		checkError(t, list[0].Err, new(*ManifestError), what)
	}
	if asked.Load() {
		t.Error("the address was asked")
	}
}
