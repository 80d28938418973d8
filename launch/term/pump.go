package term

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// pump is one direction of copying that can be held and stopped, also while
// nobody reads what it writes. Both its files must support deadlines.
type pump struct {
	src, dst *os.File
	turn     sync.Mutex // held by run while it copies, and between hold and release
	stopped  atomic.Bool
}

// run copies until the source ends, the target fails or stop's time is over.
func (p *pump) run() {
	buf := make([]byte, 64<<10)
	var rest []byte // read and not yet written
	for {
		p.turn.Lock()
		n, err := 0, error(nil)
		if len(rest) > 0 {
			n, err = p.dst.Write(rest)
			rest = rest[n:]
		} else {
			n, err = p.src.Read(buf)
			rest = buf[:n]
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

// hold returns once nothing is being copied; both files are then the caller's.
func (p *pump) hold() {
	p.src.SetReadDeadline(time.Unix(1, 0)) // wakes a read that waits
	p.dst.SetWriteDeadline(time.Unix(1, 0))
	p.turn.Lock()
	p.src.SetReadDeadline(time.Time{})
	p.dst.SetWriteDeadline(time.Time{})
}

func (p *pump) release() { p.turn.Unlock() }

// stop ends run after at most d, sooner if the source ends. Without a limit on
// writing, a terminal that nobody reads would keep it for ever, and a pty whose
// other end is closed would make it spin.
func (p *pump) stop(d time.Duration) {
	p.stopped.Store(true)
	p.src.SetReadDeadline(time.Now().Add(d))
	p.dst.SetWriteDeadline(time.Now().Add(d))
}
