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

// Viewer is somebody who is attached to a Virtual.
type Viewer struct {
	Name string // tells the person who it is
	// Cols and Rows are the size of the viewer's terminal; 0 where there is none.
	Cols, Rows int
	// Show shows what the terminal is sent. It is not called by two at once, and
	// must return within a while of Hurry.
	Show func([]byte) error
	// Hurry is told when somebody waits for Show.
	Hurry func()
	// Gone is told last: the viewer is not attached any more.
	Gone func(End)

	turn sync.Mutex // held by whoever calls Show
}

// End is why a viewer is not attached any more.
type End struct {
	Over   bool   `json:"over,omitempty"` // the sandbox has ended,
	Status int    `json:"status,omitempty"`
	Taken  string `json:"taken,omitempty"` // another viewer has taken its place
}

// BusyError is a terminal that somebody is attached to.
type BusyError struct{ Name string }

func (e *BusyError) Error() string { return e.Name + " is attached to it" }

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

// Attach shows the terminal to a viewer from now on. One that is there already
// makes way if take is given, and else it is a *BusyError.
func (v *Virtual) Attach(to *Viewer, take bool) error {
	v.mu.Lock()
	if old := v.viewer; old != nil {
		if !take {
			v.mu.Unlock()
			return &BusyError{old.Name}
		}
		v.part(old, End{Taken: to.Name})
	}
	to.turn.Lock() // what is painted comes before what is printed next
	v.viewer = to
	var first []byte
	if to.Cols > 0 && to.Rows > 0 {
		v.resize(to.Cols, to.Rows)
		first = v.repaint(nil, to.Rows)
	}
	v.note()
	v.mu.Unlock()
	err := to.Show(first)
	to.turn.Unlock()
	if err != nil {
		v.Leave(to)
	}
	return nil
}

// Busy is the name of who is attached, or "".
func (v *Virtual) Busy() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.viewer == nil {
		return ""
	}
	return v.viewer.Name
}

// Lost is Leave for a viewer that is not there any more.
func (v *Virtual) Lost(from *Viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.viewer == from {
		v.viewer = nil
		v.note()
	}
}

// Leave ends that a viewer is attached, where it is.
func (v *Virtual) Leave(from *Viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.viewer == from {
		v.part(from, End{})
		v.note()
	}
}

// part makes a viewer's terminal what it was, and tells it to go. It does not
// wait for that.
func (v *Virtual) part(from *Viewer, why End) (gone chan struct{}) {
	v.viewer = nil
	last := v.leftovers(from)
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		from.Hurry()
		from.turn.Lock()
		defer from.turn.Unlock()
		from.Show(last) // what comes of it, Gone will see
		from.Gone(why)
	}()
	return gone
}

// note tells everybody that somebody came or went.
func (v *Virtual) note() {
	v.watched.Store(v.viewer != nil && v.viewer.Cols > 0)
	close(v.changed)
	v.changed = make(chan struct{})
}

// Watched tells whether somebody is attached with a terminal, and when that may
// have changed.
func (v *Virtual) Watched() (is bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watched.Load(), v.changed
}

// typeFor is how long it may take until what is typed is taken. A program that
// does not read loses it.
const typeFor = 2 * time.Second

// Type types for a viewer.
func (v *Virtual) Type(from *Viewer, b []byte) {
	v.mu.Lock()
	is := v.viewer == from
	v.mu.Unlock()
	if is {
		v.ptmx.SetWriteDeadline(time.Now().Add(typeFor))
		v.ptmx.Write(b)
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

// Resize gives the terminal the size of the viewer's.
func (v *Virtual) Resize(from *Viewer, cols, rows int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.viewer == from && cols > 0 && rows > 0 {
		v.resize(cols, rows)
	}
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
