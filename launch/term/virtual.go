package term

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Virtual is the terminal of a launch that has none of a person's: nothing shows
// it until somebody attaches to it. It knows what it would show, so that whoever
// comes sees what somebody who was there all the time would see. What it is sent
// is filtered once more on its way to a person.
type Virtual struct {
	ptmx, pts *os.File
	ended     chan struct{} // closed when everything that was printed is read
	watched   atomic.Bool

	mu        sync.Mutex
	filter    Filter
	main, alt *model
	viewer    *Viewer
	changed   chan struct{} // closed when somebody comes or goes
}

// NewVirtual makes a terminal of that size.
func NewVirtual(cols, rows int, o Options) (*Virtual, error) {
	ptmx, pts, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a pty: %w", err)
	}
	if ptmx, err = stoppable(ptmx); err != nil {
		pts.Close()
		return nil, fmt.Errorf("opening a pty: %w", err)
	}
	// It reads UTF-8, whatever the locale here: a viewer that does not leaves out
	// what it cannot show.
	if t, err := unix.IoctlGetTermios(int(pts.Fd()), unix.TCGETS); err == nil {
		t.Iflag |= unix.IUTF8
		unix.IoctlSetTermios(int(pts.Fd()), unix.TCSETS, t)
	}
	v := &Virtual{
		ptmx: ptmx, pts: pts, ended: make(chan struct{}), changed: make(chan struct{}),
		main: newModel(cols, rows), alt: newModel(cols, rows),
	}
	v.main.answers, v.alt.answers = unwatched{v}, unwatched{v}
	v.main.enter(nil)
	// Titles have their beginning from the sandbox's own filter.
	v.filter = Filter{Clipboard: o.Clipboard, screen: v.alt, main: v.main}
	v.filter.modes.titled, v.filter.modes.title = true, o.Title // of every viewer's; see repaint
	v.resize(cols, rows)
	go v.run()
	return v, nil
}

// Own makes it the controlling terminal of this process, which must lead a
// session that has none.
func (v *Virtual) Own() error {
	if err := unix.IoctlSetInt(int(v.pts.Fd()), unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("taking the terminal: %w", err)
	}
	return nil
}

// Connect puts the terminal in the place of these descriptors of the process.
func (v *Virtual) Connect(fds ...int) error { return connect(v.pts, fds) }

func connect(f *os.File, fds []int) error {
	for _, fd := range fds {
		if err := unix.Dup3(int(f.Fd()), fd, 0); err != nil {
			return fmt.Errorf("connecting descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// run reads what the terminal is sent, until nobody has it open any more.
func (v *Virtual) run() {
	defer close(v.ended)
	buf, out := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := v.ptmx.Read(buf)
		v.mu.Lock()
		out = v.filter.Append(out[:0], buf[:n])
		to := v.viewer
		v.mu.Unlock()
		if to != nil && len(out) > 0 {
			v.show(to, out)
		}
		if err != nil {
			return
		}
	}
}

// show shows a viewer something. One that does not take it is not waited for
// again: what it missed is painted for whoever comes next.
func (v *Virtual) show(to *Viewer, b []byte) {
	to.turn.Lock()
	err := to.Show(b)
	to.turn.Unlock()
	if err != nil {
		v.Leave(to)
	}
}

// unwatched answers for a terminal that is not there: a program that asks would
// wait for ever, or for seconds.
type unwatched struct{ v *Virtual }

func (u unwatched) Write(b []byte) (int, error) {
	if !u.v.watched.Load() {
		u.v.ptmx.SetWriteDeadline(time.Now().Add(typeFor))
		u.v.ptmx.Write(b)
	}
	return len(b), nil
}

func (v *Virtual) resize(cols, rows int) {
	cols, rows = min(cols, sizeMost), min(rows, sizeMost)
	pty.Setsize(v.ptmx, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	v.main.resize(cols, rows)
	v.alt.resize(cols, rows)
}

// sizeMost bounds a size: the screens are kept in memory.
const sizeMost = 2000

// Drain takes the terminal from these descriptors of the process and returns when
// everything that was printed on it is shown. The process must have closed
// whatever else it opened of the terminal.
func (v *Virtual) Drain(fds ...int) {
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		connect(null, fds)
		null.Close()
	}
	v.pts.Close()
	select {
	case <-v.ended:
	case <-time.After(drainFor): // somebody else has it open
	}
}

// Close tells the viewer how the sandbox ended.
func (v *Virtual) Close(status int) {
	v.mu.Lock()
	var gone chan struct{}
	if v.viewer != nil {
		gone = v.part(v.viewer, End{Over: true, Status: status})
		v.note()
	}
	v.mu.Unlock()
	if gone != nil {
		select {
		case <-gone:
		case <-time.After(outletFor):
		}
	}
	v.main.close()
	v.alt.close()
	v.pts.Close()
	v.ptmx.Close()
}
