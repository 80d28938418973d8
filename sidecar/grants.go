package sidecar

import (
	"errors"
	"net/netip"
	"sync"
	"time"
)

// How long an answer opens its addresses: as long as it lives, but no shorter
// than programs take to use it, no longer than a machine is given to another.
const (
	lifeFloor = time.Minute
	lifeCap   = time.Hour
	lifeGrace = 30 * time.Second // an answer is used until its last second
)

// lifetime is how long the sandbox may keep an answer, and how long what it
// opened stays open.
func lifetime(ttl uint32) (answer uint32, open time.Duration) {
	d := min(time.Duration(ttl)*time.Second, lifeCap)
	return uint32(d / time.Second), max(d, lifeFloor) + lifeGrace
}

// grants are what names have opened.
type grants struct {
	open func(add, renew []grant, life time.Duration) error
	now  func() time.Time

	mu    sync.Mutex
	until map[grant]time.Time
}

var errGrants = errors.New("names have opened too many addresses")

// grant opens addresses at services for a time. It returns when they are open.
func (g *grants) grant(addrs []netip.Addr, services []Service, life time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	seen := map[grant]bool{}
	var add, renew []grant
	for _, a := range addrs {
		for _, s := range services {
			for _, proto := range protocols(s.Proto) {
				one := grant{a, proto, s.Port}
				until, have := g.until[one]
				switch {
				case seen[one], have && !until.Before(now.Add(life)):
				case have:
					renew = append(renew, one)
				default:
					add = append(add, one)
				}
				seen[one] = true
			}
		}
	}
	if len(add)+len(renew) == 0 {
		return nil
	}
	if len(g.until)+len(add) > namesLimit/2 {
		g.expire(now)
	}
	if len(g.until)+len(add) > namesLimit/2 {
		return errGrants
	}
	if err := g.open(add, renew, life); err != nil {
		return err
	}
	for _, list := range [][]grant{add, renew} {
		for _, one := range list {
			g.until[one] = now.Add(life)
		}
	}
	return nil
}

func (g *grants) expire(now time.Time) {
	for one, until := range g.until {
		if until.Before(now) {
			delete(g.until, one)
		}
	}
}
