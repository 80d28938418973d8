package image

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// HostError is an address lazaret refuses to talk to, or to talk to in clear.
type HostError struct {
	Host   string
	Reason string
	Do     string
}

func (e *HostError) Error() string {
	return fmt.Sprintf("refusing to talk to %s: %s", e.Host, e.Reason)
}
func (e *HostError) Hint() string { return e.Do }

// forbidden are the addresses at which clouds serve a machine's own secrets,
// and no registry. A repository's lazaret.toml names the registries, so
// without this, locking a stranger's repository would ask them. All of
// link-local is out; these are the ones outside it.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // Amazon
	netip.MustParsePrefix("fd20:ce::/32"),       // Google
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
}

// disguises lead to IPv4 addresses, by translators and tunnels of which nobody
// knows here where they hold them. No registry needs one.
var disguises = []netip.Prefix{
	netip.MustParsePrefix("::/96"),           // IPv4-compatible, and loopback
	netip.MustParsePrefix("::ffff:0:0:0/96"), // IPv4-translated
	netip.MustParsePrefix("64:ff9b:1::/48"),  // NAT64, local use
	netip.MustParsePrefix("2001::/32"),       // Teredo
}

func checkAddr(a netip.Addr) error {
	a = a.WithZone("").Unmap()
	if v4, ok := embedded(a); ok {
		a = v4
	}
	for _, p := range disguises {
		if p.Contains(a) && !a.IsLoopback() && !a.IsUnspecified() {
			return &HostError{Host: a.String(), Reason: "it stands for an IPv4 address, which is not said openly", Do: "name the registry's own address"}
		}
	}
	bad := a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
	for _, p := range forbidden {
		bad = bad || p.Contains(a)
	}
	if bad {
		return &HostError{Host: a.String(), Reason: "it is a link-local, metadata or multicast address, where no registry is", Do: "name the registry's own address"}
	}
	return nil
}

// embedded returns the IPv4 address a NAT64 or 6to4 address leads to.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

// guard refuses forbidden addresses written out, and plain HTTP to anywhere but
// registry, the one that the image is named after, where that is on this machine.
// The registry library speaks it to private networks by itself and follows an
// answer that redirects to it: credentials would go in clear, and a registry
// would choose what is asked of the services of this machine.
func guard(u *url.URL, registry string) error {
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	if err == nil {
		if err := checkAddr(addr); err != nil {
			return err
		}
	}
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && u.Host == registry && (err == nil && addr.Unmap().IsLoopback() || isLocalhost(host)):
		return nil
	}
	return &HostError{Host: u.Host, Reason: "it does not speak TLS, and only the image's own registry may be spoken to in clear, where it is on this machine",
		Do: "give the registry a certificate this machine trusts"}
}

func isLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// newTransport returns a transport that looks at the addresses names resolved
// to, just before it connects: a name can lead to a forbidden address, and one
// that says it is this machine may lie.
func newTransport() http.RoundTripper {
	plain := dialer(nil)
	local := dialer(func(a netip.Addr) error {
		if !a.Unmap().IsLoopback() {
			return &HostError{Host: a.String(), Reason: "its name says it is this machine, and it is not"}
		}
		return nil
	})
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if host, _, err := net.SplitHostPort(addr); err == nil && isLocalhost(host) {
				return local.DialContext(ctx, network, addr)
			}
			return plain.DialContext(ctx, network, addr)
		},
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
	}
}

func dialer(also func(netip.Addr) error) *net.Dialer {
	return &net.Dialer{
		Timeout:   30 * time.Second,
		KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if err := checkAddr(ap.Addr()); err != nil {
				return err
			}
			if also != nil {
				return also(ap.Addr())
			}
			return nil
		},
	}
}
