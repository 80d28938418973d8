package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"lazaret/lock/config"
)

// Request is the question a lock answers.
type Request struct {
	Config *config.Config
	Inputs Inputs // the layers that Config came from, and the platforms to lock for

	Helpers  Helpers
	Resolver Resolver

	Previous  *File    // whose pins are kept, or nil
	UpdateAll bool     // keep no pin
	Update    []string // keep no pin of these profiles

	Parallel int                               // references resolved at once; 0: 8
	Resolved func(ref string, done, total int) // told after each reference, one call at a time; may be nil
}

// Helpers are the digests of this build's own helper programs, by platform key.
type Helpers struct {
	Sidecar  map[string]Sidecar
	Escalate map[string]Binary
}

// Warning is something a person should know that is no error.
type Warning struct {
	Key  string // dotted
	Text string
}

func (w Warning) String() string { return w.Key + ": " + w.Text }

// Build makes a lock. It is pure but for the Resolver, which is asked once for
// each distinct reference that has no pin to keep; references to what lies on
// this machine (oci:, builtin:) have none, since asking again costs nothing
// and an old pin may no longer be there. Errors of several profiles are joined
// in the order of their names.
func Build(ctx context.Context, req Request) (*File, []Warning, error) {
	b := &builder{Request: req}
	f, err := b.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := f.validate(); err != nil {
		return nil, nil, fmt.Errorf("locking: %w", err)
	}
	return f, b.warnings, nil
}

type builder struct {
	Request
	offline  bool // leave what would need a network without digests
	warnings []Warning
	wants    []want
}

// want is a reference to resolve and where its digests go.
type want struct {
	ref   string
	key   string // who asked first
	image Image
	err   error
	to    []func(Image) error
}

func (b *builder) build(ctx context.Context) (*File, error) {
	f := &File{
		Version:  Version,
		Inputs:   b.Inputs,
		Storage:  Storage{DataRoot: b.Config.Storage.DataRoot, Overlay: b.Config.Storage.Overlay},
		Profiles: map[string]Profile{},
	}
	names := slices.Sorted(maps.Keys(b.Config.Profiles))
	for _, name := range b.Update {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("updating %s: there is no such profile: the config has %s", quote(name), strings.Join(names, ", "))
		}
	}
	var errs []error
	for _, name := range names {
		key := "profiles." + name
		p, warnings, err := profile(key, b.Inputs, b.Config, b.Config.Profiles[name])
		b.warnings = append(b.warnings, warnings...)
		if err != nil {
			errs = append(errs, b.locatedKey(err))
			continue
		}
		if w := floating(p.Image.Ref); w != "" {
			b.warnings = append(b.warnings, Warning{key + ".image", w})
		}
		if kept, ok := b.pin(name, p.Image.Ref); ok {
			p.Image = kept
		} else {
			b.want(p.Image.Ref, key+".image", func(i Image) error {
				p.Image = i
				f.Profiles[name] = p
				return nil
			})
		}
		f.Profiles[name] = p
	}
	errs = append(errs, b.helpers(f))
	if err := join(errs...); err != nil {
		return nil, err // nobody is asked while the config is known to be wrong
	}
	return f, b.resolve(ctx)
}

// located adds where in the config a key was written.
func (b *builder) located(key string, err error) error {
	if pos, ok := b.Config.Origin[key]; ok && pos.Line > 0 {
		return fmt.Errorf("%s:%d: %w", config.Show(pos.File), pos.Line, err)
	}
	return err
}

func (b *builder) locatedKey(err error) error {
	var k *KeyError
	if errors.As(err, &k) {
		return b.located(k.Key, err)
	}
	return err
}

// pin finds the digests that an earlier lock holds for ref: the profile's own,
// else another's, so that a renamed profile keeps its image.
func (b *builder) pin(name, ref string) (Image, bool) {
	if b.Previous == nil || b.UpdateAll || isLocal(ref) || slices.Contains(b.Update, name) {
		return Image{}, false
	}
	for _, from := range append([]string{name}, slices.Sorted(maps.Keys(b.Previous.Profiles))...) {
		have, ok := b.Previous.Profiles[from]
		if !ok || have.Image.Ref != ref {
			continue
		}
		out := Image{Ref: ref, Index: have.Image.Index, Platforms: map[string]PlatformImage{}}
		for _, p := range b.Inputs.Platforms {
			if pi, ok := have.Image.Platforms[PlatformKey(p)]; ok {
				out.Platforms[PlatformKey(p)] = pi
			}
		}
		if len(out.Platforms) == len(b.Inputs.Platforms) {
			return out, true
		}
	}
	return Image{}, false
}

// isLocal reports whether ref names something that needs no network.
func isLocal(ref string) bool {
	return strings.HasPrefix(ref, "oci:") || strings.HasPrefix(ref, "builtin:")
}

// floating says why a reference does not say which image it means, or "".
func floating(ref string) string {
	if isLocal(ref) || strings.Contains(ref, "@") {
		return ""
	}
	switch _, tag, ok := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":"); {
	case !ok:
		return quote(ref) + " has no tag: it is whatever is newest whenever it is locked"
	case tag == "latest":
		return quote(ref) + " is whatever is newest whenever it is locked"
	}
	return ""
}

// want asks for ref to be resolved; the same reference is asked for once.
func (b *builder) want(ref, key string, to func(Image) error) {
	for i := range b.wants {
		if b.wants[i].ref == ref {
			b.wants[i].to = append(b.wants[i].to, to)
			return
		}
	}
	b.wants = append(b.wants, want{ref: ref, key: key, to: []func(Image) error{to}})
}

const defaultParallel = 8

// resolve resolves what is wanted, all of it even where some fails, so that a
// person sees every wrong reference at once.
func (b *builder) resolve(ctx context.Context) error {
	if b.offline {
		b.wants = slices.DeleteFunc(b.wants, func(w want) bool { return !isLocal(w.ref) })
	}
	parallel := b.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	var (
		g    errgroup.Group // without a context: one failure must not hide the others
		mu   sync.Mutex
		done int
	)
	g.SetLimit(parallel)
	for i := range b.wants {
		w := &b.wants[i]
		g.Go(func() error {
			w.image, w.err = b.Resolver.Resolve(ctx, w.ref, b.Inputs.Platforms)
			mu.Lock()
			defer mu.Unlock()
			if done++; b.Resolved != nil {
				b.Resolved(w.ref, done, len(b.wants))
			}
			return nil
		})
	}
	g.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("resolving images: %w", err)
	}
	var errs []error
	for _, w := range b.wants {
		if w.err != nil {
			errs = append(errs, b.located(w.key, fmt.Errorf("%s: %w", w.key, w.err)))
			continue
		}
		w.image.Ref = w.ref
		for _, to := range w.to {
			errs = append(errs, to(w.image))
		}
	}
	return join(errs...)
}
