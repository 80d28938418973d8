package image

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ClientType is what the escalation client is published as: an OCI artifact
// whose only layer is the program itself. A lock pins the program's digest, and
// that is the blob's, so the lock alone says what to ask a registry for.
const ClientType = "application/vnd.lazaret.escalate.v1"

const emptyConfigType = types.MediaType("application/vnd.oci.empty.v1+json")

// Published is what Publish left in a registry.
type Published struct {
	Index string // digest
	Was   string // what the tag named before, where that was something else
}

// Publish pushes this build's sidecar, for all platforms, under a tag, and the
// escalation clients in the same index: with the tag all of them are kept, and
// whoever pulls the tag for a platform gets the sidecar. version, where there
// is one, is noted on the index; nothing else depends on it.
func (r *Resolver) Publish(ctx context.Context, ref, version string) (Published, error) {
	ctx, src, parsed, err := r.open(ctx, ref)
	if err != nil {
		return Published{}, err
	}
	tag, ok := parsed.(name.Tag)
	if !ok {
		return Published{}, &ReferenceError{Ref: ref, Reason: "a digest cannot be chosen when publishing", Suggest: "write registry/name:tag"}
	}
	index, err := helperIndex(version, SidecarName, EscalateName, Binary)
	if err != nil {
		return Published{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return Published{}, err
	}
	out := Published{Index: digest.String()}
	if desc, err := src.puller.Head(ctx, tag); err == nil && desc.Digest != digest {
		out.Was = desc.Digest.String()
	}
	err = remote.WriteIndex(tag, index,
		remote.WithContext(ctx),
		remote.WithTransport(newPatient(r.opts.Transport)),
		remote.WithAuth(src.login),
		remote.WithUserAgent("lazaret"),
	)
	if err != nil {
		return Published{}, src.wrap(ctx, err)
	}
	return out, nil
}

// helperIndex assembles what is published. The same binaries and version give
// the same bytes.
func helperIndex(version, sidecar, client string, binary func(name, platform string) ([]byte, error)) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var clients []mutate.IndexAddendum
	for _, s := range slices.Sorted(slices.Values(Platforms())) {
		p, err := parsePlatform(s)
		if err != nil {
			return nil, err
		}
		b, err := binary(sidecar, s)
		if err != nil {
			return nil, err
		}
		img, err := Assemble(sidecarSpec(s, b))
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
		if b, err = binary(client, s); err != nil {
			return nil, err
		}
		a, err := artifact(b)
		if err != nil {
			return nil, err
		}
		clients = append(clients, mutate.IndexAddendum{Add: a, Descriptor: v1.Descriptor{
			ArtifactType: ClientType,
			// As builders file what is no image: nobody pulls it by mistake.
			Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{"lazaret.platform": p.String()},
		}})
	}
	index = mutate.AppendManifests(index, clients...)
	if version != "" {
		index = mutate.Annotations(index, map[string]string{"org.opencontainers.image.version": version}).(v1.ImageIndex)
	}
	return index, nil
}

// artifact is the manifest of one program that is no image.
func artifact(program []byte) (v1.Image, error) {
	config := []byte("{}")
	layer := static.NewLayer(program, ClientType)
	digest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(&v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  ClientType,
		Config:        v1.Descriptor{MediaType: emptyConfigType, Digest: sha256Of(config), Size: int64(len(config))},
		Layers: []v1.Descriptor{{MediaType: ClientType, Digest: digest, Size: int64(len(program)),
			Annotations: map[string]string{"org.opencontainers.image.title": EscalateName}}},
	})
	if err != nil {
		return nil, fmt.Errorf("describing the escalation client: %w", err)
	}
	return partial.CompressedToImage(&assembled{config, manifest, layer})
}
