package term

import (
	"sync"
	"time"
)

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

// Type types for a viewer, and tells whether it was taken.
func (v *Virtual) Type(from *Viewer, b []byte) bool {
	v.mu.Lock()
	is := v.viewer == from
	v.mu.Unlock()
	if !is {
		return false
	}
	v.ptmx.SetWriteDeadline(time.Now().Add(typeFor))
	_, err := v.ptmx.Write(b)
	return err == nil
}

// Resize gives the terminal the size of the viewer's.
func (v *Virtual) Resize(from *Viewer, cols, rows int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.viewer == from && cols > 0 && rows > 0 {
		v.resize(cols, rows)
	}
}
