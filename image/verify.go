package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"lazaret/lock"
)

// Absence is a part of a pinned image that cannot be had any more.
type Absence struct {
	What     string // "index", "manifest", "config", "layer"
	Platform string // "linux-amd64", or "" for the index
	Digest   string
	Err      error // *GoneError where it is just not there; anything else is worse
}

// Verify walks all that an image's pins lead to, index, manifests, configs and
// layers, and lists what is not there or not what it should be. Documents are
// fetched and checked; of layers a registry is only asked whether it has them.
// Layers of a local image are read, which checks their digests. The error is
// one that leaves everything unknown: no such host, no login.
func (r *Resolver) Verify(ctx context.Context, pinned lock.Image) ([]Absence, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if IsLocal(pinned.Ref) {
		return r.verifyLocal(pinned)
	}
	ctx, src, _, err := r.open(ctx, pinned.Ref)
	if err != nil {
		return nil, err
	}
	w := &walker{src: src, ref: pinned.Ref}
	if pinned.Index != "" {
		doc := w.document(ctx, "index", "", pinned.Index)
		for _, key := range slices.Sorted(maps.Keys(pinned.Platforms)) {
			if doc != nil && !names(doc, pinned.Platforms[key].Manifest) {
				w.absent("manifest", key, pinned.Platforms[key].Manifest,
					&ManifestError{Ref: pinned.Ref, Reason: "its index does not name the manifest that is pinned for " + key})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pinned.Platforms)) {
		w.platform(ctx, key, pinned.Platforms[key])
	}
	return w.list, w.unknown
}

func names(index *document, manifest string) bool {
	return slices.ContainsFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Digest.String() == manifest })
}

// walker collects what is absent.
type walker struct {
	src     *repository
	ref     string
	list    []Absence
	unknown error
}

func (w *walker) absent(what, platform, digest string, err error) {
	w.list = append(w.list, Absence{what, platform, digest, err})
}

// failed sorts an error: gone, wrong, or nothing to go by.
func (w *walker) failed(what, platform, digest string, err error) {
	var gone *GoneError
	var wrong *DigestError
	var bad *ManifestError
	switch {
	case errors.Is(err, errMissing):
		w.absent(what, platform, digest, &GoneError{Ref: w.ref, Registry: w.src.name(), Digest: digest})
	case errors.As(err, &gone), errors.As(err, &wrong), errors.As(err, &bad):
		w.absent(what, platform, digest, err)
	case w.unknown == nil:
		w.unknown = err
	}
}

// document fetches a manifest or index; nil where it is not to be had.
func (w *walker) document(ctx context.Context, what, platform, digest string) *document {
	if w.unknown != nil {
		return nil
	}
	h, err := v1.NewHash(digest)
	if err != nil {
		w.failed(what, platform, digest, &ManifestError{Ref: w.ref, Reason: err.Error()})
		return nil
	}
	raw, err := w.src.manifest(ctx, h)
	if err == nil {
		err = verify(w.ref, w.src.name(), what, raw, h)
	}
	var doc *document
	if err == nil {
		doc, err = parseDocument(w.ref, raw)
	}
	if err == nil && doc.isIndex() != (what == "index") {
		err = &ManifestError{Ref: w.ref, Reason: "what is pinned as its " + what + " is none"}
	}
	if err != nil {
		w.failed(what, platform, digest, err)
		return nil
	}
	return doc
}

func (w *walker) platform(ctx context.Context, key string, p lock.PlatformImage) {
	doc := w.document(ctx, "manifest", key, p.Manifest)
	if doc == nil {
		return
	}
	if got := doc.Config.Digest.String(); got != p.Config {
		w.absent("config", key, p.Config, &DigestError{Ref: w.ref, From: w.src.name(), What: "config", Want: p.Config, Got: got})
		return
	}
	raw, err := w.src.blob(ctx, *doc.Config)
	if err == nil {
		err = verify(w.ref, w.src.name(), "config", raw, doc.Config.Digest)
	}
	if err != nil {
		w.failed("config", key, p.Config, err)
	}
	for _, l := range doc.Layers {
		if w.unknown != nil {
			return
		}
		if err := w.layer(ctx, w.src.repo.Digest(l.Digest.String())); err != nil {
			w.failed("layer", key, l.Digest.String(), err)
		}
	}
}

// layer asks whether a layer is there.
func (w *walker) layer(ctx context.Context, d name.Digest) error {
	layer, err := w.src.puller.Layer(ctx, d)
	if err != nil {
		return w.src.wrap(ctx, err)
	}
	there, err := partial.Exists(layer)
	switch {
	case err != nil && status(err) != http.StatusNotFound:
		return w.src.wrap(ctx, err)
	case err != nil || !there:
		return errMissing
	}
	return nil
}

func (r *Resolver) verifyLocal(pinned lock.Image) (list []Absence, err error) {
	for _, key := range slices.Sorted(maps.Keys(pinned.Platforms)) {
		p := pinned.Platforms[key]
		img, closer, err := OpenLocal(pinned.Ref, r.opts.Dir, strings.ReplaceAll(key, "-", "/"), p)
		if err != nil {
			list = append(list, Absence{"manifest", key, p.Manifest, err})
			continue
		}
		layers, err := img.Layers()
		if err != nil {
			list = append(list, Absence{"layer", key, p.Manifest, err})
		}
		for _, l := range layers {
			if h, err := readLayer(l); err != nil {
				list = append(list, Absence{"layer", key, h, err})
			}
		}
		closer.Close()
	}
	return list, nil
}

// readLayer reads a layer to its end, where its digest is checked.
func readLayer(l v1.Layer) (digest string, err error) {
	h, err := l.Digest()
	if err != nil {
		return "", err
	}
	body, err := l.Compressed()
	if err != nil {
		return h.String(), err
	}
	_, err = io.Copy(io.Discard, body)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		err = fmt.Errorf("reading the layer: %w", err)
	}
	return h.String(), err
}
