package lock

import (
	"net/netip"
	"testing"
)

// TestReachesPrivate: a range that leads to the person's network or machine is
// an alarm under each of its names, unless it is denied all the same.
func TestReachesPrivate(t *testing.T) {
	for _, tt := range []struct {
		allow string
		deny  []string
		want  bool
	}{
		{"192.168.0.0/17", nil, true},
		{"192.168.0.0/17", []string{"192.168.0.0/16"}, true}, // the narrower wins
		{"192.168.0.0/17", []string{"192.168.0.0/17"}, false},
		{"0.0.0.0/0", nil, true},
		{"0.0.0.0/0", []string{"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"}, false},
		{"::/0", []string{"fc00::/7"}, false},
		{"1.0.0.0/8", nil, false},
		{"2606::/16", nil, false},
		{"127.0.0.0/8", nil, false}, // in both lists: denied
		{"127.0.0.0/9", nil, true},
		// What stands for an address of another family, or for the machine.
		{"64:ff9b::a00:0/104", nil, true},
		{"64:ff9b::a9fe:a9fe/128", nil, true},
		{"64:ff9b:1::/49", nil, true},
		{"2002:a00::/24", nil, true},
		{"2001::/33", nil, true},
		{"::/97", nil, true},
		{"::ffff:a00:0/104", nil, true},
		{"fec0::/11", nil, true},
		{"0.0.0.0/9", nil, true},
		{"192.0.0.0/25", nil, true},
		{"224.0.0.0/5", nil, true},
		{"ff00::/9", nil, true},
		{"[64:ff9b::a00:0/104]:443/tcp", nil, true},
	} {
		if got := reachesPrivate(tt.allow, tt.deny); got != tt.want {
			t.Errorf("%s with %v denied: %v", tt.allow, tt.deny, got)
		}
	}
	// A narrower range within each that is always denied lifts the denial.
	for _, text := range alwaysDeny() {
		p := netip.MustParsePrefix(text)
		if p.IsSingleIP() || p.Addr().Is4In6() {
			continue // nothing is narrower, or an address is another's
		}
		if inside := netip.PrefixFrom(p.Addr(), p.Addr().BitLen()).String(); !reachesPrivate(inside, nil) {
			t.Errorf("%s is no alarm", inside)
		}
	}
}
