package image

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec is an image to assemble. The same Spec gives the same bytes wherever,
// whenever and by whichever Go it is assembled.
type Spec struct {
	Platform   string // "linux/amd64"
	Files      []File
	Entrypoint []string
	Command    []string
	Env        []string
	User       string
	WorkingDir string
	Labels     map[string]string
}

// Assemble makes an image of one layer. The layer is not compressed: what gzip
// makes of the same bytes differs between versions of Go. Its creation time is
// zero and it has no history.
func Assemble(spec Spec) (v1.Image, error) {
	p, err := parsePlatform(spec.Platform)
	if err != nil {
		return nil, fmt.Errorf("assembling an image: %w", err)
	}
	packed, err := layerTar(spec.Files)
	if err != nil {
		return nil, err
	}
	layer := static.NewLayer(packed, types.OCIUncompressedLayer)
	digest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(&v1.ConfigFile{
		OS:           p.OS,
		Architecture: p.Arch,
		RootFS:       v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{digest}},
		Config: v1.Config{
			Entrypoint: spec.Entrypoint,
			Cmd:        spec.Command,
			Env:        spec.Env,
			User:       spec.User,
			WorkingDir: spec.WorkingDir,
			Labels:     spec.Labels,
		},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(&v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: sha256Of(config), Size: int64(len(config))},
		Layers:        []v1.Descriptor{{MediaType: types.OCIUncompressedLayer, Digest: digest, Size: int64(len(packed))}},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&assembled{config, manifest, layer})
}

// assembled is an image whose every byte is at hand.
type assembled struct {
	config, manifest []byte
	layer            v1.Layer
}

func (a *assembled) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *assembled) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *assembled) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *assembled) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if h == sha256Of(a.config) {
		return static.NewLayer(a.config, types.OCIConfigJSON), nil
	}
	if d, _ := a.layer.Digest(); d != h {
		return nil, fmt.Errorf("an assembled image has no layer %s", h)
	}
	return a.layer, nil
}

// WriteLayout writes img alone into a new OCI layout at dir, named tag unless
// that is empty. "podman pull oci:DIR:TAG" loads it under its config digest.
func WriteLayout(dir string, img v1.Image, tag string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	var opts []layout.Option
	if tag != "" {
		opts = append(opts, layout.WithAnnotations(map[string]string{refName: tag}))
	}
	if err := path.AppendImage(img, opts...); err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	return nil
}

// digestsOf returns an image's manifest and config digests and its layer's size.
func digestsOf(img v1.Image) (manifest, config, layer v1.Hash, size int64, err error) {
	raw, err := img.RawManifest()
	if err != nil {
		return
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return
	}
	if len(m.Layers) != 1 {
		return manifest, config, layer, 0, fmt.Errorf("an assembled image has one layer, this one %d", len(m.Layers))
	}
	return sha256Of(raw), m.Config.Digest, m.Layers[0].Digest, m.Layers[0].Size, nil
}
