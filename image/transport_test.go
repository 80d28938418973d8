package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// answers is a RoundTripper that gives them one after the other.
type answers struct {
	list []any // an error, a status, or a status with a Retry-After
	n    int
}

type later struct {
	status int
	after  string
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := a.list[min(a.n, len(a.list)-1)]
	a.n++
	if req.Body != nil {
		if b, _ := io.ReadAll(req.Body); string(b) != "body" {
			return nil, fmt.Errorf("the body is %q", b)
		}
	}
	resp := &http.Response{Body: io.NopCloser(strings.NewReader("")), Header: http.Header{}, Request: req}
	switch v := answer.(type) {
	case error:
		return nil, v
	case int:
		resp.StatusCode = v
	case later:
		resp.StatusCode = v.status
		resp.Header.Set("Retry-After", v.after)
	}
	return resp, nil
}

func TestPatience(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, test := range []struct {
		what    string
		answers []any
		waits   string
		status  int
	}{
		{"no need", []any{200}, "", 200},
		{"a status that stays", []any{404, 200}, "", 404},
		{"as long as asked", []any{later{429, "7"}, 200}, "7s", 200},
		{"until when asked", []any{later{503, "Fri, 02 Jan 2026 03:04:15 GMT"}, 200}, "10s", 200},
		{"a time that has passed", []any{later{429, "Fri, 02 Jan 2026 03:04:00 GMT"}, 200}, "0s", 200},
		{"not asked", []any{429, 200}, "500ms", 200},
		{"nonsense asked", []any{later{429, "soon"}, 200}, "500ms", 200},
		{"a negative time asked", []any{later{429, "-5"}, 200}, "500ms", 200},
		{"the longest", []any{later{429, "30"}, 200}, "30s", 200},
		{"too long", []any{later{429, "31"}, 200}, "", 429},
		{"for ever", []any{503}, "500ms 1s 2s", 503},
		{"a broken connection", []any{reset, io.ErrUnexpectedEOF, 200}, "500ms 1s", 200},
		{"no connection", []any{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 200}, "", 0},
	} {
		var waits []string
		p := &patient{next: &answers{list: test.answers}, now: func() time.Time { return now },
			sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d.String()); return nil }}
		req, err := http.NewRequest("POST", "https://registry.example/v2/", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.RoundTrip(req)
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		if got := strings.Join(waits, " "); got != test.waits || status != test.status {
			t.Errorf("%s: waited %q and got %d %v, want %q and %d", test.what, got, status, err, test.waits, test.status)
		}
	}
}

func TestGuard(t *testing.T) {
	for raw, allowed := range map[string]bool{
		"https://registry.example/v2/":         true,
		"http://registry.example/v2/":          false,
		"http://127.0.0.1:5000/":               true,
		"http://[::1]:5000/":                   true,
		"http://localhost:5000/":               true,
		"http://a.localhost/":                  true,
		"http://localhost.example/":            false,
		"http://10.0.0.5:5000/":                false,
		"https://10.0.0.5:5000/":               true,
		"http://192.168.1.1/":                  false,
		"http://[::ffff:127.0.0.1]/":           true,
		"https://169.254.169.254/":             false,
		"https://[::ffff:169.254.169.254]/":    false,
		"https://[64:ff9b::a9fe:a9fe]/":        false,
		"https://[2002:a9fe:a9fe::1]/":         false,
		"https://[fd00:ec2::254]/":             false,
		"https://[fe80::1%25eth0]/":            false,
		"https://[::ffff:100.100.100.200]/":    false,
		"https://[fd00:ec2::254%25eth0]/":      false,
		"https://100.100.100.200/":             false,
		"https://0.0.0.0/":                     false,
		"https://[::]/":                        false,
		"https://224.0.0.1/":                   false,
		"https://[64:ff9b:1::a9fe:a9fe]/":      false,
		"https://[64:ff9b:1:a9fe:a9:fe00::]/":  false,
		"https://[::169.254.169.254]/":         false,
		"https://[::ffff:0:169.254.169.254]/":  false,
		"https://[2001:0:a9fe:a9fe::1]/":       false,
		"https://[2001:0:102:304::5601:5601]/": false,
		"https://[64:ff9b::808:808]/":          true,
		"https://[2001:db8::1]/":               true,
		"https://[2001:4860:4860::8888]/":      true,
		"ftp://127.0.0.1/":                     false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		err = guard(u, u.Host)
		var refused *HostError
		if (err == nil) != allowed || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", raw, err)
		}
		if err := guard(u, "registry.example"); u.Scheme != "https" && u.Host != "registry.example" && err == nil {
			t.Errorf("%s, of another registry, is spoken to", raw)
		}
	}
}

