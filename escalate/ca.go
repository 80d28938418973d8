package escalate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"sync"
	"time"

	"lazaret/escalate/wire"
)

// Lifetimes. Certificates are made anew while the sandbox runs; the authority
// dies with this process. Nobody judges them by the clock on the wall, which may
// be set while they are in use: the host goes by the time that has passed since
// it began, the sandbox by the time that its own certificate was made.
const (
	certLife      = 24 * time.Hour
	authorityLife = 5 * 365 * 24 * time.Hour
)

// steady is the time by a clock that nobody sets: what the first one showed at
// first and what has passed since.
func steady(now func() time.Time) func() time.Time {
	first := now()
	return func() time.Time { return first.Add(now().Sub(first)) }
}

// authority is the certificate authority of one launch. Its key is in this
// process's memory and nowhere else.
type authority struct {
	now  func() time.Time // steady
	born time.Time
	uri  *url.URL // the sandbox's identity
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool

	mu     sync.Mutex
	server *tls.Certificate
}

func newAuthority(profile, run string, now func() time.Time) (*authority, error) {
	uri, err := url.Parse(wire.Identity(profile, run))
	if err != nil {
		return nil, err
	}
	a := &authority{now: steady(now), uri: uri}
	a.born = a.now()
	if a.key, err = newKey(); err != nil {
		return nil, err
	}
	t := a.template("lazaret "+run, authorityLife)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pool = x509.NewCertPool()
	a.pool.AddCert(a.cert)
	return a, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func (a *authority) template(name string, life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: a.born, NotAfter: a.now().Add(life),
	}
}

// issue makes a key and a certificate for it.
func (a *authority) issue(t *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = newKey(); err != nil {
		return nil, nil, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	der, err = x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	return der, key, err
}

// client makes a certificate for the sandbox and gives the files it needs, by
// name in wire.CertsDir.
func (a *authority) client() (map[string]string, error) {
	t := a.template("sandbox", certLife)
	t.URIs = []*url.URL{a.uri}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, key, err := a.issue(t)
	if err != nil {
		return nil, err
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		wire.CAFile:   pemText("CERTIFICATE", a.cert.Raw),
		wire.CertFile: pemText("CERTIFICATE", der),
		wire.KeyFile:  pemText("PRIVATE KEY", pkcs),
	}, nil
}

func pemText(kind string, b []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
}

// serverCert gives the host's certificate, made anew when half of its life is over.
func (a *authority) serverCert(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil && a.server.Leaf.NotAfter.Sub(a.now()) > certLife/2 {
		return a.server, nil
	}
	t := a.template("host", certLife)
	t.DNSNames = []string{wire.ServerName}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, key, err := a.issue(t)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a.server = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	return a.server, nil
}

// config is what the host greets with: TLS 1.3, and nobody but this sandbox.
func (a *authority) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, CurvePreferences: wire.Curves,
		GetCertificate: a.serverCert,
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      a.pool,
		Time:           a.now,
		// A resumed session would outlive its certificate.
		SessionTicketsDisabled: true,
		VerifyConnection:       a.check,
	}
}

// check compares the identity in a certificate that our authority has signed.
func (a *authority) check(s tls.ConnectionState) error {
	if len(s.VerifiedChains) == 0 || len(s.PeerCertificates) == 0 {
		return errors.New("no certificate")
	}
	leaf := s.PeerCertificates[0]
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != a.uri.String() || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
		return fmt.Errorf("the certificate is not that of %s", a.uri)
	}
	return nil
}
