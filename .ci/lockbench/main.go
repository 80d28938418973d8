// Command lockbench times locking against a registry on the loopback that
// answers late, as a distant one does: "lazaret lock" of 1 and of 50 images,
// beside resolving the same 50 one at a time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lazaret/image"
)

const images = 50

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

func main() {
	lazaret := flag.String("lazaret", "bin/lazaret", "the lazaret to time")
	delay := flag.Duration("delay", 50*time.Millisecond, "what each answer of the registry takes")
	rounds := flag.Int("rounds", 5, "how often each is timed")
	flag.Parse()
	if err := run(*lazaret, *delay, *rounds, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "lockbench: error: %v\n", err)
		os.Exit(1)
	}
}

func run(lazaret string, delay time.Duration, rounds int, out io.Writer) error {
	lazaret, err := filepath.Abs(lazaret)
	if err != nil {
		return err
	}
	slow := &late{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(slow)
	defer server.Close()
	refs, err := push(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		return err
	}
	slow.delay = delay

	times := map[string][]time.Duration{}
	measure := func(what string, do func() error) error {
		start := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		times[what] = append(times[what], time.Since(start))
		return nil
	}
	ways := []struct {
		what string
		do   func() error
	}{
		{"lazaret lock, 1 image", func() error { return lock(lazaret, refs[:1]) }},
		{"lazaret lock, 50 images", func() error { return lock(lazaret, refs) }},
		{"resolving 50 images one at a time", func() error { return oneAtATime(refs) }},
	}
	for range rounds {
		for _, w := range ways {
			if err := measure(w.what, w.do); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "registry on the loopback, %v an answer, two platforms an image:\n", delay)
	for _, w := range ways {
		t := times[w.what]
		slices.Sort(t)
		fmt.Fprintf(out, "%-34s median %5d ms, all %d to %d\n", w.what,
			t[len(t)/2].Milliseconds(), t[0].Milliseconds(), t[len(t)-1].Milliseconds())
	}
	return nil
}

// late answers after delay.
type late struct {
	http.Handler
	delay time.Duration
}

func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(l.delay)
	l.Handler.ServeHTTP(w, r)
}

// push fills the registry and returns the references.
func push(host string) ([]string, error) {
	var refs []string
	for i := range images {
		index := v1.ImageIndex(empty.Index)
		for _, p := range platforms {
			img, err := random.Image(64, 1)
			if err != nil {
				return nil, err
			}
			cfg, err := img.ConfigFile()
			if err != nil {
				return nil, err
			}
			cfg.OS, cfg.Architecture = p.OS, p.Architecture
			if img, err = mutate.ConfigFile(img, cfg); err != nil {
				return nil, err
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
		}
		ref, err := name.ParseReference(fmt.Sprintf("%s/bench/image-%02d:1", host, i))
		if err != nil {
			return nil, err
		}
		if err := remote.WriteIndex(ref, index); err != nil {
			return nil, fmt.Errorf("pushing %s: %w", ref, err)
		}
		refs = append(refs, ref.Name())
	}
	return refs, nil
}

// lock runs lazaret in a new workspace with one profile for each image.
func lock(lazaret string, refs []string) error {
	dir, err := os.MkdirTemp("", "lockbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var toml strings.Builder
	toml.WriteString("[storage]\ndata_root = \"~/lazaret\"\n[network]\ndefault_allow = []\ndefault_deny = []\n" +
		"[escalation]\nenabled = false\nsocket_dir = \"{runtime_dir}/lazaret\"\n")
	for i, ref := range refs {
		fmt.Fprintf(&toml, "[profiles.p%02d]\nimage = %q\n", i, ref)
	}
	if err := os.WriteFile(filepath.Join(dir, "lazaret.toml"), []byte(toml.String()), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(lazaret, "lock")
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func oneAtATime(refs []string) error {
	r := image.NewResolver(image.Options{Jobs: 1})
	for _, ref := range refs {
		if _, err := r.Resolve(context.Background(), ref, []string{"linux/amd64", "linux/arm64"}); err != nil {
			return err
		}
	}
	return nil
}
