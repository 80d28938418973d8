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

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// Session joins the person's terminal and the sandbox's pty.
type Session struct {
	tty    *os.File     // the person's terminal, non-blocking
	ptmx   *os.File     // our end of the sandbox's pty
	child  *os.File     // the sandbox's end
	output *os.File     // the sandbox's end of the pipe into which it prints
	path   string       // of tty
	saved  *xterm.State // before Forward

	// What goes to the terminal, and what is known of its state. Used by the
	// out pump, and by whoever holds it.
	filter Filter
	model  *model
	said   reports // that went to the sandbox since settled; the in pump's
	late   bool    // an answer of the terminal's came too late, or never

	winch chan os.Signal
	pumps sync.WaitGroup
	// From the terminal to the pty, from the pipe to the terminal, and from the
	// pty into the pipe.
	in, out, aside pump
}

// Options are what a person decides about their terminal.
type Options struct {
	Title     string // goes before the titles a sandbox gives its window
	Clipboard bool   // the sandbox may set the clipboard
	First     func() // called before the first output is shown; nil: nobody waits for it
	UTF8      bool   // the terminal reads UTF-8; see UTF8
}

// Open makes a pty of the size of the terminal at path (usually /dev/tty),
// which itself stays as it is until Forward.
func Open(path string, o Options) (*Session, error) {
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
	r, w, output, err := outputPipe()
	if err != nil {
		tty.Close()
		ptmx.Close()
		child.Close()
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	s := &Session{tty: tty, ptmx: ptmx, child: child, output: output, path: path, winch: make(chan os.Signal, 1)}
	s.in.src, s.in.dst, s.in.filter = tty, ptmx, s.said.counted
	s.out.src, s.out.dst, s.out.filter = r, tty, s.filter.Append
	s.aside.src, s.aside.dst = ptmx, w
	if o.First != nil {
		first := sync.OnceFunc(o.First)
		s.out.filter = func(dst, src []byte) []byte {
			if dst = s.filter.Append(dst, src); len(dst) > 0 {
				first()
			}
			return dst
		}
	}
	if err := pty.InheritSize(tty, ptmx); err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("reading the terminal's size: %w", err)
	}
	size, err := pty.GetsizeFull(ptmx)
	if err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("reading the terminal's size: %w", err)
	}
	s.model = newModel(int(size.Cols), int(size.Rows))
	s.filter = Filter{Title: o.Title, Clipboard: o.Clipboard, ASCII: !o.UTF8, screen: s.model}
	return s, nil
}

// Child is the sandbox's end of the pty. It stays open until Close, so that
// output is still read after the sandbox is gone.
func (s *Session) Child() *os.File { return s.child }

// Output takes what a program prints that has the pty for everything else and does
// not look at what this is. A pty hands on what is printed in pages of 4 KiB by way
// of a thread of the kernel's, which costs more than all that is done with it here.
func (s *Session) Output() *os.File { return s.output }

// outputPipe makes a pipe of which w, unlike output, can have a deadline: whoever
// gets output makes it blocking, for all who share it.
func outputPipe() (r, w, output *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, nil, err
	}
	if e := control(w, func(fd int) {
		output, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
	}); e != nil || err != nil {
		r.Close()
		w.Close()
		return nil, nil, nil, errors.Join(e, err)
	}
	return r, w, output, nil
}

// Forward puts the terminal into raw mode and starts copying between it and
// the pty and following its size. Close ends it.
func (s *Session) Forward() (err error) {
	if s.saved, err = raw(s.tty); err != nil {
		return fmt.Errorf("setting the terminal: %w", err)
	}
	signal.Notify(s.winch, unix.SIGWINCH)
	s.pumps.Add(4)
	go func() {
		defer s.pumps.Done()
		s.resize() // it may have changed since Open, when nobody was told
		for range s.winch {
			s.resize()
		}
	}()
	for _, p := range []*pump{&s.in, &s.out, &s.aside} {
		go func() {
			defer s.pumps.Done()
			defer s.rescue()
			p.run()
			if p == &s.aside {
				p.dst.Close() // the pipe ends where nobody else prints
			}
		}()
	}
	return nil
}

// resize gives the sandbox's terminal the size of the person's.
func (s *Session) resize() {
	if pty.InheritSize(s.tty, s.ptmx) != nil {
		return
	}
	if size, err := pty.GetsizeFull(s.ptmx); err == nil {
		s.model.resize(int(size.Cols), int(size.Rows))
	}
}

func (s *Session) closeFiles() {
	for _, f := range []*os.File{s.child, s.output, s.aside.dst, s.out.src, s.ptmx, s.tty} {
		f.Close()
	}
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
