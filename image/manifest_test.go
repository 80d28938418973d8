package image

import (
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
		`{]`:                                                                                    "refused",
		``:                                                                                      "refused",
		`{"config":{"digest":"sha512:` + zeros + zeros + `"}}`:                                  "image", // describe refuses it
		`{"config":{"digest":"md5:00"}}`:                                                        "refused",
		`{"config":{"digest":"sha256:../../../../../etc/passwd"}}`:                              "refused",
		strings.Repeat(" ", maxManifest) + `{}`:                                                 "refused",
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