// A name may lead to a forbidden address, or claim to be this machine. The
// dialer sees where it leads.
func TestDialer(t *testing.T) {
	control := func(d *net.Dialer, address string) error { return d.Control("tcp", address, nil) }
	plain := dialer(nil)
	for address, allowed := range map[string]bool{
		"93.184.216.34:443": true, "10.0.0.1:443": true, "127.0.0.1:443": true,
		"169.254.169.254:80": false, "[fd00:ec2::254]:80": false, "[fe80::1%eth0]:80": false, "100.100.100.200:80": false,
	} {
		if err := control(plain, address); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	client := &http.Client{Transport: newPatient(newTransport()), Timeout: 10 * time.Second}
	get := func(registry string) error {
		req, err := http.NewRequestWithContext(withTrace(t.Context(), &trace{registry: registry}), "GET", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := get(strings.TrimPrefix(srv.URL, "http://")); err != nil {
		t.Errorf("a registry on this machine: %v", err)
	}
	var refused *HostError
	if err := get("registry.example"); !errors.As(err, &refused) {
		t.Errorf("a service of this machine for a registry elsewhere: %v", err)
	}
	if _, err := client.Get("https://169.254.169.254/"); !errors.As(err, &refused) {
		t.Errorf("the metadata service: %v", err)
	}
}

// elsewhere stands for the network: it takes every request to one server and
// notes what was sent in clear.
type elsewhere struct {
	to      *httptest.Server
	mu      sync.Mutex
	inClear []string
}

func (e *elsewhere) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.inClear = append(e.inClear, req.Method+" "+req.URL.String()+" "+req.Header.Get("Authorization"))
	}
	req = req.Clone(req.Context())
	req.URL.Host = strings.TrimPrefix(e.to.URL, "https://")
	return e.to.Client().Transport.RoundTrip(req)
}

// The registry library speaks plain HTTP to private networks by itself.
func TestPrivateNetworkIsNotSpokenToInClear(t *testing.T) {
	r := newRegistry(t)
	r.push(t, "app:1", multiArch(t, "1"))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, _, ok := req.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		resp, err := http.Get("http://" + r.host + req.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	login := keys{Username: "u", Password: "p"}
	net := &elsewhere{to: srv}
	if _, err := NewResolver(Options{Keychain: login, Transport: net}).Resolve(t.Context(), "10.1.2.3:5000/app:1", both); err != nil {
		t.Errorf("over TLS: %v", err)
	}
	if len(net.inClear) > 0 {
		t.Errorf("in clear went %q", net.inClear)
	}

	// One that speaks no TLS is refused, and says so.
	deaf := &elsewhere{to: srv}
	_, err := NewResolver(Options{Keychain: login, Transport: noTLS{deaf}}).Resolve(t.Context(), "10.1.2.3:5000/app:1", both)
	checkError(t, err, new(*RegistryError), "does not speak TLS")
	if len(deaf.inClear) > 0 {
		t.Errorf("in clear went %q", deaf.inClear)
	}
	// Without our guard it would have gone so: the test sees what it looks for.
	ref, err := name.ParseReference("10.1.2.3:5000/app:1")
	if err != nil {
		t.Fatal(err)
	}
	remote.Get(ref, remote.WithTransport(noTLS{deaf}), remote.WithAuth(&authn.Basic{Username: "u", Password: "p"}))
	if !slices.ContainsFunc(deaf.inClear, func(s string) bool { return strings.HasPrefix(s, "GET http://10.1.2.3:5000/v2/") }) {
		t.Errorf("the library spoke to %q", deaf.inClear)
	}
}

// noTLS fails what is not in clear.
type noTLS struct{ http.RoundTripper }

func (n noTLS) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "https" {
		return nil, errors.New("http: server gave HTTP response to HTTPS client")
	}
	return n.RoundTripper.RoundTrip(req)
}

// A registry that answers with a redirect to plain HTTP, to the metadata service
// or to another service of this machine gets no further, be it here or elsewhere.
func TestRedirectsAreGuarded(t *testing.T) {
	var hits sync.Map
	victim := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Store(r.Method+" "+r.URL.String(), true)
	}))
	defer victim.Close()
	u, err := url.Parse(victim.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t)
	here := r.push(t, "app:1", multiArch(t, "1"))
	away := faraway(t, r.handler)
	for _, to := range []string{"http://other.example/v2/", "http://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/",
		victim.URL + "/admin", "http://localhost:" + u.Port() + "/admin", "http://[::ffff:127.0.0.1]:" + u.Port() + "/admin"} {
		for _, part := range []string{"/v2/", "/manifests/", "/blobs/"} {
			r.inFront(func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, part) || part == "/v2/" && req.URL.Path != part {
					return false
				}
				http.Redirect(w, req, to, http.StatusTemporaryRedirect)
				return true
			})
			for ref, opts := range map[string]Options{here: {}, "registry.example/app:1": {Transport: away}} {
				_, err := NewResolver(opts).Resolve(t.Context(), ref, both)
				var refused *HostError
				if err == nil || !errors.As(err, &refused) && !strings.Contains(err.Error(), "SSRF") {
					t.Errorf("%s of %s led to %s: %v", part, ref, to, err)
				}
			}
		}
	}
	hits.Range(func(k, _ any) bool {
		t.Errorf("a service of this machine was asked %s", k)
		return true
	})
	r.inFront(func(http.ResponseWriter, *http.Request) bool { return false })
	if _, err := NewResolver(Options{Transport: away}).Resolve(t.Context(), "registry.example/app:1", both); err != nil {
		t.Errorf("without a redirect: %v", err)
	}
}

