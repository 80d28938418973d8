package escalate

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"lazaret/escalate/wire"
)

// TestRenewal: a sandbox that lives long goes on asking with new certificates,
// and not with old ones.
func TestRenewal(t *testing.T) {
	var ahead atomic.Int64
	h := newHost(t, func(_ *host, c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	first := h.channel.Certs
	if r := h.ask(t, "true"); !r.Approved {
		t.Fatalf("%+v", r)
	}
	server := func() *tls.Certificate {
		c, err := h.authority.serverCert(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was := server()
	if server() != was {
		t.Error("a new certificate for every greeting")
	}
	ahead.Store(int64(13 * time.Hour))
	if server() == was {
		t.Error("the host's certificate is not renewed")
	}
	ahead.Store(int64(25 * time.Hour))
	if _, err := h.send(t.Context(), wire.Request{Command: "true"}); err == nil {
		t.Error("a certificate of yesterday will do")
	}
	// The sandbox's clock is the real one, a day behind: it does not go by it.
	h.channel.Certs = h.certs(t, h.Daemon, "second")
	a, err := os.ReadFile(filepath.Join(first, wire.KeyFile))
	b, err2 := os.ReadFile(filepath.Join(h.channel.Certs, wire.KeyFile))
	if err != nil || err2 != nil || string(a) == string(b) {
		t.Errorf("the key is the same: %v %v", err, err2)
	}
	h.authority.mu.Lock()
	h.authority.server = nil
	h.authority.mu.Unlock()
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("%+v", r)
	}
}
