package term

import (
	"bytes"
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
	filter   func(dst, src []byte) []byte // nil: copies as it is
	turn     sync.Mutex                   // held by run while it copies, and between hold and release
	rest     []byte                       // read, filtered and not yet written
	stopped  atomic.Bool
}

// atOnce is how many bytes are read before they are written: what a terminal has
// still to take when it is wanted for a question. More would be no faster.
const atOnce = 16 << 10

// run copies until the source ends, the target fails or stop's time is over.
func (p *pump) run() {
	buf, filtered := make([]byte, atOnce), []byte(nil)
	for {
		p.turn.Lock()
		n, err := 0, error(nil)
		if len(p.rest) > 0 {
			n, err = p.dst.Write(p.rest)
			p.rest = p.rest[n:]
		} else {
			n, err = p.src.Read(buf)
			p.rest = buf[:n]
			if p.filter != nil {
				filtered = p.filter(filtered[:0], buf[:n])
				p.rest = filtered
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

// hold returns once nothing is being copied; both files are then the caller's.
func (p *pump) hold() {
	p.src.SetReadDeadline(time.Unix(1, 0)) // wakes a read that waits
	p.dst.SetWriteDeadline(time.Unix(1, 0))
	p.turn.Lock()
	p.src.SetReadDeadline(time.Time{})
	p.dst.SetWriteDeadline(time.Time{})
}

func (p *pump) release() { p.turn.Unlock() }

// flush writes what was read before hold, for at most d. What the target does
// not take by then is cut off where the next sequence begins, since others are
// about to write there.
func (p *pump) flush(d time.Duration) {
	if len(p.rest) == 0 {
		return
	}
	p.dst.SetWriteDeadline(time.Now().Add(d))
	n, _ := p.dst.Write(p.rest)
	p.dst.SetWriteDeadline(time.Time{})
	if p.rest = p.rest[n:]; len(p.rest) > 0 {
		p.rest = p.rest[max(bytes.IndexByte(p.rest, 0x1b), 0):]
		p.dst.SetWriteDeadline(time.Now().Add(d))
		p.dst.Write([]byte("\x18\x1b\\")) // ends whatever was begun
		p.dst.SetWriteDeadline(time.Time{})
	}
}

// stop ends run after at most d, sooner if the source ends. Without a limit on
// writing, a terminal that nobody reads would keep it for ever, and a pty whose
// other end is closed would make it spin.
func (p *pump) stop(d time.Duration) {
	p.stopped.Store(true)
	p.src.SetReadDeadline(time.Now().Add(d))
	p.dst.SetWriteDeadline(time.Now().Add(d))
}
