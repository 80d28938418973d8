package launch

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/image"
	"lazaret/internal/step"
	"lazaret/lock"
)

// A lock pins the helper programs of the lazaret that made it. Another lazaret
// can launch it where those can be had, but never by itself: the sidecar is a
// program on the host's own kernel, and whoever wrote the lock chose it.

// Agree says that the person wants a helper program to run although it is
// another lazaret's.
func (p *Plan) Agree(digest string) {
	if p.agreed == nil {
		p.agreed = map[string]bool{}
	}
	p.agreed[digest] = true
}

// vouched refuses a plan with programs that nobody agreed to.
func (p *Plan) vouched() error {
	for _, x := range p.Foreign {
		if !p.agreed[x.Digest] {
			return &lock.HelperError{Name: x.Kind, Platform: x.Platform, Found: x.Digest, Own: x.Own,
				Do: `"lazaret trust helper ` + x.Digest + `" agrees to it; "lazaret lock" with this lazaret pins its own`}
		}
	}
	return nil
}

// foreign tells whether a kind of helper program is another lazaret's.
func (r *resolver) foreign(kind string) bool {
	return slices.ContainsFunc(r.Foreign, func(x lock.Foreign) bool { return x.Kind == kind })
}

// stash is where helper programs of other lazarets are kept, and the client.
func (r *resolver) stash() string { return filepath.Join(r.Host.CacheDir, "helpers") }

// agents are the directories that sandboxes write to.
func (r *resolver) agents() []string { return []string{r.Host.Workspace, r.Host.DataRoot} }

// puller asks registries as podman would be let to.
func puller(environ, outside []string) *image.Resolver {
	home := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = v
		}
	}
	return image.NewResolver(image.Options{Keychain: image.NewKeychain(environ, home, outside...)})
}

// FetchSidecar gets another lazaret's sidecar into the stash. It is lazaret
// itself that asks the registry, and not its helper, whose environment has
// nothing of the person's proxy and certificates. That it cannot be had is only
// told of: podman may have it already.
type FetchSidecar struct {
	Platform string
	Pinned   lock.Sidecar
	Stash    string
	Environ  []string
	Outside  []string // where agents write, and no credential helper is
}

const fetchStep = "network.fetch"

// Values of what FetchSidecar could not do.
const (
	fetchErrValue  = "network.fetch.error"
	fetchHintValue = "network.fetch.hint"
)

// Do fetches it where it is not in the stash.
func (o FetchSidecar) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	_, err := puller(o.Environ, o.Outside).FetchSidecar(ctx, o.Pinned.Ref, o.Platform, o.Pinned, image.Stash{Dir: o.Stash})
	if err == nil || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := step.Values{fetchErrValue: err.Error()}
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		out[fetchHintValue] = h.Hint()
	}
	return out, nil
}

// Show names what is fetched.
func (o FetchSidecar) Show() []string {
	return []string{"fetch " + o.Pinned.Config + " from " + shown(o.Pinned.Ref) + " to " + shown(o.Stash)}
}

// notFetched is why another lazaret's sidecar could not be had.
func notFetched(in step.Values) error {
	return refuse(in[fetchHintValue], "%s", in[fetchErrValue])
}

const clientStep = "client"

// client adds the step that makes the escalation client a file that a sandbox
// can be given, and returns where that is.
func (r *resolver) client() string {
	if !r.profile.Escalation.Enabled {
		return ""
	}
	k := lock.PlatformKey(r.Host.Platform)
	op := Client{
		Ref: r.file.Sidecar[k].Ref, Platform: r.Host.Platform, Digest: r.file.Escalate[k].Binary,
		Stash: r.stash(), Environ: r.Host.Environ, Outside: r.agents(),
	}
	r.step(step.Step{Name: clientStep, Op: op})
	return op.path()
}

// Client makes the escalation client that the lock pins a file: this build's
// own, else another lazaret's from where the lock says.
type Client struct {
	Ref      string
	Platform string
	Digest   string
	Stash    string
	Environ  []string
	Outside  []string // where agents write, and no credential helper is
}

// Do verifies what is there, or gets it. It stays, for the next launch.
func (o Client) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	_, err := puller(o.Environ, o.Outside).FetchClient(ctx, o.Ref, o.Platform, o.Digest, image.Stash{Dir: o.Stash})
	return nil, err
}

// Show names the file.
func (o Client) Show() []string {
	return []string{"verify or make " + shown(o.path())}
}

func (o Client) path() string {
	return filepath.Join(o.Stash, strings.Replace(o.Digest, ":", "-", 1))
}
