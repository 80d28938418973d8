package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Channel is where a sandbox finds its host.
type Channel struct {
	Socket string
	Certs  string // directory
}

// Here is the channel of the sandbox that this program runs in.
var Here = Channel{Socket, CertsDir}

// NoChannelError says that the request reached nobody.
type NoChannelError struct{ Err error }

func (e *NoChannelError) Error() string { return "no channel to the host: " + e.Err.Error() }

func (e *NoChannelError) Unwrap() error { return e.Err }

// Curves are what keys are agreed with: the quickest, as what is said lives no
// longer than the machine's memory.
var Curves = []tls.CurveID{tls.X25519}

// handshakeTime is how long the host may take to greet.
const handshakeTime = 20 * time.Second

// Ask sends a request and waits for the response, as long as ctx lasts. It fills
// in the profile. The error is a *NoChannelError where the request reached
// nobody, that of ctx, or about an answer that was not understood.
func (c Channel) Ask(ctx context.Context, r Request) (Response, error) {
	cert, roots, err := c.credentials()
	if err != nil {
		return Response{}, &NoChannelError{err}
	}
	r.Profile = profileOf(cert.Leaf)
	if err := r.Check(); err != nil {
		return Response{}, err
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return Response{}, &NoChannelError{err}
	}
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, CurvePreferences: Curves, ServerName: ServerName,
		RootCAs: roots, Certificates: []tls.Certificate{cert},
		// Not by this machine's clock, which may have been set since: the host has
		// made both certificates, and knows when they end.
		Time: func() time.Time { return cert.Leaf.NotBefore },
	})
	hctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := conn.HandshakeContext(hctx); err != nil {
		return Response{}, c.failed(ctx, "greeting the host", err)
	}
	// A host that is full answers without having read all of this.
	werr := json.NewEncoder(conn).Encode(r)
	resp, err := readResponse(conn)
	if err != nil {
		if werr != nil {
			err = werr
		}
		return Response{}, c.failed(ctx, "waiting for the host's answer", err)
	}
	if resp.RequestID != r.RequestID && resp.RequestID != "" {
		return Response{}, fmt.Errorf("the host answered request %q", resp.RequestID)
	}
	return resp, nil
}

// failed sorts out why a conversation ended.
func (c Channel) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var op *net.OpError
	if errors.Is(err, io.EOF) || errors.As(err, &op) && op.Op != "remote error" {
		return &NoChannelError{fmt.Errorf("%s: %w", doing, err)}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func readResponse(r io.Reader) (resp Response, err error) {
	line, err := bufio.NewReader(io.LimitReader(r, MaxResponse)).ReadBytes('\n')
	if err != nil {
		return resp, err
	}
	if err := json.Unmarshal(line, &resp); err != nil {
		return resp, fmt.Errorf("not understood: %w", err)
	}
	switch resp.Status {
	case Approved, Edited:
		if !resp.Approved || resp.ExitCode == nil {
			return resp, errors.New("not understood: approved without an exit status")
		}
	case Denied, Aborted, Timeout, NoChannel:
		if resp.Approved {
			return resp, errors.New("not understood: both approved and " + resp.Status)
		}
	default:
		return resp, fmt.Errorf("not understood: status %q", resp.Status)
	}
	return resp, nil
}

// credentials reads what the host has put there for us.
func (c Channel) credentials() (cert tls.Certificate, _ *x509.CertPool, err error) {
	ca, err := os.ReadFile(filepath.Join(c.Certs, CAFile))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	for range 3 {
		cert, err = tls.LoadX509KeyPair(filepath.Join(c.Certs, CertFile), filepath.Join(c.Certs, KeyFile))
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond) // while the host renews both
	}
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return tls.Certificate{}, nil, errors.New(CAFile + " holds no certificate")
	}
	return cert, roots, nil
}

// uriScheme begins the URI that a sandbox's certificate is made out to.
const uriScheme = "lazaret://sandbox/"

// Identity is the URI that a sandbox's certificate is made out to.
func Identity(profile, run string) string { return uriScheme + profile + "/" + run }

// profileOf reads the profile from our own certificate.
func profileOf(leaf *x509.Certificate) string {
	for _, u := range leaf.URIs {
		if rest, ok := strings.CutPrefix(u.String(), uriScheme); ok {
			profile, _, _ := strings.Cut(rest, "/")
			return profile
		}
	}
	return ""
}
