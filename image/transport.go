package image

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
)

const (
	maxTries = 4
	// maxWait is the longest wait for a registry that asks for one. More is
	// not waited for: the person is told instead.
	maxWait = 30 * time.Second
)

// patient is a RoundTripper that guards where requests go (every redirect and
// token request passes it too), waits as long as a registry asks (Retry-After)
// and tries again. The registry library's own retries know no Retry-After and
// are switched off.
type patient struct {
	next  http.RoundTripper
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
}

func newPatient(next http.RoundTripper) *patient {
	return &patient{next: next, sleep: sleep, now: time.Now}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	seen := traceOf(req.Context())
	if err := guard(req.URL, seen.of()); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		resp, err := p.next.RoundTrip(req)
		if resp != nil && seen.anonymousPing(req, resp) {
			if req = seen.withLogin(req); req.Header.Get("Authorization") != "" {
				drain(resp)
				resp, err = p.next.RoundTrip(req)
			}
		}
		wait, again := p.again(resp, err, try)
		if resp != nil {
			seen.asked(retryAfter(resp.Header.Get("Retry-After"), p.now()))
		}
		if !again || req.Context().Err() != nil {
			return resp, err
		}
		next, ok := rewind(req)
		if !ok {
			return resp, err
		}
		if resp != nil {
			drain(resp)
		}
		seen.waiting(wait)
		if err := p.sleep(req.Context(), wait); err != nil {
			return nil, err
		}
		req = next
	}
}

// again tells whether, and after how long, a request is worth repeating.
func (p *patient) again(resp *http.Response, err error, try int) (wait time.Duration, again bool) {
	wait = time.Second << (try - 1) / 2
	if err != nil {
		return wait, try < maxTries && fleeting(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if d, ok := retryAfter(resp.Header.Get("Retry-After"), p.now()); ok {
			wait = d
		}
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
	default:
		return 0, false
	}
	return wait, try < maxTries && wait <= maxWait
}

// retryAfter parses both forms of the header: seconds and a date.
func retryAfter(h string, now time.Time) (time.Duration, bool) {
	if s, err := strconv.ParseUint(h, 10, 31); err == nil {
		return time.Duration(s) * time.Second, true
	}
	if t, err := http.ParseTime(h); err == nil {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}

// fleeting tells errors of the moment from those that will come again.
func fleeting(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsTemporary
}

// rewind returns req fit to be sent again.
func rewind(req *http.Request) (*http.Request, bool) {
	next := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	next.Body = body
	return next, err == nil
}

func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	resp.Body.Close()
}

// trace follows the requests made for one reference, for the error message and
// for progress. It travels in the context, because the registry library makes
// the requests.
type trace struct {
	registry string              // the host of the reference, as requests to it name it
	login    authn.Authenticator // what the keychain has for the repository
	wait     func(time.Duration)

	mu    sync.Mutex
	after time.Duration
}

type traceKey struct{}

func withTrace(ctx context.Context, t *trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

func traceOf(ctx context.Context) *trace {
	t, _ := ctx.Value(traceKey{}).(*trace)
	return t
}

// of is the registry that is asked; "" where none is known.
func (t *trace) of() string {
	if t == nil {
		return ""
	}
	return t.registry
}

// asked records how long the registry last asked to wait.
func (t *trace) asked(d time.Duration, asked bool) {
	if t != nil && asked {
		t.mu.Lock()
		t.after = d
		t.mu.Unlock()
	}
}

func (t *trace) waiting(d time.Duration) {
	if t != nil && t.wait != nil {
		t.wait(d)
	}
}

// anonymousPing is true for a handshake that was turned away for being one
// anonymous request too many. Registries count those against an address shared
// by many, while credentials would have been welcome; the answer is no
// challenge, so without this they would never be offered. They are for the
// registry itself: where it sends a handshake, somebody else answers.
func (t *trace) anonymousPing(req *http.Request, resp *http.Response) bool {
	return t != nil && t.login != nil && req.URL.Host == t.registry &&
		resp.StatusCode == http.StatusTooManyRequests &&
		req.Method == http.MethodGet && req.URL.Path == "/v2/" && req.Header.Get("Authorization") == ""
}

func (t *trace) withLogin(req *http.Request) *http.Request {
	cfg, err := authn.Authorization(req.Context(), t.login)
	if err != nil || cfg == nil || cfg.Username == "" || cfg.Password == "" {
		return req
	}
	req = req.Clone(req.Context())
	req.SetBasicAuth(cfg.Username, cfg.Password)
	return req
}
