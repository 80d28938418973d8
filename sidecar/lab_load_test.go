package sidecar

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLoad: a policy of a hundred thousand ranges loads in about a second, and
// connecting takes no longer for it.
func TestLoad(t *testing.T) {
	if !inLab(t) {
		return
	}
	l := newLab(t, false)
	for _, n := range []int{0, 1000, 10000, 100000} {
		l.policy.Deny, l.policy.Allow = nil, endpoints("192.0.2.0/24")
		for i := range n {
			// Every other /28 of 16.0.0.0/4 and above.
			a := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x10000000+uint32(i)*32)))
			l.policy.Deny = append(l.policy.Deny, netip.PrefixFrom(a, 28))
		}
		start := time.Now()
		l.start()
		load := time.Since(start)
		runtime.GC()
		best := patience // a busy machine makes some wait
		for range 20 {
			start := time.Now()
			if got := l.try("tcp", "192.0.2.1:80"); got != works {
				t.Fatalf("with %d ranges: %s", n, got)
			}
			best = min(best, time.Since(start))
		}
		if n > 0 {
			if got := l.try("tcp", "16.0.0.17:80"); got != refused { // beside a range
				t.Errorf("with %d ranges: %s", n, got)
			}
			if got := l.try("tcp", fmt.Sprintf("%s:80", l.policy.Deny[n-1].Addr())); got != refused {
				t.Errorf("with %d ranges: %s", n, got)
			}
		}
		t.Logf("%6d ranges: ready in %v, connected in %v, %s resident", n, load.Round(time.Millisecond), best.Round(10*time.Microsecond), resident(t))
		if load > time.Minute || best > silenceTime {
			t.Errorf("with %d ranges: ready in %v, connected in %v", n, load, best)
		}
		l.stop()
	}
}

func resident(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/status")
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}
