package term

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// pump is one direction of copying that can be held and stopped. Its source
// must support read deadlines.
type pump struct {
	src     *os.File
	turn    sync.Mutex // held by run while it copies, and between hold and release
	stopped atomic.Bool
}

// run copies until the source ends, the target fails or stop's time is over.
func (p *pump) run(dst *os.File) {
	buf := make([]byte, 64<<10)
	for {
		p.turn.Lock()
		n, err := p.src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		p.turn.Unlock()
		if errors.Is(err, os.ErrDeadlineExceeded) && !p.stopped.Load() {
			continue // hold wants its turn
		}
		if err != nil {
			return
		}
	}
}

// hold returns once nothing is being copied; the source is then the caller's.
func (p *pump) hold() {
	p.src.SetReadDeadline(time.Unix(1, 0)) // wakes a read that waits
	p.turn.Lock()
	p.src.SetReadDeadline(time.Time{})
}

func (p *pump) release() { p.turn.Unlock() }

// stop ends run after at most d, sooner if the source ends.
func (p *pump) stop(d time.Duration) {
	p.stopped.Store(true)
	p.src.SetReadDeadline(time.Now().Add(d))
}
