package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	images = 50
	delay  = 20 * time.Millisecond // of each of the registry's answers
)

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// distant is a registry on the loopback that answers late, as a distant one
// does.
type distant struct {
	http.Handler
	late  atomic.Bool
	asked atomic.Int64
}

func (d *distant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.asked.Add(1)
	if d.late.Load() {
		time.Sleep(delay)
	}
	d.Handler.ServeHTTP(w, r)
}

// newDistant makes one with fifty images, until the experiment ends.
func (b *bench) newDistant() (d *distant, refs []string, err error) {
	d = &distant{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(d)
	b.later(func() error { server.Close(); return nil })
	for i := range images {
		ref := fmt.Sprintf("%s/bench/image-%02d:1", strings.TrimPrefix(server.URL, "http://"), i)
		if err := push(ref); err != nil {
			return nil, nil, fmt.Errorf("pushing %s: %w", ref, err)
		}
		refs = append(refs, ref)
	}
	d.late.Store(true)
	return d, refs, nil
}

func push(ref string) error {
	index := v1.ImageIndex(empty.Index)
	for _, p := range platforms {
		img, err := random.Image(64, 1)
		if err != nil {
			return err
		}
		cfg, err := img.ConfigFile()
		if err != nil {
			return err
		}
		cfg.OS, cfg.Architecture = p.OS, p.Architecture
		if img, err = mutate.ConfigFile(img, cfg); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	to, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	return remote.WriteIndex(to, index)
}

// lockable is a new workspace with one profile for each image.
func (b *bench) lockable(refs []string) (*workspace, error) {
	if err := os.MkdirAll(b.work, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.work, "fifty-")
	if err != nil {
		return nil, err
	}
	var toml strings.Builder
	toml.WriteString("[storage]\ndata_root = \"~/lazaret\"\n[network]\ndefault_allow = []\ndefault_deny = []\n" +
		"[escalation]\nenabled = false\nsocket_dir = \"{runtime_dir}/lazaret\"\n")
	for i, ref := range refs {
		fmt.Fprintf(&toml, "[profiles.p%02d]\nimage = %q\n", i, ref)
	}
	return &workspace{bench: b, dir: dir}, os.WriteFile(filepath.Join(dir, "lazaret.toml"), []byte(toml.String()), 0o600)
}

func prepareLock(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	_, refs, err := b.newDistant()
	if err != nil {
		return nil, err
	}
	return []side{
		{"lock fifty", func() (float64, error) {
			w, err := b.lockable(refs)
			if err != nil {
				return 0, err
			}
			return taking(func() error { return said(w.run(ctx, b.lazaret(), "lock")) })
		}},
		{"crane fifty", func() (float64, error) {
			return taking(func() error { return craneAll(ctx, refs) })
		}},
	}, nil
}

// craneAll does what a script with crane would: the index, and each platform's
// config, whose digests are what a lock pins.
func craneAll(ctx context.Context, refs []string) error {
	for _, ref := range refs {
		if _, err := crane.Manifest(ref, crane.WithContext(ctx)); err != nil {
			return err
		}
		for _, p := range platforms {
			if _, err := crane.Config(ref, crane.WithContext(ctx), crane.WithPlatform(&p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func prepareCheck(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	d, refs, err := b.newDistant()
	if err != nil {
		return nil, err
	}
	w, err := b.lockable(refs)
	if err != nil {
		return nil, err
	}
	if err := said(w.run(ctx, b.lazaret(), "lock")); err != nil {
		return nil, err
	}
	asked := d.asked.Load()
	return []side{
		{"lock check", func() (float64, error) {
			took, err := taking(func() error { return said(w.run(ctx, b.lazaret(), "lock", "--check")) })
			if d.asked.Load() != asked {
				return 0, errors.Join(err, errors.New("it asked the registry"))
			}
			return took, err
		}},
		{"true beside check", hostTrue(ctx)},
	}, nil
}
