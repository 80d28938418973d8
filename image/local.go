package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lazaret/lock"
)

// IsLocal is true for references that no registry answers: oci:DIR and builtin:….
func IsLocal(ref string) bool {
	return strings.HasPrefix(ref, layoutPrefix) || strings.HasPrefix(ref, builtinPrefix)
}

// OpenLocal opens the image a lock pinned for an oci:DIR (beneath dir unless
// absolute) or builtin: reference, so that WriteLayout can put just that image
// where podman reads it. What the lock pinned is what comes back, or an error;
// layers are verified as they are read. Close the returned closer after use.
func OpenLocal(ref, dir, platform string, pinned lock.PlatformImage) (v1.Image, io.Closer, error) {
	if strings.HasPrefix(ref, builtinPrefix) {
		img, err := openBuiltin(ref, platform, pinned)
		return img, io.NopCloser(nil), err
	}
	l, err := openLayout(ref, dir)
	if err != nil {
		return nil, nil, err
	}
	img, err := l.image(pinned)
	if err != nil {
		l.root.Close()
		return nil, nil, err
	}
	return img, l.root, nil
}

func (l *layoutDir) image(pinned lock.PlatformImage) (v1.Image, error) {
	mh, err := v1.NewHash(pinned.Manifest)
	if err != nil {
		return nil, &ReferenceError{Ref: l.ref, Reason: err.Error()}
	}
	fetch := func(what string, h v1.Hash, limit int64) ([]byte, error) {
		raw, err := l.read(blobPath(h), limit)
		if err != nil {
			return nil, &LayoutError{Ref: l.ref, Reason: "reading the pinned " + what, Err: err, Do: "put it back, or run \"lazaret lock --update\""}
		}
		return raw, verify(l.ref, l.name(), what, raw, h)
	}
	raw, err := fetch("manifest", mh, maxManifest)
	if err != nil {
		return nil, err
	}
	doc, err := parseDocument(l.ref, raw)
	if err != nil {
		return nil, err
	}
	if doc.isIndex() {
		return nil, &ManifestError{Ref: l.ref, Reason: "the pinned manifest is an index"}
	}
	if keys := ObeyedAnnotations(doc.Annotations); len(keys) > 0 {
		return nil, &AnnotationError{Ref: l.ref, Platform: "pinned", Keys: keys}
	}
	if doc.Config.Digest.String() != pinned.Config {
		return nil, &DigestError{Ref: l.ref, From: l.name(), What: "config", Want: pinned.Config, Got: doc.Config.Digest.String()}
	}
	config, err := fetch("config", doc.Config.Digest, maxConfig)
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&layoutImage{l, doc, config})
}

// layoutImage is one manifest of a layout as the registry library knows images.
type layoutImage struct {
	dir    *layoutDir
	doc    *document
	config []byte
}

func (i *layoutImage) RawManifest() ([]byte, error)   { return i.doc.raw, nil }
func (i *layoutImage) RawConfigFile() ([]byte, error) { return i.config, nil }

func (i *layoutImage) MediaType() (types.MediaType, error) {
	if i.doc.MediaType == "" {
		return types.OCIManifestSchema1, nil
	}
	return i.doc.MediaType, nil
}

func (i *layoutImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range i.doc.Layers {
		if d.Digest == h {
			return &layoutLayer{i.dir, d}, nil
		}
	}
	if h == i.doc.Config.Digest {
		return &layoutLayer{i.dir, *i.doc.Config}, nil
	}
	return nil, fmt.Errorf("image %q has no layer %s", i.dir.ref, h)
}

type layoutLayer struct {
	dir  *layoutDir
	desc v1.Descriptor
}

func (l *layoutLayer) Digest() (v1.Hash, error)            { return l.desc.Digest, nil }
func (l *layoutLayer) Size() (int64, error)                { return l.desc.Size, nil }
func (l *layoutLayer) MediaType() (types.MediaType, error) { return l.desc.MediaType, nil }
func (l *layoutLayer) Descriptor() (*v1.Descriptor, error) { return &l.desc, nil }

// Compressed opens the layer as it is stored. Its end is an error when the
// bytes were not those of its digest.
func (l *layoutLayer) Compressed() (io.ReadCloser, error) {
	f, _, err := l.dir.open(blobPath(l.desc.Digest))
	if err != nil {
		return nil, &LayoutError{Ref: l.dir.ref, Reason: "reading the layer " + l.desc.Digest.String(), Err: err, Do: "put it back, or run \"lazaret lock --update\""}
	}
	return &verifying{File: f, layer: l, hash: sha256.New()}, nil
}

// verifying is a layer's file that ends in an error when the bytes were not
// those of its digest. Nothing after it looks again before podman unpacks.
type verifying struct {
	*os.File
	layer *layoutLayer
	hash  hash.Hash
}

func (v *verifying) Read(p []byte) (int, error) {
	n, err := v.File.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF {
		want := v.layer.desc.Digest.String()
		if got := "sha256:" + hex.EncodeToString(v.hash.Sum(nil)); got != want {
			return n, &DigestError{Ref: v.layer.dir.ref, From: v.layer.dir.name(), What: "layer", Want: want, Got: got}
		}
	}
	return n, err
}

// WriteTo hides the file's own, which would not pass Read.
func (v *verifying) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{v})
}
