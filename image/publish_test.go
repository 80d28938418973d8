package image

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/lock"
)

// otherBuild is the helpers of a lazaret that was built differently: one byte of
// the padding in each file's header, which nothing reads.
func otherBuild(t *testing.T) func(name, platform string) ([]byte, error) {
	return func(name, platform string) ([]byte, error) {
		b := append([]byte(nil), helper(t, name, platform)...)
		b[15] = 1
		return b, nil
	}
}

// pinsOf says what that lazaret's lock would.
func pinsOf(t *testing.T, binary func(name, platform string) ([]byte, error), platform string) (lock.Sidecar, string) {
	t.Helper()
	b, err := binary(SidecarName, platform)
	if err != nil {
		t.Fatal(err)
	}
	img, err := Assemble(sidecarSpec(platform, b))
	if err != nil {
		t.Fatal(err)
	}
	manifest, config, layer, size, err := digestsOf(img)
	if err != nil {
		t.Fatal(err)
	}
	client, err := binary(EscalateName, platform)
	if err != nil {
		t.Fatal(err)
	}
	return lock.Sidecar{Binary: sha256Of(b).String(), Layer: layer.String(), Config: config.String(), Manifest: manifest.String(), Size: size},
		sha256Of(client).String()
}

// TestPublish: the same build publishes the same bytes each time, they resolve
// to what its lock pins, and nothing else in the index passes for an image.
func TestPublish(t *testing.T) {
	helper(t, SidecarName, "linux/amd64")
	reg := newRegistry(t)
	r := NewResolver(Options{})
	ref := reg.host + "/team/sidecar:v1"
	first, err := r.Publish(t.Context(), ref, "")
	if err != nil || first.Was != "" {
		t.Fatal(first, err)
	}
	again, err := r.Publish(t.Context(), ref, "")
	if err != nil || again != first {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	noted, err := r.Publish(t.Context(), ref, "v1.2.3")
	if err != nil || noted.Index == first.Index || noted.Was != first.Index {
		t.Errorf("with a version: %+v, %v", noted, err)
	}
	sidecars, clients, err := Helpers()
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Resolve(t.Context(), ref, Platforms())
	if err != nil || got.Index != noted.Index {
		t.Fatal(got, err)
	}
	for key, s := range sidecars {
		if p := got.Platforms[key]; p.Config != s.Config || p.Manifest != s.Manifest {
			t.Errorf("%s: published %+v, locked %+v", key, p, s)
		}
		keep := Stash{t.TempDir()}
		platform := strings.ReplaceAll(key, "-", "/")
		if _, err := r.FetchSidecar(t.Context(), ref, platform, s, keep); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		path, err := r.FetchClient(t.Context(), ref, platform, clients[key].Binary, keep)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		fi, _ := os.Stat(path)
		if err != nil || sha256Of(b).String() != clients[key].Binary || fi.Mode().Perm() != 0o555 {
			t.Errorf("%s: the client is %s, %v, %v", key, sha256Of(b), fi.Mode(), err)
		}
	}
	if _, err := r.Publish(t.Context(), reg.host+"/team/sidecar@"+first.Index, ""); err == nil {
		t.Error("a digest was published to")
	}
}

// TestFetch: what is pulled is what every digest of the lock says, or it is not
// used; and what is kept is believed no more than what comes.
func TestFetch(t *testing.T) {
	other := otherBuild(t)
	pinned, client := pinsOf(t, other, "linux/amd64")
	reg := newRegistry(t)
	r := NewResolver(Options{})
	index, err := helperIndex("", SidecarName, EscalateName, other)
	if err != nil {
		t.Fatal(err)
	}
	ref := reg.push(t, "team/sidecar:other", index)
	keep := Stash{filepath.Join(t.TempDir(), "made", "when needed")}

	img, err := r.FetchSidecar(t.Context(), ref, "linux/amd64", pinned, keep)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := img.ConfigName(); err != nil || id.String() != pinned.Config {
		t.Errorf("got %s, %v", id, err)
	}
	for what, change := range map[string]func(*lock.Sidecar){
		"another program":  func(s *lock.Sidecar) { s.Binary = client },
		"another config":   func(s *lock.Sidecar) { s.Config = pinned.Layer },
		"another manifest": func(s *lock.Sidecar) { s.Manifest = pinned.Config },
		"another layer":    func(s *lock.Sidecar) { s.Layer = client },
		"no digest":        func(s *lock.Sidecar) { s.Layer = "" },
	} {
		p := pinned
		change(&p)
		if _, err := r.FetchSidecar(t.Context(), ref, "linux/amd64", p, keep); err == nil {
			t.Errorf("%s passed", what)
		}
	}
	if _, err := r.FetchSidecar(t.Context(), ref, "linux/arm64", pinned, keep); err == nil {
		t.Error("another machine's passed")
	}

	// Kept, no registry is needed; tampered with, it is as good as absent.
	if _, err := r.FetchClient(t.Context(), ref, "linux/amd64", client, keep); err != nil {
		t.Fatal(err)
	}
	asked := reg.requests("/")
	if _, err := r.FetchSidecar(t.Context(), ref, "linux/amd64", pinned, keep); err != nil || reg.requests("/") != asked {
		t.Errorf("asked again: %v", err)
	}
	for _, d := range []string{pinned.Layer, client} {
		path := filepath.Join(keep.Dir, strings.Replace(d, ":", "-", 1))
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nevil\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.FetchSidecar(t.Context(), ref, "linux/amd64", pinned, keep); err != nil || reg.requests("/") == asked {
		t.Errorf("what was tampered with was not fetched again: %v", err)
	}
	path, err := r.FetchClient(t.Context(), ref, "linux/amd64", client, keep)
	if b, rerr := os.ReadFile(path); err != nil || rerr != nil || sha256Of(b).String() != client {
		t.Errorf("a tampered client was given out: %v, %v", err, rerr)
	}

	// A registry that hands out something else.
	reg.inFront(func(w http.ResponseWriter, req *http.Request) bool {
		if strings.Contains(req.URL.Path, client) {
			w.Write([]byte("\x7fELF evil"))
			return true
		}
		return false
	})
	var wrong *DigestError
	if _, err := r.FetchClient(t.Context(), ref, "linux/amd64", client, Stash{t.TempDir()}); !errors.As(err, &wrong) || wrong.Want != client {
		t.Errorf("other bytes: %v", err)
	}
	reg.inFront(nil)
	var gone *GoneError
	if _, err := r.FetchClient(t.Context(), ref, "linux/amd64", sha256Of(nil).String(), Stash{t.TempDir()}); !errors.As(err, &gone) {
		t.Errorf("nothing there: %v", err)
	}
	var unpublished *UnpublishedError
	if _, err := r.FetchClient(t.Context(), "", "linux/amd64", client, Stash{t.TempDir()}); !errors.As(err, &unpublished) || unpublished.Hint() == "" {
		t.Errorf("no reference: %v", err)
	}
}

// TestCheckSidecar: an image that would start more than the one program whose
// digest a person sees in the lock.
func TestCheckSidecar(t *testing.T) {
	b := helper(t, SidecarName, "linux/amd64")
	for what, change := range map[string]func(*Spec){
		"as it should be": func(*Spec) {},
		"two files":       func(s *Spec) { s.Files = append(s.Files, File{Path: "/zz", Mode: 0o555, Data: b}) },
		"an argument":     func(s *Spec) { s.Command = []string{"-x"} },
		"an environment":  func(s *Spec) { s.Env = []string{"GODEBUG=x"} },
		"other entry":     func(s *Spec) { s.Entrypoint = []string{"/bin/sh"} },
		"other program":   func(s *Spec) { s.Files[0].Data = b[:len(b)-1] },
	} {
		spec := sidecarSpec("linux/amd64", b)
		change(&spec)
		img, err := Assemble(spec)
		if err != nil {
			t.Fatal(err)
		}
		manifest, config, layer, _, err := digestsOf(img)
		if err != nil {
			t.Fatal(err)
		}
		pinned := lock.Sidecar{Binary: sha256Of(b).String(), Layer: layer.String(), Config: config.String(), Manifest: manifest.String()}
		m, _ := img.RawManifest()
		c, _ := img.RawConfigFile()
		packed, err := layerTar(spec.Files)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkSidecar("r.example/x:1", platform{OS: "linux", Arch: "amd64"}, pinned, m, c, packed); (err == nil) != (what == "as it should be") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
