package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Window is the person's terminal while it shows a Virtual of another process.
type Window struct {
	tty  *os.File
	utf8 bool // it reads UTF-8; see UTF8
}

// Far is that Virtual.
type Far interface {
	Type([]byte) error
	Resize(cols, rows int) error
	Leave() error // Next ends after it
	// Next is what comes to be shown. io.EOF is an end in order: the terminal was
	// told how to be what it was.
	Next() ([]byte, error)
	Close() error // ends everything at once
}

// OpenWindow opens the terminal at path.
func OpenWindow(path string, utf8 bool) (*Window, error) {
	tty, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	return &Window{tty, utf8}, nil
}

// File is the terminal.
func (w *Window) File() *os.File { return w.tty }

// Close closes it.
func (w *Window) Close() error { return w.tty.Close() }

// Size is its size.
func (w *Window) Size() (cols, rows int) {
	size, err := pty.GetsizeFull(w.tty)
	if err != nil || size.Cols == 0 || size.Rows == 0 {
		return 80, 24
	}
	return int(size.Cols), int(size.Rows)
}

// Times of a Window.
const (
	leaveFor = 3 * time.Second // how long leaving may take
	keyFor   = time.Second     // how far apart the keys to leave may be
)

// Show shows the far terminal until that ends, the person leaves by LeaveKeys,
// ctx ends or this terminal is gone, and puts this one back.
func (w *Window) Show(ctx context.Context, far Far) (left bool, err error) {
	saved, err := raw(w.tty)
	if err != nil {
		return false, fmt.Errorf("setting the terminal: %w", err)
	}
	leave := func() {
		if far.Leave() != nil {
			far.Close()
			return
		}
		time.AfterFunc(leaveFor, func() { far.Close() })
	}
	defer context.AfterFunc(ctx, leave)()
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, unix.SIGWINCH)
	var going sync.WaitGroup
	var asked questions
	var said reports
	going.Go(func() {
		far.Resize(w.Size()) // it may have changed since it was told
		for range winch {
			far.Resize(w.Size())
		}
	})
	stop := make(chan struct{})
	going.Go(func() {
		if w.typing(far, stop, &said) {
			left = true
			leave()
		}
	})
	for err == nil {
		var b []byte
		if b, err = far.Next(); err == nil {
			if !w.utf8 {
				b = narrow(b)
			}
			asked.feed(b)
			if _, werr := w.tty.Write(b); werr != nil {
				far.Close() // the window was closed
			}
		}
	}
	signal.Stop(winch)
	close(winch)
	close(stop)
	w.tty.SetReadDeadline(time.Unix(1, 0))
	going.Wait()
	w.tty.SetReadDeadline(time.Time{})
	inOrder := errors.Is(err, io.EOF)
	s := Session{tty: w.tty, said: said}
	s.filter.status = asked.n
	if !inOrder {
		s.write(everything)
	}
	s.settle(askFor)
	if rerr := restore(w.tty, saved); rerr != nil && !errors.Is(rerr, unix.EIO) {
		return left, fmt.Errorf("restoring the terminal: %w", rerr)
	}
	if inOrder || left {
		return left, nil
	}
	return left, err
}

// typing passes on what is typed, and tells whether the person wants to leave:
// by the keys, or by closing the window.
func (w *Window) typing(far Far, stop <-chan struct{}, said *reports) bool {
	var keys leaver
	buf := make([]byte, 4096)
	for {
		until := time.Time{}
		if len(keys.held) > 0 {
			until = time.Now().Add(keyFor)
		}
		w.tty.SetReadDeadline(until)
		select {
		case <-stop: // closed before the deadline that ends a read is set
			return false
		default:
		}
		n, err := w.tty.Read(buf)
		said.feed(buf[:n])
		select {
		case <-stop:
			return false
		default:
		}
		on, left := keys.feed(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			on, err = keys.give(), nil
		}
		if len(on) > 0 && far.Type(on) != nil {
			return false
		}
		if left || err != nil {
			return true
		}
	}
}
