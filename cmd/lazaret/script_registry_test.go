package main

import (
	"encoding/base64"
	"flag"
	"io"
	"log"
	mrand "math/rand"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"
)

// fakeRegistry is a registry on loopback with the moods that real ones have.
type fakeRegistry struct {
	store http.Handler
	srv   *httptest.Server
	user  string // "name:password", or "" for everybody

	mu   sync.Mutex
	busy int // answers of 429 still to give
	log  []string
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.log = append(r.log, req.Method+" "+req.URL.Path)
	busy := r.busy > 0
	if busy {
		r.busy--
	}
	r.mu.Unlock()
	switch {
	case busy:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`, http.StatusTooManyRequests)
	case r.user != "" && req.Header.Get("Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(r.user)):
		w.Header().Set("WWW-Authenticate", `Basic realm="fake"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
	default:
		r.store.ServeHTTP(w, req)
	}
}

// registryCmds are the commands about registries. They share the registries of
// all scripts, by address.
func registryCmds() map[string]func(*testscript.TestScript, bool, []string) {
	var (
		mu   sync.Mutex
		byAt = map[string]*fakeRegistry{}
	)
	find := func(ts *testscript.TestScript, at string) *fakeRegistry {
		mu.Lock()
		defer mu.Unlock()
		at, _, _ = strings.Cut(at, "/")
		r := byAt[at]
		if r == nil {
			ts.Fatalf("no registry at %s", at)
		}
		return r
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		// registry VAR [-user NAME:PASSWORD] starts one and puts its address in $VAR.
		"registry": func(ts *testscript.TestScript, neg bool, args []string) {
			noNeg(ts, neg, "registry")
			r := &fakeRegistry{store: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
			fs := newFlags(ts, "registry")
			fs.StringVar(&r.user, "user", "", "")
			rest := parse(ts, fs, args, 1)
			r.srv = httptest.NewServer(r)
			ts.Defer(r.srv.Close)
			at := r.srv.Listener.Addr().String()
			mu.Lock()
			byAt[at] = r
			mu.Unlock()
			ts.Setenv(rest[0], at)
		},
		// registry-stop ADDRESS takes one off the network.
		"registry-stop": func(ts *testscript.TestScript, neg bool, args []string) {
			noNeg(ts, neg, "registry-stop")
			find(ts, args[0]).srv.Close()
		},
		// registry-busy ADDRESS N makes it answer 429 to the next N requests.
		"registry-busy": func(ts *testscript.TestScript, neg bool, args []string) {
			noNeg(ts, neg, "registry-busy")
			r := find(ts, args[0])
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.busy = n
		},
		// asked ADDRESS SUBSTRING succeeds when a request since the last asked
		// was about SUBSTRING.
		"asked": func(ts *testscript.TestScript, neg bool, args []string) {
			r := find(ts, args[0])
			r.mu.Lock()
			defer r.mu.Unlock()
			all := strings.Join(r.log, "\n")
			r.log = nil
			if strings.Contains(all, args[1]) == neg {
				ts.Fatalf("asked for:\n%s", all)
			}
		},
		"push":   func(ts *testscript.TestScript, neg bool, args []string) { cmdPush(ts, neg, args, find) },
		"unpush": func(ts *testscript.TestScript, neg bool, args []string) { cmdUnpush(ts, neg, args, find) },
	}
}

func newFlags(ts *testscript.TestScript, name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(ts.Stderr())
	return fs
}

// parse parses flags that may stand anywhere and wants n other arguments.
func parse(ts *testscript.TestScript, fs *flag.FlagSet, args []string, n int) (rest []string) {
	for len(args) > 0 {
		ts.Check(fs.Parse(args))
		if args = fs.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	if len(rest) != n {
		ts.Fatalf("%s: got %q, want %d arguments", fs.Name(), rest, n)
	}
	return rest
}

// cmdPush pushes an image that depends on its flags only, and puts its digest
// in $DIGEST and those of its children in $DIGEST_amd64 and $DIGEST_arm64.
//
//	push REF [-seed N] [-platforms LIST] [-single] [-attest] [-annotate K=V] [-user NAME:PASSWORD]
func cmdPush(ts *testscript.TestScript, neg bool, args []string, find func(*testscript.TestScript, string) *fakeRegistry) {
	noNeg(ts, neg, "push")
	fs := newFlags(ts, "push")
	seed := fs.Int64("seed", 1, "another seed is another image")
	platforms := fs.String("platforms", "linux/amd64,linux/arm64/v8", "")
	single := fs.Bool("single", false, "no index: one image of the first platform")
	attest := fs.Bool("attest", false, "add what a build tool attests of each image")
	annotate := fs.String("annotate", "", "an annotation of every manifest")
	ref := reference(ts, parse(ts, fs, args, 1)[0])
	opts := options(find(ts, ref.Context().RegistryStr()))

	var index v1.ImageIndex = empty.Index
	for i, p := range strings.Split(*platforms, ",") {
		img := fakeImage(ts, *seed+int64(i), p, *annotate)
		platform, err := v1.ParsePlatform(p)
		ts.Check(err)
		digest, err := img.Digest()
		ts.Check(err)
		ts.Setenv("DIGEST_"+platform.Architecture, digest.String())
		if *single {
			ts.Setenv("DIGEST", digest.String())
			ts.Check(remote.Write(ref, img, opts...))
			return
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		if *attest {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: fakeImage(ts, *seed+100+int64(i), "unknown/unknown", ""),
				Descriptor: v1.Descriptor{
					Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
					Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest.String()},
				},
			})
		}
	}
	digest, err := index.Digest()
	ts.Check(err)
	ts.Setenv("DIGEST", digest.String())
	ts.Check(remote.WriteIndex(ref, index, opts...))
}

