package term

import (
	"errors"
	"fmt"
	"os"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Takeover gives the terminal to f and nobody else: a cleared screen, in raw
// mode and otherwise as it was when the window opened, whatever the sandbox has
// made of it. What the sandbox prints meanwhile waits. After f, the
// screen and the terminal are again as the sandbox had made them.
//
// Keys that were typed before f could show anything go to the sandbox, for
// which they were meant; those that f leaves unread go to nobody.
func (s *Session) Takeover(f func(tty *os.File) error) error {
	s.in.hold()
	s.out.hold()
	defer s.out.release()
	defer s.in.release()
	s.out.flush(flushFor)

	// What was asked before is answered before this is.
	before, _ := s.settle(askFor)
	s.ptmx.SetWriteDeadline(time.Now().Add(flushFor))
	s.ptmx.Write(before)
	s.ptmx.SetWriteDeadline(time.Time{})

	m := &s.filter.modes
	begin := s.filter.Cut(nil)
	if !m.alt {
		begin = append(begin, "\x1b[?1049h"...)
	}
	begin = m.undo(begin)
	begin = append(begin, "\x1b[>0u\x1b[m\x1b[2J\x1b[H"...)
	s.write(begin)
	ferr := s.own(f)
	s.write(s.giveBack(nil))
	s.settle(askFor)
	if _, err := raw(s.tty); err != nil {
		return errors.Join(ferr, fmt.Errorf("setting the terminal: %w", err))
	}
	return ferr
}

const (
	flushFor = 300 * time.Millisecond
	// askFor is how long a terminal may take to answer.
	askFor = 500 * time.Millisecond
)

// own calls f with the terminal opened anew, since f may do with the file's
// mode of reading what it likes.
func (s *Session) own(f func(tty *os.File) error) error {
	tty, err := os.OpenFile(s.path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("opening the terminal: %w", err)
	}
	defer tty.Close()
	return f(tty)
}

// giveBack makes the terminal again what the sandbox had made of it. Where the
// screen that was covered is not known, the program is made to draw it.
func (s *Session) giveBack(dst []byte) []byte {
	m := &s.filter.modes
	// f may have left the alternate screen. Where it has not, this does nothing
	// but save a cursor.
	dst = append(dst, "\x1b[?1049h\x1b[<u\x1b[?25l"...)
	if !m.alt {
		dst = m.redo(dst)
		dst = append(dst, "\x1b[?1049l"...)
		if m.on(25) {
			dst = append(dst, "\x1b[?25h"...)
		}
		s.resize() // it may have changed while nobody followed it
		return dst
	}
	size, err := pty.GetsizeFull(s.ptmx)
	dst, ok := m.painted(dst, s.model)
	s.resize()
	if !ok && err == nil {
		s.nudge(size)
	}
	return dst
}

// painted draws the screen that is shown, on a terminal in its first state
// whose cursor is hidden, and makes the terminal again what it was. Where the
// screen is not known it is cleared.
func (m *modes) painted(dst []byte, s *model) (out []byte, ok bool) {
	dst, at, saved, ok := s.paint(dst)
	switch {
	case !ok:
		dst = m.redo(append(dst, "\x1b[m\x1b[2J"...))
	default:
		if m.saved {
			dst = position(dst, saved)
			dst = append(m.savedPen.append(dst), "\x1b7"...)
		}
		dst = m.place(m.redo(dst), at)
	}
	if m.on(25) {
		dst = append(dst, "\x1b[?25h"...)
	}
	return dst, ok
}

// place puts the cursor where it was on the screen, which is not what a
// position means while rows are counted from the region's first.
func (m *modes) place(dst []byte, at uv.Position) []byte {
	if m.on(6) && m.region[0] > 0 {
		at.Y = max(at.Y-(m.region[0]-1), 0)
	}
	if m.on(6) && m.on(69) && m.margins[0] > 0 {
		at.X = max(at.X-(m.margins[0]-1), 0)
	}
	return position(dst, at)
}

// nudge makes the program in the sandbox draw its screen again.
func (s *Session) nudge(size *pty.Winsize) {
	less := *size
	less.Rows = max(less.Rows-1, 1)
	pty.Setsize(s.ptmx, &less)
	time.AfterFunc(100*time.Millisecond, s.resize)
}

// write writes to the terminal, for as long as a terminal may take.
func (s *Session) write(b []byte) error {
	s.tty.SetWriteDeadline(time.Now().Add(flushFor))
	_, err := s.tty.Write(b)
	s.tty.SetWriteDeadline(time.Time{})
	return err
}
