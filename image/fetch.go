package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lazaret/lock"
)

// FetchSidecar gets the sidecar image that a lock pins: this build's own where
// that is it, else another lazaret's, from the stash or from the repository of
// ref, by digest. Every digest of the pin holds for what it returns.
func (r *Resolver) FetchSidecar(ctx context.Context, ref, platform string, pinned lock.Sidecar, keep Stash) (v1.Image, error) {
	p, err := parsePlatform(platform)
	if err != nil {
		return nil, &ReferenceError{Ref: ref, Reason: err.Error()}
	}
	if own, err := Sidecar(platform); err == nil {
		if id, err := own.ConfigName(); err == nil && id.String() == pinned.Config {
			return own, nil
		}
	}
	f := &fetcher{Resolver: r, ref: ref, keep: keep}
	manifest := f.get(ctx, "manifest", pinned.Manifest, maxManifest)
	config := f.get(ctx, "config", pinned.Config, maxConfig)
	layer := f.get(ctx, "layer", pinned.Layer, maxHelper)
	if f.err != nil {
		return nil, f.err
	}
	if err := checkSidecar(ref, p, pinned, manifest, config, layer); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&assembled{config, manifest, static.NewLayer(layer, types.OCIUncompressedLayer)})
}

// FetchClient gets the escalation client with a digest, likewise, and returns
// where in the stash it is.
func (r *Resolver) FetchClient(ctx context.Context, ref, platform, digest string, keep Stash) (path string, err error) {
	p, err := parsePlatform(platform)
	if err != nil {
		return "", &ReferenceError{Ref: ref, Reason: err.Error()}
	}
	if own, err := sumOf(embeddedHelpers, EscalateName, platform); err == nil && own == digest {
		h, err := v1.NewHash(digest)
		if err == nil && keep.has(h) {
			return keep.Path(h), nil
		}
		b, own, err := digested(embeddedHelpers, EscalateName, platform)
		if err != nil {
			return "", err
		}
		return keep.Path(own), keep.put(b)
	}
	f := &fetcher{Resolver: r, ref: ref, keep: keep}
	b := f.get(ctx, "escalation client", digest, maxHelper)
	if f.err != nil {
		return "", f.err
	}
	if err := checkELF(b, p); err != nil {
		return "", &ManifestError{Ref: ref, Reason: "its escalation client is no program for this machine: " + err.Error()}
	}
	return keep.Path(sha256Of(b)), nil
}

// VerifyClient reports whether the repository of ref still has the escalation
// client with a digest. A *GoneError says that it has not.
func (r *Resolver) VerifyClient(ctx context.Context, ref, digest string) error {
	ctx, src, _, err := r.open(ctx, ref)
	if err != nil {
		return err
	}
	w := &walker{src: src, ref: ref}
	if err := w.layer(ctx, src.repo.Digest(digest)); errors.Is(err, errMissing) {
		return &GoneError{Ref: ref, Registry: src.name(), Digest: digest}
	} else if err != nil {
		return err
	}
	return nil
}

// fetcher gets one thing after the other until one cannot be had.
type fetcher struct {
	*Resolver
	ref  string
	keep Stash
	src  *repository
	ctx  context.Context
	err  error
}

func (f *fetcher) get(ctx context.Context, what, digest string, limit int64) []byte {
	if f.err != nil {
		return nil
	}
	h, err := v1.NewHash(digest)
	if err != nil || h.Algorithm != "sha256" {
		f.err = &ManifestError{Ref: f.ref, Reason: "the lock pins no sha256 digest of its " + what}
		return nil
	}
	if b, ok := f.keep.get(h); ok {
		return b
	}
	b, err := f.ask(ctx, what, h, limit)
	if err == nil {
		err = verify(f.ref, f.src.name(), what, b, h)
	}
	if err == nil {
		err = f.keep.put(b)
	}
	if err != nil {
		f.err = err
	}
	return b
}

func (f *fetcher) ask(ctx context.Context, what string, h v1.Hash, limit int64) ([]byte, error) {
	if f.ref == "" {
		return nil, &UnpublishedError{What: what, Digest: h.String()}
	}
	if f.src == nil {
		var err error
		if f.ctx, f.src, _, err = f.open(ctx, f.ref); err != nil {
			return nil, err
		}
	}
	if what == "manifest" {
		b, err := f.src.manifest(f.ctx, h)
		if errors.Is(err, errMissing) {
			err = &GoneError{Ref: f.ref, Registry: f.src.name(), Digest: h.String()}
		}
		return b, err
	}
	return f.src.large(f.ctx, h, limit)
}

