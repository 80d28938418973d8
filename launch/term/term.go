// Package term owns the person's terminal while a sandbox runs. The sandbox
// gets a pty of lazaret's own, never the terminal itself, so that lazaret can
// take the screen for a question and give it back.
package term

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// Session joins the person's terminal and the sandbox's pty.
type Session struct {
	tty   *os.File     // the person's terminal, non-blocking
	ptmx  *os.File     // our end of the sandbox's pty
	child *os.File     // the sandbox's end
	saved *xterm.State // before Forward

	winch   chan os.Signal
	pumps   sync.WaitGroup
	in, out pump
}

// Open makes a pty of the size of the terminal at path (usually /dev/tty),
// which itself stays as it is until Forward.
func Open(path string) (*Session, error) {
	// Opened anew, because O_NONBLOCK on an inherited descriptor would also
	// reach the shell that shares it, and a blocking read cannot be stopped.
	tty, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	ptmx, child, err := pty.Open()
	if err != nil {
		tty.Close()
		return nil, fmt.Errorf("opening a pty: %w", err)
	}
	ptmx, err = stoppable(ptmx)
	if err != nil {
		tty.Close()
		child.Close()
		return nil, fmt.Errorf("opening a pty: %w", err)
	}
	s := &Session{tty: tty, ptmx: ptmx, child: child, winch: make(chan os.Signal, 1)}
	s.in.src, s.in.dst = tty, ptmx
	s.out.src, s.out.dst = ptmx, tty
	if err := pty.InheritSize(tty, ptmx); err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("reading the terminal's size: %w", err)
	}
	return s, nil
}

// Child is the sandbox's end of the pty. It stays open until Close, so that
// output is still read after the sandbox is gone.
func (s *Session) Child() *os.File { return s.child }

// Forward puts the terminal into raw mode and starts copying between it and
// the pty and following its size. Close ends it.
func (s *Session) Forward() (err error) {
	if s.saved, err = raw(s.tty); err != nil {
		return fmt.Errorf("setting the terminal: %w", err)
	}
	signal.Notify(s.winch, unix.SIGWINCH)
	s.pumps.Add(3)
	go func() {
		defer s.pumps.Done()
		for range s.winch {
			pty.InheritSize(s.tty, s.ptmx)
		}
	}()
	go func() { defer s.pumps.Done(); s.in.run() }()
	go func() { defer s.pumps.Done(); s.out.run() }()
	return nil
}

// Takeover gives the terminal, in its own mode, to f and nobody else: what the
// sandbox prints meanwhile waits in its pty, and keys go to f only.
func (s *Session) Takeover(f func(tty *os.File) error) error {
	s.in.hold()
	s.out.hold()
	defer s.out.release()
	defer s.in.release()
	if err := restore(s.tty, s.saved); err != nil {
		return fmt.Errorf("setting the terminal: %w", err)
	}
	ferr := f(s.tty)
	if _, err := raw(s.tty); err != nil {
		return errors.Join(ferr, fmt.Errorf("setting the terminal: %w", err))
	}
	// The size may have changed while nobody followed it.
	pty.InheritSize(s.tty, s.ptmx)
	return ferr
}

// drainFor is how long Close goes on reading what the sandbox printed last.
const drainFor = 200 * time.Millisecond

// Close shows what the sandbox still had to say, ends forwarding and puts the
// terminal back as Open found it. It may be called once, Forward or not.
func (s *Session) Close() error {
	signal.Stop(s.winch)
	close(s.winch)
	s.in.stop(0)
	// Our own copy of the child's end keeps the pty from reporting its end.
	s.child.Close()
	s.out.stop(drainFor)
	s.pumps.Wait()
	var err error
	if s.saved != nil {
		err = restore(s.tty, s.saved)
	}
	s.closeFiles()
	if err != nil && !errors.Is(err, unix.EIO) { // EIO: the terminal was closed
		return fmt.Errorf("restoring the terminal: %w", err)
	}
	return nil
}

func (s *Session) closeFiles() {
	s.child.Close()
	s.ptmx.Close()
	s.tty.Close()
}

// stoppable gives f back as a file whose reads can have a deadline, which a
// file that was opened blocking does not have.
func stoppable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// raw and restore go through the raw connection: os.File.Fd would make the
// descriptor blocking, and a blocking read cannot be stopped.
func raw(f *os.File) (st *xterm.State, err error) {
	if e := control(f, func(fd int) { st, err = xterm.MakeRaw(fd) }); e != nil {
		return nil, e
	}
	return st, err
}

func restore(f *os.File, st *xterm.State) (err error) {
	if e := control(f, func(fd int) { err = xterm.Restore(fd, st) }); e != nil {
		return e
	}
	return err
}

func control(f *os.File, do func(fd int)) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return c.Control(func(fd uintptr) { do(int(fd)) })
}
