package launch

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestLocalAddresses(t *testing.T) {
	for _, tc := range []struct {
		route       string
		count       int
		first, last string
	}{
		{"192.0.2.240/32", 1, "192.0.2.240", "192.0.2.240"},
		{"192.0.2.16/30", 4, "192.0.2.16", "192.0.2.19"},
		{"2001:db8::7/128", 1, "2001:db8::7", "2001:db8::7"},
		{"10.0.0.0/8", localMost, "10.0.0.0", "10.0.0.255"},
		{"127.0.0.0/8", 0, "", ""},
		{"::1/128", 0, "", ""},
	} {
		_, dst, err := net.ParseCIDR(tc.route)
		if err != nil {
			t.Fatal(err)
		}
		got := localAddresses(dst)
		if len(got) != tc.count || tc.count > 0 && (got[0].String() != tc.first || got[len(got)-1].String() != tc.last) {
			t.Errorf("%s: got %d addresses %v", tc.route, len(got), got)
		}
	}
	all, err := HostAddresses()
	if err != nil || !slices.IsSortedFunc(all, netip.Addr.Compare) {
		t.Errorf("got %v, %v", all, err)
	}
}
