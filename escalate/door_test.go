package escalate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lazaret/escalate/wire"
)

// other makes the credentials of another daemon.
func (h *host) other(t *testing.T, name, profile, run string, now func() time.Time) wire.Channel {
	t.Helper()
	c := h.Config
	c.Profile, c.Run, c.Now = profile, run, now
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Channel{Socket: h.socket, Certs: h.certs(t, d, name)}
}

// TestStrangers: whoever is not this sandbox is told nothing, and nothing that
// it sends is read. Each attack is one that works where its check is missing.
func TestStrangers(t *testing.T) {
	h := newHost(t, nil)
	own := h.channel.Certs
	same := h.other(t, "wrongca", h.Profile, h.Run, time.Now)
	read := func(dir, name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	signed := func(name string, change func(*x509.Certificate)) wire.Channel {
		tmpl := h.authority.template("sandbox", certLife)
		tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		tmpl.URIs = append(tmpl.URIs, h.authority.uri)
		change(tmpl)
		return wire.Channel{Socket: h.socket, Certs: h.issue(t, name, tmpl)}
	}
	identity := func(profile, run string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			u := *h.authority.uri
			u.Path = "/" + profile + "/" + run
			c.URIs[0] = &u
		}
	}
	for _, tt := range []struct {
		name string
		ch   wire.Channel
	}{
		{"another authority, same names", wire.Channel{Socket: h.socket, Certs: h.write(t, "mixed", map[string]string{
			wire.CAFile: read(own, wire.CAFile), wire.CertFile: read(same.Certs, wire.CertFile), wire.KeyFile: read(same.Certs, wire.KeyFile)})}},
		{"expired", signed("expired", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-9*time.Hour), time.Now().Add(-time.Second)
		})},
		{"not yet", signed("notyet", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })},
		{"another profile's", signed("profile", identity("other", h.Run))},
		{"another sandbox's", signed("run", identity(h.Profile, "ba9876543210"))},
		{"two identities", signed("two", func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) })},
		{"an address too", signed("ip", func(c *x509.Certificate) { c.IPAddresses = []net.IP{{127, 0, 0, 1}} })},
		{"the host's kind", signed("server", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r, err := tt.ch.Ask(t.Context(), wire.Request{RequestID: "r", Command: "true"}); err == nil {
				t.Errorf("answered: %+v", r)
			}
		})
	}
	t.Run("no certificate", func(t *testing.T) {
		conf := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: wire.ServerName, RootCAs: h.authority.pool}
		h.refused(t, conf)
	})
	t.Run("an older TLS", func(t *testing.T) {
		cert, err := tls.LoadX509KeyPair(filepath.Join(own, wire.CertFile), filepath.Join(own, wire.KeyFile))
		if err != nil {
			t.Fatal(err)
		}
		h.refused(t, &tls.Config{MaxVersion: tls.VersionTLS12, ServerName: wire.ServerName, RootCAs: h.authority.pool, Certificates: []tls.Certificate{cert}})
	})
	t.Run("plain bytes", func(t *testing.T) {
		for _, b := range []string{
			`{"request_id":"r","profile":"agent","command":"true","justification":""}` + "\n",
			"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\x00", 100000), "\x16\x03\x01\xff\xff", strings.Repeat("\x16", 1<<20),
		} {
			c := h.dial(t)
			go c.Write([]byte(b))
			got, _ := io.ReadAll(io.LimitReader(c, 4096))
			if bytes.Contains(got, []byte("approved")) || len(got) > 16 {
				t.Errorf("%.20q is answered with %q", b, got)
			}
			c.Close()
		}
	})
	t.Run("another user", func(t *testing.T) {
		h := newHost(t, func(_ *host, c *Config) { c.Peer = func(uid uint32) bool { return uid != uint32(os.Getuid()) } })
		if _, err := h.send(t.Context(), wire.Request{Command: "true"}); err == nil {
			t.Error("answered")
		}
	})
	t.Run("another profile in the request", func(t *testing.T) {
		r := h.raw(t, `{"request_id":"r","profile":"other","command":"true","justification":""}`)
		if r.Approved || r.Status != wire.Denied || !strings.Contains(r.Error, "another profile") {
			t.Errorf("%+v", r)
		}
	})
	for _, e := range h.entries() {
		if e.Status == wire.Approved {
			t.Errorf("ran: %+v", e)
		}
	}
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("and its own sandbox: %+v", r)
	}
}

