// Package image owns what is known of container images: it resolves a
// reference (a registry's, an OCI layout's or a builtin's) to digests, and it
// assembles images of lazaret's own from the static helper binaries embedded
// here. It starts no container, never falls back from a digest to a tag, and
// believes no digest it has not computed from the bytes itself.
package image

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lazaret/lock"
)

// Options say how references are resolved.
type Options struct {
	// Keychain finds registry credentials; nil asks anonymously. See NewKeychain.
	Keychain authn.Keychain
	// Transport carries registry requests; nil is a transport that refuses to
	// connect to link-local addresses whatever name led there.
	Transport http.RoundTripper
	// Dir is the workspace: the base of a relative oci:DIR, which cannot leave it.
	Dir string
	// Progress, when set, is told what happens. It is called concurrently.
	Progress func(Progress)
	// Jobs caps the references resolved at the same time; 0 means 8.
	Jobs int
}

// Progress is one thing that happened to one reference.
type Progress struct {
	Ref  string
	Kind string // "begin", "wait" (the registry asked for patience), "done" or "failed"
	Wait string // for "wait": how long, as "5s"
}

// Resolver resolves references; it implements lock.Resolver. It is safe for
// concurrent use and shares connections and tokens between references.
type Resolver struct {
	opts   Options
	puller *remote.Puller
	slots  chan struct{}
}

const defaultJobs = 8

// NewResolver returns a Resolver. It asks nobody anything yet.
func NewResolver(opts Options) *Resolver {
	if opts.Jobs <= 0 {
		opts.Jobs = defaultJobs
	}
	if opts.Transport == nil {
		opts.Transport = newTransport()
	}
	if opts.Keychain == nil {
		opts.Keychain = anonymous{}
	}
	if opts.Progress == nil {
		opts.Progress = func(Progress) {}
	}
	return &Resolver{
		opts:   opts,
		puller: newPuller(newPatient(opts.Transport)),
		slots:  make(chan struct{}, opts.Jobs),
	}
}

// Prefixes of references that name no registry.
const (
	layoutPrefix  = "oci:"
	builtinPrefix = "builtin:"
	shellRef      = builtinPrefix + "shell"
)

// Resolve looks ref up for each platform ("linux/amd64"). What the registry or
// layout hands out is verified by digest. Errors are typed and carry a hint.
func (r *Resolver) Resolve(ctx context.Context, ref string, platforms []string) (lock.Image, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return lock.Image{}, ctx.Err()
	}
	r.opts.Progress(Progress{Ref: ref, Kind: "begin"})
	img, err := r.resolve(ctx, ref, platforms)
	kind := "done"
	if err != nil {
		kind = "failed"
	}
	r.opts.Progress(Progress{Ref: ref, Kind: kind})
	return img, err
}

func (r *Resolver) resolve(ctx context.Context, ref string, platforms []string) (lock.Image, error) {
	wants := make([]platform, 0, len(platforms))
	for _, s := range platforms {
		p, err := parsePlatform(s)
		if err != nil {
			return lock.Image{}, &ReferenceError{Ref: ref, Reason: err.Error()}
		}
		wants = append(wants, p)
	}
	switch {
	case strings.HasPrefix(ref, builtinPrefix):
		return resolveBuiltin(ref, wants)
	case strings.HasPrefix(ref, layoutPrefix):
		return r.resolveLayout(ctx, ref, wants)
	}
	return r.resolveRegistry(ctx, ref, wants)
}
