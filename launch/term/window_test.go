package term

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	xterm "golang.org/x/term"
)

// far is a virtual terminal of another process, played.
type far struct {
	mu     sync.Mutex
	typed  string
	cols   int
	shows  chan []byte
	end    error // what Next gives at last
	closed bool
}

func newFar() *far { return &far{shows: make(chan []byte, 10), end: io.EOF} }

func (f *far) Type(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typed += string(b)
	return nil
}

func (f *far) Resize(cols, _ int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cols = cols
	return nil
}

func (f *far) Leave() error { return f.Close() }

func (f *far) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.shows)
	}
	return nil
}

func (f *far) Next() ([]byte, error) {
	if b, ok := <-f.shows; ok {
		return b, nil
	}
	return nil, f.end
}

func (f *far) wait(t *testing.T, done func() bool) {
	t.Helper()
	for range 5000 {
		f.mu.Lock()
		is := done()
		f.mu.Unlock()
		if is {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("typed %q, %d columns", f.typed, f.cols)
}

// TestWindow shows a far terminal in each way that ends it, and each time the
// person's own is as before.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		what string
		end  func(t *testing.T, f *far, w *window, cancel func())
		left bool
		err  error
	}{
		{"the keys", func(t *testing.T, f *far, w *window, _ func()) { w.f.WriteString("ls\x10\x11") }, true, nil},
		{"a signal", func(t *testing.T, f *far, w *window, cancel func()) { cancel() }, false, nil},
		{"the end of the sandbox", func(t *testing.T, f *far, w *window, _ func()) { f.Close() }, false, nil},
		{"the death of its lazaret", func(t *testing.T, f *far, w *window, _ func()) { f.end = io.ErrUnexpectedEOF; f.Close() }, false, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.what, func(t *testing.T) {
			w, tty := openWindow(t)
			me := reopen(t, tty)
			before, err := xterm.GetState(int(me.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			win, err := OpenWindow(tty, true)
			if err != nil {
				t.Fatal(err)
			}
			defer win.Close()
			f := newFar()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			type result struct {
				left bool
				err  error
			}
			done := make(chan result, 1)
			go func() {
				left, err := win.Show(ctx, f)
				done <- result{left, err}
			}()
			f.shows <- []byte("\x1b[?2004hready")
			w.screen("ready")
			f.wait(t, func() bool { return f.cols == 40 }) // it was resized before anybody listened, perhaps
			w.f.WriteString("typed\x10")                   // a single ctrl-p arrives too, a little later
			f.wait(t, func() bool { return f.typed == "typed\x10" })
			tt.end(t, f, w, cancel)
			select {
			case r := <-done:
				if r.left != tt.left || !errors.Is(r.err, tt.err) {
					t.Errorf("left %v, %v", r.left, r.err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if after, _ := xterm.GetState(int(me.Fd())); *after != *before {
				t.Error("the terminal is not as it was")
			}
			if tt.err != nil { // nobody else has put it back
				var seen Filter
				seen.Append(nil, []byte(w.sent()))
				if seen.modes.on(2004) {
					t.Error("bracketed paste is still on")
				}
			}
		})
	}
}

// A window that was closed leaves.
func TestWindowThatIsClosed(t *testing.T) {
	ptmx, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if ptmx, err = stoppable(ptmx); err != nil {
		t.Fatal(err)
	}
	win, err := OpenWindow(pts.Name(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer win.Close()
	f := newFar()
	done := make(chan bool, 1)
	go func() {
		left, _ := win.Show(t.Context(), f)
		done <- left
	}()
	f.shows <- []byte("ready")
	read(t, ptmx, "ready")
	pts.Close()
	ptmx.Close()
	select {
	case left := <-done:
		if !left {
			t.Error("it does not count as left")
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}
