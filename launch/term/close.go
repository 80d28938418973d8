package term

import (
	"errors"
	"fmt"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// drainFor is how long Close goes on reading what the sandbox printed last.
const drainFor = 200 * time.Millisecond

// Close shows what the sandbox still had to say, ends forwarding and puts the
// terminal back as Open found it. It may be called once, Forward or not.
func (s *Session) Close() error {
	signal.Stop(s.winch)
	close(s.winch)
	s.in.stop(0)
	// Our own copies of the child's ends keep them from being at their end.
	s.child.Close()
	s.output.Close()
	s.aside.stop(drainFor)
	s.out.stop(drainFor)
	s.pumps.Wait()
	s.model.close()
	var err error
	if s.saved != nil {
		s.giveUp()
		err = restore(s.tty, s.saved)
	}
	s.closeFiles()
	if err != nil && !errors.Is(err, unix.EIO) { // EIO: the terminal was closed
		return fmt.Errorf("restoring the terminal: %w", err)
	}
	return nil
}

// giveUp undoes what the sandbox has made of the terminal, and throws away what
// the terminal still says to it: it would stand as typed in the person's shell.
func (s *Session) giveUp() {
	f := &s.filter
	// A mouse that moves, a window that gets the focus.
	t := f.modes.traces()
	reports := t.private != 0 || t.keys || f.modes.kitty != (kittyKeys{}) || f.modes.otherKeys != 0
	last := f.Cut(nil)
	if f.modes.touched() {
		last = f.modes.end(last)
	}
	if len(last) > 0 && s.write(last) != nil {
		return
	}
	if !f.asked && !reports && !s.late {
		return
	}
	_, ok := s.settle(2 * askFor)
	if s.late { // how many answers are still to come is not certain
		s.drain(2 * askFor)
	}
	if !ok {
		control(s.tty, func(fd int) { unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
	}
}

// rescue puts the terminal back when the goroutine that runs it is about to end
// the program: nobody could read why.
func (s *Session) rescue() {
	if p := recover(); p != nil {
		s.Restore()
		panic(p)
	}
}

// Restore puts the terminal back at once, for a program that is about to end
// by a panic. The session is of no use after it.
func (s *Session) Restore() {
	if s.saved == nil {
		return
	}
	s.tty.SetWriteDeadline(time.Now().Add(flushFor))
	s.tty.Write(s.filter.modes.end(s.filter.Cut(nil)))
	restore(s.tty, s.saved)
}