// large reads a blob of unknown size, up to a limit.
func (r *repository) large(ctx context.Context, h v1.Hash, limit int64) ([]byte, error) {
	layer, err := r.puller.Layer(ctx, r.repo.Digest(h.String()))
	if err != nil {
		return nil, r.wrap(ctx, err)
	}
	body, err := layer.Compressed()
	if err != nil {
		if status(err) == http.StatusNotFound {
			return nil, &GoneError{Ref: r.ref, Registry: r.name(), Digest: h.String()}
		}
		return nil, r.wrap(ctx, err)
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(b)) > limit {
		return nil, &ManifestError{Ref: r.ref, Reason: fmt.Sprintf("%s is larger than %d MiB", h, limit>>20)}
	}
	// The reader's own verdict on the digest is left to verify.
	var broken net.Error
	if err != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) || ctx.Err() != nil) {
		return nil, r.wrap(ctx, err)
	}
	return b, nil
}

// checkSidecar makes sure that what was pinned together belongs together: that
// the program whose digest the lock shows is what the image starts, and all
// there is in it. Each part has its own digest already.
func checkSidecar(ref string, p platform, pinned lock.Sidecar, manifest, config, layer []byte) error {
	bad := func(format string, args ...any) error {
		return &ManifestError{Ref: ref, Reason: "its sidecar is not the one that the lock describes: " + fmt.Sprintf(format, args...)}
	}
	doc, err := parseDocument(ref, manifest)
	if err != nil {
		return err
	}
	if doc.isIndex() || doc.Config.Digest.String() != pinned.Config {
		return bad("its manifest names another config")
	}
	if len(doc.Layers) != 1 || doc.Layers[0].Digest.String() != pinned.Layer || doc.Layers[0].MediaType != types.OCIUncompressedLayer {
		return bad("its manifest does not name the pinned layer alone")
	}
	if len(doc.Annotations) > 0 {
		return bad("its manifest has annotations, which a runtime may take for settings")
	}
	var cfg v1.ConfigFile
	if err := json.Unmarshal(config, &cfg); err != nil {
		return bad("its config is not valid JSON")
	}
	if have := (platform{cfg.OS, cfg.Architecture, cfg.Variant}).canonical(); have != p {
		return &PlatformError{Ref: ref, Want: p.String(), Have: []string{printable(have.String(), 60)}}
	}
	if len(cfg.RootFS.DiffIDs) != 1 || cfg.RootFS.DiffIDs[0].String() != pinned.Layer {
		return bad("its config names another layer")
	}
	name, program, err := onlyFile(layer)
	if err != nil {
		return bad("%v", err)
	}
	if got := sha256Of(program).String(); got != pinned.Binary {
		return bad("its program is %s, the lock says %s", got, pinned.Binary)
	}
	c := cfg.Config
	if !slices.Equal(c.Entrypoint, []string{"/" + name}) || len(c.Cmd)+len(c.Env)+len(c.Volumes) > 0 {
		return bad("it starts something else than its program")
	}
	if err := checkELF(program, p); err != nil {
		return bad("its program: %v", err)
	}
	return nil
}

// onlyFile reads a layer that is one regular file, with nothing before or after.
func onlyFile(layer []byte) (name string, data []byte, err error) {
	r := tar.NewReader(bytes.NewReader(layer))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil || name != "" || h.Typeflag != tar.TypeReg {
			return "", nil, errors.New("its layer is more than one file")
		}
		name = h.Name
		if data, err = io.ReadAll(io.LimitReader(r, maxHelper)); err != nil {
			return "", nil, errors.New("its layer ends too early")
		}
	}
	if name == "" {
		return "", nil, errors.New("its layer is empty")
	}
	return name, data, nil
}

// UnpublishedError is a pin of another lazaret that no registry is named for.
type UnpublishedError struct{ What, Digest string }

func (e *UnpublishedError) Error() string {
	return fmt.Sprintf("the lock pins another lazaret's helper programs and does not say where they can be had (%s %s)", e.What, e.Digest)
}

// Hint is how to get at them.
func (e *UnpublishedError) Hint() string {
	return `with that lazaret: "lazaret sidecar push REF", [network] sidecar = "REF" and "lazaret lock"; or install it; or run "lazaret lock" with this one`
}
