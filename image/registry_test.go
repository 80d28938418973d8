package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var both = []string{"linux/amd64", "linux/arm64"}

// testRegistry is a registry on loopback. Its front sees every request first
// and serves it when it returns true.
type testRegistry struct {
	host    string
	handler http.Handler
	front   func(http.ResponseWriter, *http.Request) bool
	mu      sync.Mutex
	asked   []string
}

func newRegistry(t testing.TB) *testRegistry {
	t.Helper()
	r := &testRegistry{}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req.Method+" "+req.URL.Path)
		front := r.front
		r.mu.Unlock()
		if front == nil || !front(w, req) {
			store.ServeHTTP(w, req)
		}
	})
	srv := httptest.NewServer(r.handler)
	t.Cleanup(srv.Close)
	r.host = strings.TrimPrefix(srv.URL, "http://")
	return r
}

func (r *testRegistry) inFront(f func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.front = f
}

func (r *testRegistry) requests(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, a := range r.asked {
		if strings.Contains(a, part) {
			n++
		}
	}
	return n
}

// built is an image for a platform, different for each seed.
func built(t testing.TB, platform, seed string) v1.Image {
	t.Helper()
	img, err := Assemble(Spec{
		Platform:   platform,
		Files:      []File{{Path: "/seed", Data: []byte(platform + seed)}},
		Entrypoint: []string{"/entry"},
		Command:    []string{"cmd", seed},
		Env:        []string{"PATH=/bin", "Z=1", "A=2"},
		User:       "1000",
		WorkingDir: "/work",
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func entry(t testing.TB, img v1.Image, platform string) mutate.IndexAddendum {
	t.Helper()
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: p}}
}

// multiArch is what a builder makes: two platforms, one written with its
// variant, another system, and attestations.
func multiArch(t testing.TB, seed string) v1.ImageIndex {
	attestation := entry(t, built(t, "linux/amd64", "attestation"), "unknown/unknown")
	attestation.Descriptor.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	return mutate.AppendManifests(empty.Index,
		attestation,
		entry(t, built(t, "linux/arm64", seed), "linux/arm64/v8"),
		entry(t, built(t, "windows/amd64", seed), "windows/amd64"),
		entry(t, built(t, "linux/amd64", seed), "linux/amd64"),
	)
}

func (r *testRegistry) push(t testing.TB, repo string, what any) string {
	t.Helper()
	ref, err := name.ParseReference(r.host + "/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	switch w := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, w)
	case v1.Image:
		err = remote.Write(ref, w)
	case remote.Taggable:
		err = remote.Put(ref, w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

func digest(t testing.TB, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func TestResolveIndex(t *testing.T) {
	r := newRegistry(t)
	index := multiArch(t, "1")
	ref := r.push(t, "team/app:1", index)
	repo := r.host + "/team/app"
	for _, ref := range []string{ref, repo + "@" + digest(t, index), repo + ":nothing@" + digest(t, index)} {
		got, err := NewResolver(Options{}).Resolve(t.Context(), ref, both)
		if err != nil {
			t.Fatal(err)
		}
		if got.Ref != ref || got.Index != digest(t, index) || len(got.Platforms) != 2 {
			t.Errorf("%s is %+v", ref, got)
		}
		for key, platform := range map[string]string{"linux-amd64": "linux/amd64", "linux-arm64": "linux/arm64"} {
			img := built(t, platform, "1")
			config, _ := img.ConfigName()
			layers, _ := img.Layers()
			size, _ := layers[0].Size()
			p := got.Platforms[key]
			if p.Manifest != digest(t, img) || p.Config != config.String() || p.Size != size {
				t.Errorf("%s for %s is %+v", ref, key, p)
			}
			if p.User != "1000" || p.WorkingDir != "/work" || !slices.Equal(p.Entrypoint, []string{"/entry"}) ||
				!slices.Equal(p.Command, []string{"cmd", "1"}) || !slices.Equal(p.Env, []string{"PATH=/bin", "Z=1", "A=2"}) {
				t.Errorf("%s for %s would do %+v", ref, key, p)
			}
		}
	}
}

func TestResolveSingle(t *testing.T) {
	r := newRegistry(t)
	img := built(t, "linux/arm64", "x")
	ref := r.push(t, "single:1", img)
	got, err := NewResolver(Options{}).Resolve(t.Context(), ref, []string{"linux/arm64"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Index != "" || got.Platforms["linux-arm64"].Manifest != digest(t, img) {
		t.Errorf("a single image is %+v", got)
	}
	if _, err := NewResolver(Options{}).Resolve(t.Context(), r.host+"/single@"+digest(t, img), []string{"linux/arm64/v8"}); err != nil {
		t.Errorf("v8, which every arm64 is: %v", err)
	}
	_, err = NewResolver(Options{}).Resolve(t.Context(), ref, both)
	var missing *PlatformError
	if !errors.As(err, &missing) || missing.Want != "linux/amd64" || !slices.Equal(missing.Have, []string{"linux/arm64"}) {
		t.Errorf("another platform: %v", err)
	}
}

func TestResolveVolumesAreSorted(t *testing.T) {
	r := newRegistry(t)
	img := built(t, "linux/amd64", "v")
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.Config.Volumes = map[string]struct{}{"/z": {}, "/a": {}, "/m": {}}
	img, err = mutate.ConfigFile(img, cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewResolver(Options{}).Resolve(t.Context(), r.push(t, "v:1", img), both[:1])
	if v := got.Platforms["linux-amd64"].Volumes; err != nil || !slices.Equal(v, []string{"/a", "/m", "/z"}) {
		t.Errorf("volumes are %q, %v", v, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	r := newRegistry(t)
	full := multiArch(t, "1")
	r.push(t, "app:1", full)
	amd, arm := built(t, "linux/amd64", "1"), built(t, "linux/arm64", "1")
	short := mutate.AppendManifests(empty.Index, entry(t, amd, "linux/amd64"), entry(t, amd, "unknown/unknown"), entry(t, arm, "linux/arm64/v9"))
	lying := mutate.AppendManifests(empty.Index, entry(t, amd, "linux/arm64"))
	annotated := mutate.Annotations(amd, map[string]string{"dev.gvisor.flag.host-uds": "open", "fine": "1"}).(v1.Image)
	artifact := mutate.ConfigMediaType(amd, "application/vnd.example.config+json")
	gone := "sha256:" + strings.Repeat("ab", 32)

	confused := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"size":2,"digest":%q},"layers":[],"manifests":[]}`,
		types.OCIManifestSchema1, types.OCIConfigJSON, gone)
	for _, test := range []struct {
		what      any
		platforms []string
		want      any    // a pointer to the error type
		says      string // in its text
	}{
		{short, both, new(*PlatformError), "no linux/arm64, it has linux/amd64, linux/arm64/v9"},
		{short, []string{"linux/riscv64", "linux/arm64"}, new(*PlatformError), "no linux/riscv64"},
		{lying, both[1:], new(*PlatformError), "it has linux/amd64"},
		{mutate.AppendManifests(empty.Index, entry(t, annotated, "linux/amd64")), both[:1], new(*AnnotationError), "dev.gvisor.flag.host-uds"},
		{annotated, both[:1], new(*AnnotationError), "dev.gvisor.flag.host-uds"},
		{artifact, both[:1], new(*ManifestError), "vnd.example"},
		{put{confused, types.OCIManifestSchema1}, both, new(*ManifestError), "at the same time"},
		{put{`{"schemaVersion":1,"fsLayers":[]}`, types.DockerManifestSchema1Signed}, both, new(*ManifestError), "first format"},
	} {
		_, err := NewResolver(Options{}).Resolve(t.Context(), r.push(t, "odd:1", test.what), test.platforms)
		checkError(t, err, test.want, test.says)
	}

	// An index whose child was cleaned away.
	holed := r.push(t, "holed:1", full)
	child, err := name.NewDigest(r.host + "/holed@" + digest(t, arm))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(child); err != nil {
		t.Fatal(err)
	}
	_, err = NewResolver(Options{}).Resolve(t.Context(), holed, both)
	checkError(t, err, new(*MissingChildError), child.DigestStr()+" for linux/arm64")

	for ref, want := range map[string]any{
		r.host + "/app@" + gone:       new(*GoneError),
		r.host + "/app:1@" + gone:     new(*GoneError), // not the tag, although it is there
		r.host + "/app:2":             new(*RegistryError),
		"debian":                      new(*ReferenceError),
		"debian:trixie":               new(*ReferenceError),
		"library/debian":              new(*ReferenceError),
		r.host + "/UPPER":             new(*ReferenceError),
		r.host + "/app@sha256:12":     new(*ReferenceError),
		"169.254.169.254/latest/meta": new(*ReferenceError),
		"169.254.169.254:80/x/y:1":    new(*ReferenceError),
		"[fd00:ec2::254]/x/y:1":       new(*ReferenceError),
		"[::ffff:169.254.169.254]/x":  new(*ReferenceError),
		"[fe80::1]:5000/x":            new(*ReferenceError),
		"100.100.100.200/x/y":         new(*ReferenceError),
		"0.0.0.0:1/x/y":               new(*ReferenceError),
	} {
		_, err := NewResolver(Options{}).Resolve(t.Context(), ref, both)
		checkError(t, err, want, "")
	}
	if n := r.requests("UPPER"); n > 0 {
		t.Error("a bad name was asked for")
	}
}

// put is a manifest as it stands.
type put struct {
	raw string
	mt  types.MediaType
}

func (p put) RawManifest() ([]byte, error)        { return []byte(p.raw), nil }
func (p put) MediaType() (types.MediaType, error) { return p.mt, nil }

func checkError(t *testing.T, err error, want any, says string) {
	t.Helper()
	var hint interface{ Hint() string }
	if !errors.As(err, want) || !errors.As(err, &hint) || hint.Hint() == "" || !strings.Contains(err.Error(), says) {
		t.Errorf("got %T %v, want %T saying %q, with a hint", err, err, want, says)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("the error would write control characters: %q", err)
	}
}

// What comes is verified, whatever the registry calls it.
func TestResolveTampered(t *testing.T) {
	r := newRegistry(t)
	index := multiArch(t, "1")
	ref := r.push(t, "app:1", index)
	img := built(t, "linux/amd64", "1")
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	other := built(t, "linux/amd64", "evil")
	otherConfig, _ := other.RawConfigFile()
	otherManifest, _ := other.RawManifest()
	for path, body := range map[string][]byte{
		"/blobs/" + config.String():        otherConfig,
		"/manifests/" + digest(t, img):     otherManifest,
		"/manifests/" + digest(t, index):   otherManifest,
		"/blobs/" + config.String() + "  ": nil, // nothing is tampered with: the test can pass
	} {
		r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, path) {
				return false
			}
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			w.Header().Set("Docker-Content-Digest", strings.TrimPrefix(path[strings.LastIndex(path, "/"):], "/"))
			w.Write(body)
			return true
		})
		name := ref
		if strings.HasSuffix(path, digest(t, index)) {
			name = r.host + "/app@" + digest(t, index)
		}
		_, err := NewResolver(Options{}).Resolve(t.Context(), name, both)
		if body == nil {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s was replaced and nothing noticed", path)
		}
		if strings.Contains(path, "blobs") {
			checkError(t, err, new(*DigestError), "DOES NOT MATCH")
		}
	}
}

func TestShownAnnotations(t *testing.T) {
	r := newRegistry(t)
	img := mutate.Annotations(built(t, "linux/amd64", "a"), map[string]string{
		"org.opencontainers.image.source": "https://…", "com.docker.official-images.bashbrew.arch": "amd64", "org.example.note": "hello",
	}).(v1.Image)
	got, err := NewResolver(Options{}).Resolve(t.Context(), r.push(t, "a:1", img), both[:1])
	if a := got.Platforms["linux-amd64"].Annotations; err != nil || len(a) != 1 || a["org.example.note"] != "hello" {
		t.Errorf("annotations are %v, %v", a, err)
	}
}

// password asks for Basic credentials, or for a token that costs some.
func (r *testRegistry) password(bearer bool) {
	r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		user, pass, basic := req.BasicAuth()
		known := basic && user == "u" && pass == "p"
		switch {
		case req.URL.Path == "/token" && known:
			fmt.Fprint(w, `{"token":"sesame"}`)
			return true
		case bearer && req.URL.Path != "/token" && req.Header.Get("Authorization") == "Bearer sesame", !bearer && known:
			return false
		case bearer && req.URL.Path != "/token":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, r.host))
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
}

// keys is a keychain of one login.
type keys authn.AuthConfig

func (k keys) Resolve(authn.Resource) (authn.Authenticator, error) {
	cfg := authn.AuthConfig(k)
	return authn.FromConfig(cfg), nil
}

func TestResolveWithCredentials(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "private/app:1", multiArch(t, "1"))
	for _, bearer := range []bool{false, true} {
		r.password(bearer)
		if _, err := NewResolver(Options{Keychain: keys{Username: "u", Password: "p"}}).Resolve(t.Context(), ref, both); err != nil {
			t.Errorf("bearer %v: %v", bearer, err)
		}
		_, err := NewResolver(Options{}).Resolve(t.Context(), ref, both)
		checkError(t, err, new(*RegistryError), "without credentials")
		if !strings.Contains(err.Error(), r.host) || !strings.Contains(err.Error(), ref) {
			t.Errorf("the refusal does not name registry and reference: %v", err)
		}
		_, err = NewResolver(Options{Keychain: keys{Username: "u", Password: "stale"}}).Resolve(t.Context(), ref, both)
		checkError(t, err, new(*RegistryError), "with the credentials in the keychain")
		if strings.Contains(err.Error(), "stale") {
			t.Errorf("the refusal tells the password: %v", err)
		}
	}
}

// A registry that counts anonymous requests against an address shared by many
// answers 429, which is no challenge; credentials that are there must be used
// all the same.
func TestCredentialsAgainstAnonymousLimit(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "app:1", multiArch(t, "1"))
	r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		if _, _, ok := req.BasicAuth(); ok {
			return false
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	if _, err := NewResolver(Options{Keychain: keys{Username: "u", Password: "p"}}).Resolve(t.Context(), ref, both); err != nil {
		t.Errorf("with credentials: %v", err)
	}
	began := time.Now()
	_, err := NewResolver(Options{}).Resolve(t.Context(), ref, both)
	checkError(t, err, new(*RegistryError), "it asks to wait 1h0m0s")
	if time.Since(began) > 15*time.Second {
		t.Error("an hour was partly waited for")
	}
}

func TestRetryAfter(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "app:1", multiArch(t, "1"))
	var refused atomic.Int32
	r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, "/manifests/") || refused.Add(1) > 2 {
			return false
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	res := NewResolver(Options{})
	var waits []string
	var mu sync.Mutex
	res.opts.Progress = func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, p.Kind+p.Wait)
	}
	res.puller = newPuller(&patient{next: http.DefaultTransport, now: time.Now, sleep: func(context.Context, time.Duration) error { return nil }})
	if _, err := res.Resolve(t.Context(), ref, both); err != nil {
		t.Error(err)
	}
	if !slices.Equal(waits, []string{"begin", "wait7s", "wait7s", "done"}) {
		t.Errorf("progress was %q", waits)
	}
	if refused.Store(-1000); r.requests("/manifests/") == 0 {
		t.Error("nothing was asked")
	}
}

func TestResolveIsCancelled(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "app:1", multiArch(t, "1"))
	r.inFront(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := NewResolver(Options{}).Resolve(ctx, ref, both)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 15*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestTooLargeManifest(t *testing.T) {
	r := newRegistry(t)
	r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		io.WriteString(w, strings.Repeat(" ", maxManifest+1))
		return true
	})
	_, err := NewResolver(Options{}).Resolve(t.Context(), r.host+"/app:1", both)
	checkError(t, err, new(*ManifestError), "larger")
}

func TestHostileText(t *testing.T) {
	r := newRegistry(t)
	r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"\u001b]0;owned\u0007\n\u202efake"}]}`)
		return true
	})
	_, err := NewResolver(Options{}).Resolve(t.Context(), r.host+"/app:1", both)
	checkError(t, err, new(*RegistryError), `\u001b]0;owned`)
	if strings.ContainsRune(err.Error(), '\u202e') {
		t.Errorf("%q", err)
	}
}

// slow answers after a while, as registries do.
func slow(d time.Duration) func(http.ResponseWriter, *http.Request) bool {
	return func(http.ResponseWriter, *http.Request) bool { time.Sleep(d); return false }
}

// At 20 ms a request, fifty images one after the other and eight at a time.
func BenchmarkResolveFifty(b *testing.B) {
	r := newRegistry(b)
	var refs []string
	for i := range 50 {
		refs = append(refs, r.push(b, fmt.Sprintf("app%d:1", i), multiArch(b, fmt.Sprint(i))))
	}
	r.inFront(slow(20 * time.Millisecond))
	for _, jobs := range []int{1, 8} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			for b.Loop() {
				res := NewResolver(Options{Jobs: jobs})
				var wg sync.WaitGroup
				for _, ref := range refs {
					wg.Go(func() {
						if _, err := res.Resolve(b.Context(), ref, both); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}
