package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lazaret/lock"
)

// Sizes beyond which a document is no honest manifest or config.
const (
	maxManifest = 4 << 20
	maxConfig   = 8 << 20
)

// source hands out what a registry or layout has under a digest. What it
// returns is verified here. An error that is errMissing says that there is
// nothing under that digest.
type source interface {
	// name is the registry or layout, for messages.
	name() string
	manifest(ctx context.Context, h v1.Hash) ([]byte, error)
	blob(ctx context.Context, d v1.Descriptor) ([]byte, error)
}

var errMissing = errors.New("there is nothing under that digest")

// document is a manifest or an index, told apart by what it contains.
type document struct {
	raw    []byte
	digest v1.Hash

	MediaType    types.MediaType   `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *v1.Descriptor    `json:"config"`
	Layers       []v1.Descriptor   `json:"layers"`
	Manifests    []v1.Descriptor   `json:"manifests"`
	FSLayers     json.RawMessage   `json:"fsLayers"`
	Annotations  map[string]string `json:"annotations"`
}

func (d *document) isIndex() bool { return d.Config == nil }

// parseDocument reads a manifest or an index. One that could be read as either
// is refused: registries, podman and lazaret must not see different images.
func parseDocument(ref string, raw []byte) (*document, error) {
	bad := func(format string, args ...any) (*document, error) {
		return nil, &ManifestError{Ref: ref, Reason: fmt.Sprintf(format, args...)}
	}
	if len(raw) > maxManifest {
		return bad("its manifest is larger than %d MiB", maxManifest>>20)
	}
	d := &document{raw: raw, digest: sha256Of(raw)}
	if err := json.Unmarshal(raw, d); err != nil {
		return bad("its manifest is not valid JSON")
	}
	index := d.MediaType.IsIndex() || d.MediaType == "" && d.Manifests != nil
	switch {
	case d.FSLayers != nil:
		return bad("it has a manifest of Docker's first format, which is no longer used")
	case d.Config != nil && d.Manifests != nil, index && d.Layers != nil:
		return bad("its manifest claims to be an index and an image at the same time")
	case index && d.Manifests == nil, d.Manifests != nil && !index:
		return bad("its manifest has type %q, which is not what it contains", printable(string(d.MediaType), 100))
	case index:
		d.Config = nil
		return d, nil
	case d.Config == nil || d.MediaType != "" && !d.MediaType.IsImage():
		return bad("it is not a container image (type %q)", printable(string(d.MediaType), 100))
	}
	for i, part := range append([]v1.Descriptor{*d.Config}, d.Layers...) {
		what := "layer"
		if i == 0 {
			what = "config"
		}
		if why := fetchedElsewhere(what, part); why != "" {
			return nil, &ManifestError{Ref: ref, Reason: why, Do: "build it again with all its layers, or choose another image"}
		}
	}
	return d, nil
}

// fetchedElsewhere says why a part of an image is refused that its registry or
// layout need not have: podman asks the addresses that the manifest gives for it
// instead, whatever they lead to, this machine and the cloud's metadata included.
func fetchedElsewhere(what string, d v1.Descriptor) string {
	t := strings.ToLower(string(d.MediaType))
	switch {
	case len(d.URLs) > 0:
		return fmt.Sprintf("its %s %s has addresses of its own (%s), which podman would ask in place of where the image is",
			what, d.Digest, printable(strings.Join(d.URLs, ", "), 200))
	case strings.Contains(t, ".nondistributable.") || strings.Contains(t, ".foreign."):
		return fmt.Sprintf("its %s %s is not distributed with the image (type %q), but fetched from elsewhere", what, d.Digest, printable(string(d.MediaType), 100))
	}
	return ""
}

// sha256Of is the digest of b.
func sha256Of(b []byte) v1.Hash {
	sum := sha256.Sum256(b)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// verify compares bytes with their name.
func verify(ref, from, what string, b []byte, want v1.Hash) error {
	if want.Algorithm != "sha256" {
		return &ManifestError{Ref: ref, Reason: fmt.Sprintf("its %s has a %q digest; lazaret pins sha256 only", what, printable(want.Algorithm, 40))}
	}
	if got := sha256Of(b); got != want {
		return &DigestError{Ref: ref, From: from, What: what, Want: want.String(), Got: got.String()}
	}
	return nil
}

// isImageEntry is false for attestations, signatures and nested indexes.
func isImageEntry(e v1.Descriptor) bool {
	if e.Annotations["vnd.docker.reference.type"] != "" || e.ArtifactType != "" && e.ArtifactType != string(types.OCIConfigJSON) && e.ArtifactType != string(types.DockerConfigJSON) {
		return false
	}
	return e.MediaType.IsImage() && (e.Platform == nil || platformOf(e.Platform).real())
}

// has lists the platforms of an index, for messages.
func has(entries []v1.Descriptor) []string {
	seen := make(map[string]bool)
	for _, e := range entries {
		if isImageEntry(e) && e.Platform != nil {
			seen[printable(platformOf(e.Platform).String(), 60)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// describe fetches a manifest's config and tells what the image is and would do.
// claimed is the platform its index gives it, nil where there is none.
func describe(ctx context.Context, src source, ref string, m *document, want platform, claimed *v1.Platform) (lock.PlatformImage, error) {
	var out lock.PlatformImage
	if t := m.Config.MediaType; !t.IsConfig() {
		return out, &ManifestError{Ref: ref, Reason: fmt.Sprintf("it is not a container image but holds %q", printable(string(t), 100))}
	}
	if m.Config.Size > maxConfig {
		return out, &ManifestError{Ref: ref, Reason: "its config is too large to be one"}
	}
	raw, err := src.blob(ctx, *m.Config)
	if err != nil {
		return out, err
	}
	if err := verify(ref, src.name(), "config", raw, m.Config.Digest); err != nil {
		return out, err
	}
	var cfg v1.ConfigFile
	if err := json.Unmarshal(raw, &cfg); err != nil {
		return out, &ManifestError{Ref: ref, Reason: "its config is not valid JSON"}
	}
	have := platform{cfg.OS, cfg.Architecture, cfg.Variant}.canonical()
	if have == (platform{}) && claimed != nil {
		have = want
	}
	if have.OS != want.OS || have.Arch != want.Arch || have.Variant != "" && have.Variant != want.Variant {
		return out, &PlatformError{Ref: ref, Want: want.String(), Have: []string{printable(have.String(), 60)}}
	}
	if keys := ObeyedAnnotations(m.Annotations); len(keys) > 0 {
		return out, &AnnotationError{Ref: ref, Platform: want.String(), Keys: keys}
	}
	out = lock.PlatformImage{
		Manifest:    m.digest.String(),
		Config:      m.Config.Digest.String(),
		Entrypoint:  cfg.Config.Entrypoint,
		Command:     cfg.Config.Cmd,
		User:        cfg.Config.User,
		WorkingDir:  cfg.Config.WorkingDir,
		Env:         cfg.Config.Env,
		Volumes:     slices.Sorted(maps.Keys(cfg.Config.Volumes)),
		Annotations: shownAnnotations(m.Annotations),
	}
	for _, l := range m.Layers {
		out.Size += l.Size
		if l.Size < 0 || out.Size < 0 {
			return out, &ManifestError{Ref: ref, Reason: "it has a layer of impossible size"}
		}
	}
	return out, nil
}
