package sidecar

import (
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

// TestGrantsAndTheClock: what a name has opened stays open for its time, whatever
// the clock on the wall is set to, and is opened anew when that is over. The
// kernel, which closes it, goes by no wall either.
func TestGrantsAndTheClock(t *testing.T) {
	var ahead time.Duration // of the wall
	var passed time.Duration
	opened := 0
	g := &grants{
		open: func(add, renew []grant, _ time.Duration) error { opened += len(add) + len(renew); return nil },
		now: func() time.Time {
			now := time.Now().Add(passed)
			// The first word of a time with both readings has the seconds from bit 30 on.
			*(*uint64)(unsafe.Pointer(&now)) += uint64(ahead/time.Second) << 30
			return now
		},
		until: map[grant]time.Time{},
	}
	for _, tt := range []struct {
		ahead, passed time.Duration
		opened        int
	}{
		{0, 0, 1},
		{48 * time.Hour, 0, 1}, // within its time: nothing is asked of the kernel
		{-48 * time.Hour, 0, 1},
		{48 * time.Hour, 2 * time.Minute, 2}, // over
		{-48 * time.Hour, 4 * time.Minute, 3},
	} {
		ahead, passed = tt.ahead, tt.passed
		life := 90 * time.Second
		if opened > 0 && tt.passed == 0 {
			life = time.Minute // less than what is left
		}
		if err := g.grant([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, []Service{{Proto: "tcp", Port: 443}}, life); err != nil {
			t.Fatal(err)
		}
		if opened != tt.opened {
			t.Errorf("the wall moved by %v, %v passed: opened %d times, want %d", tt.ahead, tt.passed, opened, tt.opened)
		}
	}
}