// faraway is a network of registries elsewhere, which all speak TLS: names that
// end in .example lead to h, and the rest to where they lead.
func faraway(t *testing.T, h http.Handler) http.RoundTripper {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	tr := newTransport().(*http.Transport)
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasSuffix(addr, ".example:443") {
			addr = strings.TrimPrefix(srv.URL, "https://")
		}
		return dial(ctx, network, addr)
	}
	tr.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	tr.TLSClientConfig.ServerName = "example.com" // what the server's certificate is for
	return tr
}

// Credentials for a registry go to it and not to where it sends a handshake, also
// where that asks for them by having had too many requests.
func TestHandshakesElsewhere(t *testing.T) {
	for _, to := range []string{"https://other.example/v2/", "https://registry.example/v2/"} {
		var mu sync.Mutex
		var got []string
		net := faraway(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "registry.example" && strings.HasPrefix(to, "https://other") {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			if user, _, ok := r.BasicAuth(); ok {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, user+" to "+r.Host)
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		_, err := NewResolver(Options{Keychain: keys{Username: "u", Password: "secret"}, Transport: net}).Resolve(t.Context(), "registry.example/app:1", both)
		if err == nil || strings.HasPrefix(to, "https://other") != (len(got) == 0) {
			t.Errorf("handshake at %s: sent %q, %v", to, got, err)
		}
	}
}
