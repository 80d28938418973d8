package sidecar

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// TestNamesOfPrivateAddresses: a name does not lead into somebody's own network,
// also where nothing is denied, but for what of it is allowed.
func TestNamesOfPrivateAddresses(t *testing.T) {
	p := Policy{Hosts: []Host{{"*.evil.test", Service{22, ""}}}, Allow: endpoints("10.20.0.0/16 5432", "192.168.7.0/24")}
	r := &router{policy: p, table: Compile(p, nil)}
	f := &forwarder{router: r, hosts: newHostTable(p.Hosts), refused: map[string]uint64{}, rebound: map[rebound]uint64{}}
	var opened []string
	f.grants = &grants{now: time.Now, until: map[grant]time.Time{}, open: func(more, _ []grant, _ time.Duration) error {
		for _, g := range more {
			opened = append(opened, g.addr.String())
		}
		return nil
	}}
	q := question("x.evil.test.")
	for addr, want := range map[string]struct{ told, opened bool }{
		"10.0.0.5": {}, "172.17.0.1": {}, "192.168.1.1": {}, "100.64.1.1": {}, "100.127.255.255": {}, "fd00::1": {}, "fc00::1": {},
		"10.20.0.7": {told: true}, "192.168.7.1": {told: true},
		"192.0.2.1": {true, true}, "100.128.0.1": {true, true}, "172.32.0.1": {true, true}, "2a00:1450::10": {true, true},
	} {
		ip := netip.MustParseAddr(addr)
		record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}
		if ip.Is4() {
			record.Body = &dnsmessage.AResource{A: ip.As4()}
		} else {
			record.Header.Type, record.Body = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: ip.As16()}
		}
		opened, f.rebound = nil, map[rebound]uint64{}
		_, addrs := f.screen("x.evil.test", []dnsmessage.Resource{record}, []netip.Addr{ip})
		if err := f.grants.grant(f.grantable(addrs), f.hosts.services("x.evil.test"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if told := slices.Contains(addrs, ip); told != want.told || (len(opened) > 0) != want.opened || (len(f.rebound) > 0) == told {
			t.Errorf("%s: told %v, opened %v, reported %v", addr, told, opened, f.rebound)
		}
	}
}
