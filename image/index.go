package image

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lazaret/lock"
)

// maxUnnamed bounds how many entries without a platform are asked for theirs.
const maxUnnamed = 8

// list is an index, or the table of contents of a layout.
type list struct {
	ref     string
	digest  string // of the index; "" for a table of contents, which pins nothing
	entries []v1.Descriptor
	// strict makes two images for one platform an error: a layout holds
	// whatever was put there, while in an index the first one counts.
	strict bool
}

// each looks every wanted platform up, at the same time.
func (l *list) each(ctx context.Context, src source, wants []platform) (lock.Image, error) {
	found := make([]lock.PlatformImage, len(wants))
	errs := make([]error, len(wants))
	var wg sync.WaitGroup
	for i, want := range wants {
		wg.Go(func() { found[i], errs[i] = l.platform(ctx, src, want) })
	}
	wg.Wait()
	for _, err := range errs { // the first in order, not in time: the same every time
		if err != nil {
			return lock.Image{}, err
		}
	}
	img := lock.Image{Ref: l.ref, Index: l.digest, Platforms: make(map[string]lock.PlatformImage)}
	for i, want := range wants {
		img.Platforms[want.key()] = found[i]
	}
	return img, nil
}

// platform finds the one manifest for a platform: an entry that says so, else
// one that says nothing and turns out to be.
func (l *list) platform(ctx context.Context, src source, want platform) (lock.PlatformImage, error) {
	var named, unnamed []v1.Descriptor
	seen := make(map[v1.Hash]bool)
	for _, e := range l.entries {
		if !isImageEntry(e) || seen[e.Digest] {
			continue
		}
		seen[e.Digest] = true
		switch {
		case e.Platform == nil:
			unnamed = append(unnamed, e)
		case platformOf(e.Platform) == want:
			named = append(named, e)
		}
	}
	if len(named) > 1 && l.strict {
		return lock.PlatformImage{}, l.ambiguous(want, named)
	}
	if len(named) > 0 {
		return l.child(ctx, src, want, named[0])
	}
	if len(unnamed) > maxUnnamed {
		unnamed = unnamed[:maxUnnamed]
	}
	missing := &PlatformError{Ref: l.ref, Want: want.String(), Have: has(l.entries)}
	var out []lock.PlatformImage
	var hits []v1.Descriptor
	for _, e := range unnamed {
		img, err := l.child(ctx, src, want, e)
		var other *PlatformError
		switch {
		case errors.As(err, &other):
			missing.Have = append(missing.Have, other.Have...)
		case err != nil:
			return lock.PlatformImage{}, err
		default:
			out, hits = append(out, img), append(hits, e)
		}
	}
	switch {
	case len(hits) == 0:
		return lock.PlatformImage{}, missing
	case len(hits) > 1:
		return lock.PlatformImage{}, l.ambiguous(want, hits)
	}
	return out[0], nil
}

func (l *list) child(ctx context.Context, src source, want platform, e v1.Descriptor) (lock.PlatformImage, error) {
	raw, err := src.manifest(ctx, e.Digest)
	if errors.Is(err, errMissing) {
		return lock.PlatformImage{}, &MissingChildError{Ref: l.ref, Registry: src.name(), Index: l.shown(), Platform: want.String(), Digest: e.Digest.String()}
	}
	if err != nil {
		return lock.PlatformImage{}, err
	}
	if err := verify(l.ref, src.name(), "manifest", raw, e.Digest); err != nil {
		return lock.PlatformImage{}, err
	}
	m, err := parseDocument(l.ref, raw)
	if err != nil {
		return lock.PlatformImage{}, err
	}
	if m.isIndex() {
		return lock.PlatformImage{}, &ManifestError{Ref: l.ref, Reason: "its index names another index as an image"}
	}
	return describe(ctx, src, l.ref, m, want, e.Platform)
}

func (l *list) shown() string {
	if l.digest == "" {
		return "index.json"
	}
	return l.digest
}

func (l *list) ambiguous(want platform, found []v1.Descriptor) error {
	names := ""
	for _, e := range found {
		names += fmt.Sprintf(" %s", e.Digest)
		if tag := e.Annotations[refName]; tag != "" {
			names += " (" + printable(tag, 60) + ")"
		}
	}
	return &LayoutError{Ref: l.ref, Reason: fmt.Sprintf("it has several images for %s:%s", want, names),
		Do: "keep one image in it, or put the one you mean into a layout of its own"}
}