// fakeImage is an image that is the same each time.
func fakeImage(ts *testscript.TestScript, seed int64, platform, annotation string) v1.Image {
	img, err := random.Image(256, 1, random.WithSource(mrand.NewSource(seed)))
	ts.Check(err)
	cf, err := img.ConfigFile()
	ts.Check(err)
	cf = cf.DeepCopy()
	p, err := v1.ParsePlatform(platform)
	ts.Check(err)
	cf.OS, cf.Architecture, cf.Variant = p.OS, p.Architecture, p.Variant
	cf.Created, cf.History = v1.Time{}, nil
	cf.Config = v1.Config{
		Entrypoint: []string{"/entry"},
		Cmd:        []string{"run"},
		Env:        []string{"PATH=/bin"},
		User:       "1000",
		WorkingDir: "/srv",
		Volumes:    map[string]struct{}{"/data": {}},
	}
	img, err = mutate.ConfigFile(img, cf)
	ts.Check(err)
	img = mutate.MediaType(img, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	if k, v, ok := strings.Cut(annotation, "="); ok {
		img = mutate.Annotations(img, map[string]string{k: v}).(v1.Image)
	}
	return img
}

// cmdUnpush deletes a manifest, as registries do when they clean up.
//
//	unpush REF
func cmdUnpush(ts *testscript.TestScript, neg bool, args []string, find func(*testscript.TestScript, string) *fakeRegistry) {
	noNeg(ts, neg, "unpush")
	ref := reference(ts, args[0])
	ts.Check(remote.Delete(ref, options(find(ts, ref.Context().RegistryStr()))...))
}

func reference(ts *testscript.TestScript, s string) name.Reference {
	ref, err := name.ParseReference(s)
	ts.Check(err)
	return ref
}

func options(r *fakeRegistry) []remote.Option {
	user, password, _ := strings.Cut(r.user, ":")
	return []remote.Option{remote.WithAuth(&authn.Basic{Username: user, Password: password})}
}
