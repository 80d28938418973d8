package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lazaret/lock"
)

const refName = "org.opencontainers.image.ref.name"

// layoutDir is an OCI layout on disk, as a source. Everything in it is opened
// beneath it: a stranger's repository may hold one, with links anywhere.
type layoutDir struct {
	ref  string
	root *os.Root
}

// openLayout opens oci:DIR, a relative DIR beneath base.
func openLayout(ref, base string) (*layoutDir, error) {
	// A slash at the end of a path: a pipe there is refused, not waited for.
	dir := strings.TrimPrefix(ref, layoutPrefix)
	fail := func(reason string, err error) (*layoutDir, error) {
		return nil, &LayoutError{Ref: ref, Reason: reason, Err: err, Do: "name an OCI layout in the workspace, or one by its absolute path"}
	}
	if dir == "" {
		return fail("it names no directory", nil)
	}
	if filepath.IsAbs(dir) {
		root, err := os.OpenRoot(dir + "/")
		if err != nil {
			return fail("opening the layout", err)
		}
		return &layoutDir{ref, root}, nil
	}
	if base == "" {
		return fail("there is no workspace it could be in", nil)
	}
	workspace, err := os.OpenRoot(base + "/")
	if err != nil {
		return fail("opening the workspace", err)
	}
	defer workspace.Close()
	root, err := workspace.OpenRoot(dir + "/")
	if err != nil {
		return fail("opening the layout beneath the workspace", err)
	}
	return &layoutDir{ref, root}, nil
}

// contents reads index.json and checks that this is a layout of the known version.
func (l *layoutDir) contents() ([]v1.Descriptor, error) {
	raw, err := l.read("oci-layout", maxManifest)
	if err != nil {
		return nil, l.fail("it is not an OCI layout", err)
	}
	var version struct{ ImageLayoutVersion string }
	if err := json.Unmarshal(raw, &version); err != nil || version.ImageLayoutVersion != "1.0.0" {
		return nil, l.fail(fmt.Sprintf("its oci-layout file says version %q, not 1.0.0", printable(version.ImageLayoutVersion, 40)), nil)
	}
	raw, err = l.read("index.json", maxManifest)
	if err != nil {
		return nil, l.fail("reading its index.json", err)
	}
	var toc struct{ Manifests []v1.Descriptor }
	if err := json.Unmarshal(raw, &toc); err != nil {
		return nil, l.fail("its index.json is not valid JSON", nil)
	}
	return toc.Manifests, nil
}

func (l *layoutDir) fail(reason string, err error) error {
	return &LayoutError{Ref: l.ref, Reason: reason, Err: err, Do: "write it again, for instance with: skopeo copy docker://IMAGE oci:DIR"}
}

func (r *Resolver) resolveLayout(ctx context.Context, ref string, wants []platform) (lock.Image, error) {
	l, err := openLayout(ref, r.opts.Dir)
	if err != nil {
		return lock.Image{}, err
	}
	defer l.root.Close()
	entries, err := l.contents()
	if err != nil {
		return lock.Image{}, err
	}
	indexes := make(map[v1.Hash]v1.Descriptor)
	images := 0
	for _, e := range entries {
		if e.MediaType.IsIndex() {
			indexes[e.Digest] = e
		} else if isImageEntry(e) {
			images++
		}
	}
	switch {
	case len(indexes) == 1 && images == 0:
		for h := range indexes {
			return l.index(ctx, h, wants)
		}
	case len(indexes) > 0:
		return lock.Image{}, l.several(entries)
	}
	toc := &list{ref: ref, entries: entries, strict: true}
	return toc.each(ctx, l, wants)
}

// index resolves a layout that holds one index.
func (l *layoutDir) index(ctx context.Context, h v1.Hash, wants []platform) (lock.Image, error) {
	raw, err := l.manifest(ctx, h)
	if err != nil {
		return lock.Image{}, l.fail("reading the index "+h.String(), err)
	}
	if err := verify(l.ref, l.name(), "index", raw, h); err != nil {
		return lock.Image{}, err
	}
	doc, err := parseDocument(l.ref, raw)
	if err != nil {
		return lock.Image{}, err
	}
	return fromDocument(ctx, l, l.ref, doc, wants)
}

func (l *layoutDir) several(entries []v1.Descriptor) error {
	var names []string
	for _, e := range entries {
		n := e.Digest.String()
		if tag := e.Annotations[refName]; tag != "" {
			n += " (" + printable(tag, 60) + ")"
		}
		names = append(names, n)
	}
	return &LayoutError{Ref: l.ref, Reason: "it holds more than one image: " + strings.Join(names, ", "),
		Do: "keep one image in it, or put the one you mean into a layout of its own"}
}

func (l *layoutDir) name() string { return "the layout" }

func (l *layoutDir) manifest(_ context.Context, h v1.Hash) ([]byte, error) {
	return l.blobBytes(h, maxManifest)
}

func (l *layoutDir) blob(_ context.Context, d v1.Descriptor) ([]byte, error) {
	raw, err := l.blobBytes(d.Digest, maxConfig)
	if errors.Is(err, errMissing) {
		return nil, l.fail("it lacks the config "+d.Digest.String(), nil)
	}
	return raw, err
}

func (l *layoutDir) blobBytes(h v1.Hash, limit int64) ([]byte, error) {
	raw, err := l.read(blobPath(h), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, l.fail("reading "+h.String(), err)
	}
	return raw, nil
}

func blobPath(h v1.Hash) string { return filepath.Join("blobs", h.Algorithm, h.Hex) }

// open opens a regular file of the layout. A FIFO or device in its place
// would block, or never end.
func (l *layoutDir) open(name string) (*os.File, int64, error) {
	f, err := l.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

func (l *layoutDir) read(name string, limit int64) ([]byte, error) {
	f, size, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