// TestServerChecked: a sandbox speaks to its own host only. What plays the host
// here would say yes to anybody.
func TestServerChecked(t *testing.T) {
	h := newHost(t, nil)
	client, err := tls.LoadX509KeyPair(filepath.Join(h.channel.Certs, wire.CertFile), filepath.Join(h.channel.Certs, wire.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	own, err := h.authority.serverCert(nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := newAuthority(h.Profile, h.Run, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := elsewhere.serverCert(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		ok   bool
	}{
		{"own", *own, true},
		{"another authority", *other, false},
		{"the sandbox's own key", client, false},
	} {
		path := filepath.Join(h.dir, "fake "+tt.name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				raw, err := l.Accept()
				if err != nil {
					return
				}
				c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{tt.cert}})
				c.Read(make([]byte, 4096))
				io.WriteString(c, `{"request_id":"r","approved":true,"status":"approved","exit_code":0}`+"\n")
				c.Close()
			}
		}()
		ch := wire.Channel{Socket: path, Certs: h.channel.Certs}
		if r, err := ch.Ask(t.Context(), wire.Request{RequestID: "r", Command: "true"}); (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, r, err)
		}
	}
}

// issue writes credentials that the daemon's own authority signs.
func (h *host) issue(t *testing.T, name string, tmpl *x509.Certificate) string {
	t.Helper()
	der, key, err := h.authority.issue(tmpl)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return h.write(t, name, map[string]string{
		wire.CAFile: pemText("CERTIFICATE", h.authority.cert.Raw), wire.CertFile: pemText("CERTIFICATE", der), wire.KeyFile: pemText("PRIVATE KEY", pkcs),
	})
}

func (h *host) dial(t *testing.T) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: h.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func (h *host) refused(t *testing.T, conf *tls.Config) {
	t.Helper()
	c := tls.Client(h.dial(t), conf)
	defer c.Close()
	err := c.Handshake()
	if err == nil {
		fmt.Fprintln(c, `{"request_id":"r","profile":"agent","command":"true","justification":""}`)
		var b [1]byte
		_, err = c.Read(b[:])
	}
	if err == nil {
		t.Error("answered")
	}
}

// conn greets as the sandbox.
func (h *host) conn(t *testing.T) *tls.Conn {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(h.channel.Certs, wire.CertFile), filepath.Join(h.channel.Certs, wire.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(h.dial(t), &tls.Config{ServerName: wire.ServerName, RootCAs: h.authority.pool, Certificates: []tls.Certificate{cert}})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// raw sends a line as the sandbox and reads the answer.
func (h *host) raw(t *testing.T, line string) (r wire.Response) {
	t.Helper()
	c := h.conn(t)
	defer c.Close()
	go io.WriteString(c, line+"\n")
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		t.Fatalf("%.40q: %v", line, err)
	}
	return r
}

// TestSlowReaders: what commands printed for whoever does not read it counts as
// a command that runs, or a sandbox could have the host keep any number of them.
func TestSlowReaders(t *testing.T) {
	h := newHost(t, func(h *host, c *Config) {
		h.program(t, h.bin, "much", "head -c 8388608 /dev/zero")
		c.Policy.AutoApproveExact = append(c.Policy.AutoApproveExact, []string{"much"})
		c.MaxOutput, c.Door.Commands, c.Door.Write = 8<<20, 2, time.Minute
	})
	var slow []*tls.Conn
	for range 2 {
		c := h.conn(t)
		defer c.Close()
		fmt.Fprintln(c, `{"request_id":"slow","profile":"agent","command":"much","justification":""}`)
		slow = append(slow, c)
	}
	ended := func() (n int) {
		for _, e := range h.entries() {
			if e.Kind == "ended" {
				n++
			}
		}
		return n
	}
	await(t, func() bool { return ended() == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if r, err := h.send(ctx, wire.Request{Command: "true"}); err == nil {
		t.Errorf("with two that do not read, and room for two, a third is answered: %+v", r)
	}
	slow[0].Close()
	if r := h.ask(t, "true"); r.Status != wire.Approved {
		t.Errorf("once one has gone: %+v", r)
	}
}

// TestHostileRequests: what is no request is denied, with nobody asked.
func TestHostileRequests(t *testing.T) {
	h := newHost(t, nil)
	for _, line := range []string{
		"", "null", "[]", "{}", "{", `{"request_id":"r"}`, `{"request_id":"r","profile":"agent","command":"true","justification":"","extra":1}`,
		`{"request_id":"r","profile":"agent","command":["true"],"justification":""}`,
		`{"request_id":"r","profile":"agent","command":" \t ","justification":""}`,
		`{"request_id":"r","profile":"agent","command":"true 'x","justification":""}`,
		`{"request_id":"r","profile":"agent","command":"true \u0000","justification":""}`,
		`{"request_id":"r","profile":"agent","command":"true","justification":""} {}`,
		`{"request_id":"r","profile":"agent","command":"true","justification":"` + "\xff" + `"}`,
		`{"request_id":"r","profile":"agent","command":"true","stdin":"%%%","justification":""}`,
		`{"request_id":"r","profile":"agent","command":"true","justification":"` + strings.Repeat("x", wire.MaxReason+1) + `"}`,
		`{"request_id":"` + strings.Repeat("r", 101) + `","profile":"agent","command":"true","justification":""}`,
		`{"request_id":"r","profile":"agent","command":"` + strings.Repeat("x", wire.MaxCommand+1) + `","justification":""}`,
		strings.Repeat("[", 100000), strings.Repeat(`{"a":`, 100000), strings.Repeat("x", wire.MaxRequest+100),
	} {
		if r := h.raw(t, line); r.Approved || r.Status != wire.Denied || r.Error == "" {
			t.Errorf("%.60q: %+v", line, r)
		}
	}
	if p, _ := h.Queue().Pending(t.Context()); len(p) > 0 {
		t.Errorf("asked: %+v", p)
	}
}

// TestTooMuch: a request of 100 MB is cut off, and costs no memory.
func TestTooMuch(t *testing.T) {
	h := newHost(t, nil)
	c := h.conn(t)
	defer c.Close()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sent := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(c, io.LimitReader(forever{}, 100<<20))
		sent <- n
	}()
	line, _ := bufio.NewReader(c).ReadString('\n')
	if !strings.Contains(line, "larger than") {
		t.Errorf("answered with %q", line)
	}
	if n := <-sent; n > 10<<20 {
		t.Errorf("%d bytes were read", n)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestHalfOpen: connections that say nothing, or not all of it, are let go, and
// do not keep the sandbox's own requests out for longer than that.
func TestHalfOpen(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) {
		c.Door.Greet, c.Door.Read, c.Door.Open, c.Door.Rate, c.Door.Burst = 300*time.Millisecond, 300*time.Millisecond, 50, 1000, 1000
	})
	before := runtime.NumGoroutine()
	var conns []net.Conn
	for range 40 {
		conns = append(conns, h.dial(t))
	}
	for range 8 {
		c := h.conn(t)
		io.WriteString(c, `{"request_id":"r",`)
		conns = append(conns, c)
	}
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("meanwhile: %+v", r)
	}
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("answered")
		} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Error("still open")
		}
		c.Close()
	}
	await(t, func() bool { return runtime.NumGoroutine() <= before+4 })
}

