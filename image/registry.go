package image

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lazaret/lock"
)

func newPuller(rt *patient) *remote.Puller {
	p, err := remote.NewPuller(
		remote.WithTransport(rt),
		remote.WithAuthFromKeychain(traced{}),
		remote.WithUserAgent("lazaret"),
		// patient retries.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryPredicate(func(error) bool { return false }),
		remote.WithRetryStatusCodes(),
		remote.WithJobs(4*defaultJobs),
	)
	if err != nil {
		panic(err) // options that contradict each other: a mistake in this function
	}
	return p
}

// parseReference reads a fully qualified reference. In name:tag@digest the
// digest counts and the tag is decoration.
func parseReference(ref string) (name.Reference, error) {
	host, _, ok := strings.Cut(ref, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		long := "docker.io/" + ref
		if !ok {
			long = "docker.io/library/" + ref
		}
		return nil, &ReferenceError{Ref: ref, Reason: "it does not say which registry", Suggest: "write " + long}
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, &ReferenceError{Ref: ref, Reason: printable(err.Error(), 200), Suggest: "write registry/name:tag or registry/name@sha256:…"}
	}
	if d, ok := parsed.(name.Digest); ok && !strings.HasPrefix(d.DigestStr(), "sha256:") {
		return nil, &ReferenceError{Ref: ref, Reason: "lazaret pins sha256 digests only", Suggest: "use the image's sha256 digest"}
	}
	hostname := parsed.Context().RegistryStr()
	if i := strings.LastIndexByte(hostname, ':'); i >= 0 && !strings.HasSuffix(hostname, "]") {
		hostname = hostname[:i]
	}
	if addr, err := netip.ParseAddr(strings.Trim(hostname, "[]")); err == nil {
		if err := checkAddr(addr); err != nil {
			return nil, &ReferenceError{Ref: ref, Reason: err.Error(), Suggest: "name the registry's own address"}
		}
	}
	return parsed, nil
}

// repository is one repository of one registry, as a source.
type repository struct {
	puller *remote.Puller
	ref    string
	repo   name.Repository
	seen   *trace
	login  *login
}

// open prepares for asking the registry about ref. The context it returns
// carries what is learned of the registry on the way.
func (r *Resolver) open(ctx context.Context, ref string) (context.Context, *repository, name.Reference, error) {
	parsed, err := parseReference(ref)
	if err != nil {
		return ctx, nil, nil, err
	}
	src := &repository{puller: r.puller, ref: ref, repo: parsed.Context()}
	if src.login, err = findLogin(ctx, r.opts.Keychain, src.repo); err != nil {
		return ctx, nil, nil, err
	}
	src.seen = &trace{registry: src.repo.RegistryStr(), wait: func(d time.Duration) {
		r.opts.Progress(Progress{Ref: ref, Kind: "wait", Wait: d.String()})
	}}
	if src.login.AuthConfig != (authn.AuthConfig{}) {
		src.seen.login = src.login
	}
	return withTrace(ctx, src.seen), src, parsed, nil
}

func (r *Resolver) resolveRegistry(ctx context.Context, ref string, wants []platform) (lock.Image, error) {
	ctx, src, parsed, err := r.open(ctx, ref)
	if err != nil {
		return lock.Image{}, err
	}
	raw, err := src.get(ctx, parsed)
	if err != nil {
		return lock.Image{}, err
	}
	if d, ok := parsed.(name.Digest); ok {
		want, err := v1.NewHash(d.DigestStr())
		if err != nil {
			return lock.Image{}, &ReferenceError{Ref: ref, Reason: err.Error()}
		}
		if err := verify(ref, src.name(), "manifest", raw, want); err != nil {
			return lock.Image{}, err
		}
	}
	doc, err := parseDocument(ref, raw)
	if err != nil {
		return lock.Image{}, err
	}
	return fromDocument(ctx, src, ref, doc, wants)
}

// fromDocument resolves what a reference named: an index or a single image.
func fromDocument(ctx context.Context, src source, ref string, doc *document, wants []platform) (lock.Image, error) {
	if doc.isIndex() {
		l := &list{ref: ref, digest: doc.digest.String(), entries: doc.Manifests}
		return l.each(ctx, src, wants)
	}
	img := lock.Image{Ref: ref, Platforms: make(map[string]lock.PlatformImage)}
	for _, want := range wants {
		p, err := describe(ctx, src, ref, doc, want, nil)
		if err != nil {
			return lock.Image{}, err
		}
		img.Platforms[want.key()] = p
	}
	return img, nil
}

// findLogin asks the keychain. What is wrong with it is kept for later: most
// images are public.
func findLogin(ctx context.Context, k authn.Keychain, repo name.Repository) (*login, error) {
	auth, err := authn.Resolve(ctx, k, repo)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return &login{problems: []string{err.Error()}}, nil
	}
	if l, ok := auth.(*login); ok {
		return l, nil
	}
	cfg, err := authn.Authorization(ctx, auth)
	if err != nil {
		return &login{problems: []string{err.Error()}}, nil
	}
	if cfg == nil || *cfg == (authn.AuthConfig{}) {
		return &login{}, nil
	}
	return &login{AuthConfig: *cfg, from: "the keychain"}, nil
}

func (r *repository) name() string { return hostKey(r.repo.RegistryStr()) }

func (r *repository) get(ctx context.Context, ref name.Reference) ([]byte, error) {
	desc, err := r.puller.Get(ctx, ref)
	if err == nil {
		return desc.Manifest, nil
	}
	d, byDigest := ref.(name.Digest)
	if byDigest && status(err) == http.StatusNotFound {
		return nil, &GoneError{Ref: r.ref, Registry: r.name(), Digest: d.DigestStr()}
	}
	return nil, r.wrap(ctx, err)
}

func (r *repository) manifest(ctx context.Context, h v1.Hash) ([]byte, error) {
	raw, err := r.get(ctx, r.repo.Digest(h.String()))
	var gone *GoneError
	if errors.As(err, &gone) {
		return nil, errMissing
	}
	return raw, err
}

func (r *repository) blob(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	layer, err := r.puller.Layer(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, r.wrap(ctx, err)
	}
	body, err := layer.Compressed()
	if err != nil {
		if status(err) == http.StatusNotFound {
			return nil, &GoneError{Ref: r.ref, Registry: r.name(), Digest: d.Digest.String()}
		}
		return nil, r.wrap(ctx, err)
	}
	defer body.Close()
	// One byte more than promised shows as another digest. The reader's own
	// verdict on the digest is left to verify, which says what was expected.
	raw, err := io.ReadAll(io.LimitReader(body, min(d.Size, maxConfig)+1))
	var broken net.Error
	if err != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) || ctx.Err() != nil) {
		return nil, r.wrap(ctx, err)
	}
	return raw, nil
}

// wrap tells a refusal with all that a person needs to act on it.
func (r *repository) wrap(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &RegistryError{Ref: r.ref, Registry: r.name(), Status: status(err), Login: r.login.from, Err: err}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusNotFound:
		e.Problems = r.login.problems
	}
	r.seen.mu.Lock()
	defer r.seen.mu.Unlock()
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		e.RetryAfter = r.seen.after
	}
	return e
}

// status is the HTTP status behind an error of the registry library, or 0.
func status(err error) int {
	var e *transport.Error
	if errors.As(err, &e) {
		return e.StatusCode
	}
	return 0
}
