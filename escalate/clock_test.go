package escalate

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"lazaret/escalate/wire"
)

// wall is a machine's clock that somebody sets while time goes on, as time.Now
// gives it: the reading of the wall moves, that of what has passed does not.
type wall struct{ ahead atomic.Int64 }

func (w *wall) set(d time.Duration) { w.ahead.Store(int64(d)) }

func (w *wall) now() time.Time {
	t := time.Now()
	// The first word of a time with both readings has the seconds from bit 30 on.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(w.ahead.Load()/int64(time.Second)) << 30
	return t
}

// TestWall: the trick above is one, and not a clock that runs ahead.
func TestWall(t *testing.T) {
	var w wall
	before := w.now()
	w.set(48 * time.Hour)
	after := w.now()
	if d := after.Sub(before); d < 0 || d > time.Minute {
		t.Errorf("what has passed is %v", d)
	}
	if d := after.Round(0).Sub(before.Round(0)); d < 48*time.Hour || d > 49*time.Hour {
		t.Errorf("the wall has moved by %v", d)
	}
}

// TestClockThatIsSet: whatever the wall says, a sandbox goes on asking, with the
// certificates it has and with new ones, and a person has as long as before.
func TestClockThatIsSet(t *testing.T) {
	var w wall
	h := newHost(t, func(_ *host, c *Config) {
		c.Now = w.now
		c.Timeout = time.Minute
	})
	for _, d := range []time.Duration{0, 2 * time.Hour, 48 * time.Hour, 6 * 365 * 24 * time.Hour, -90 * time.Minute, -48 * time.Hour, -6 * 365 * 24 * time.Hour} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			w.set(d)
			if r := h.ask(t, "true"); !r.Approved {
				t.Errorf("with the first certificate: %+v", r)
			}
			was := h.channel.Certs
			h.channel.Certs = h.certs(t, h.Daemon, fmt.Sprint("at ", d))
			if r := h.ask(t, "true"); !r.Approved {
				t.Errorf("with a new one: %+v", r)
			}
			h.channel.Certs = was
			h.authority.mu.Lock()
			h.authority.server = nil // the host's is made anew too
			h.authority.mu.Unlock()
			if r := h.ask(t, "true"); !r.Approved {
				t.Errorf("with a new one of the host's: %+v", r)
			}
		})
	}

	// One that waits is not over because the wall says so.
	w.set(0)
	done := make(chan wire.Response, 1)
	go func() {
		r, err := h.send(t.Context(), wire.Request{Command: "rm x", Justification: "because"})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	ask := h.waits(t)
	for _, d := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		w.set(d)
		if left := ask.Deadline.Sub(w.now()); left < 30*time.Second || left > time.Minute {
			t.Errorf("the wall moved by %v, and %v are left", d, left)
		}
	}
	if err := h.Queue().Answer(t.Context(), ask.Seq, seen(ask)); err != nil {
		t.Fatal(err)
	}
	if r := <-done; !r.Approved {
		t.Errorf("%+v", r)
	}
}

// TestClocksThatDiffer: the sandbox's clock need not be right by the host's.
func TestClocksThatDiffer(t *testing.T) {
	for _, d := range []time.Duration{10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		h := newHost(t, func(_ *host, c *Config) { c.Now = func() time.Time { return time.Now().Add(d) } })
		if r := h.ask(t, "true"); !r.Approved {
			t.Errorf("the host is ahead by %v: %+v", d, r)
		}
	}
}
