package lock

import (
	"slices"
	"testing"
)

func TestExceptions(t *testing.T) {
	n := Network{
		Allow:      []string{"10.20.0.0/16", "10.20.3.4/32:443", "169.254.7.0/24", "192.0.2.0/24", "192.168.0.0/16"},
		Deny:       []string{"10.0.0.0/8", "10.20.3.0/24", "192.168.0.0/16"},
		AlwaysDeny: alwaysDeny(),
	}
	want := []string{
		"10.20.0.0/16 is allowed inside 10.0.0.0/8, which is denied",
		"10.20.3.4/32:443 is allowed inside 10.20.3.0/24, which is denied",
		"169.254.7.0/24 is allowed inside 169.254.0.0/16, which is always denied",
	}
	if got := n.Exceptions(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