// TestSlowReader: whoever does not read the answer is not waited for.
func TestSlowReader(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) { c.Door.Write, c.MaxOutput = 300*time.Millisecond, 8<<20 })
	h.program(t, h.bin, "show", "head -c 8000000 /dev/zero | tr '\\0' x")
	c := h.conn(t)
	defer c.Close()
	io.WriteString(c, `{"request_id":"r","profile":"agent","command":"show","justification":""}`+"\n")
	await(t, func() bool { return len(h.open) == 0 })
}

// TestManyRequests: ten thousand requests leave nothing behind, and those that
// are let in are answered.
func TestManyRequests(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) {
		c.Door.Rate, c.Door.Burst, c.Door.Greet = 100000, 100000, time.Minute
		c.Limits = Limits{Waiting: 2, Asks: 20, Per: time.Hour}
		c.Timeout = 200 * time.Millisecond
	})
	all := 400
	if os.Getenv("LAZARET_LONG") == "1" && !raced { // cryptography is slow there
		all = 10000
	}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	var denied, timeout, busy atomic.Int64
	next := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			for range next {
				r, err := h.send(context.Background(), wire.Request{Command: "echo"})
				switch {
				case err != nil:
					busy.Add(1)
				case r.Status == wire.Denied:
					denied.Add(1)
				case r.Status == wire.Timeout:
					timeout.Add(1)
				default:
					t.Errorf("%+v", r)
				}
			}
		})
	}
	for range all {
		next <- struct{}{}
	}
	close(next)
	wg.Wait()
	if timeout.Load() > 20 || denied.Load()+timeout.Load()+busy.Load() != int64(all) || busy.Load() > int64(all)/10 {
		t.Errorf("%d denied, %d timed out, %d not let in", denied.Load(), timeout.Load(), busy.Load())
	}
	await(t, func() bool { return runtime.NumGoroutine() <= before+4 })
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("and then: %+v", r)
	}
}

// TestOpenIsBounded: there are so many connections at a time and no more, however
// long they may stay; whoever comes then finds nobody, and is let in later.
func TestOpenIsBounded(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) { c.Door.Open, c.Door.Greet = 3, 5*time.Minute })
	var conns []net.Conn
	for range 3 {
		conns = append(conns, h.dial(t))
	}
	await(t, func() bool { return len(h.open) == 3 })
	for range 5 {
		c := h.dial(t)
		if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("one more is kept: %v", err)
		}
		c.Close()
	}
	conns[0].Close()
	await(t, func() bool { return len(h.open) == 2 })
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("once there is room: %+v", r)
	}
}

// TestPaced: connections come in at a bounded rate, whatever comes of them.
func TestPaced(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) { c.Door.Rate, c.Door.Burst, c.Door.Greet = 10, 2, 50*time.Millisecond })
	start := time.Now()
	var wg sync.WaitGroup
	for range 10 {
		c := h.dial(t)
		wg.Go(func() {
			io.Copy(io.Discard, c) // until it is let go
			c.Close()
		})
	}
	wg.Wait()
	if took := time.Since(start); took < 600*time.Millisecond {
		t.Errorf("10 connections at 10 a second, two at once, took %s", took)
	}
}
