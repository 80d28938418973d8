package term

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// person is the far end of a terminal: what the person types and sees.
func person(t *testing.T) (ptmx *os.File, tty string) {
	t.Helper()
	ptmx, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if ptmx, err = stoppable(ptmx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ptmx.Close(); pts.Close() })
	pty.Setsize(ptmx, &pty.Winsize{Rows: 7, Cols: 33})
	return ptmx, pts.Name()
}

func read(t *testing.T, f *os.File, want string) {
	t.Helper()
	f.SetReadDeadline(time.Now().Add(time.Minute))
	var got bytes.Buffer
	buf := make([]byte, 1024)
	for !bytes.Contains(got.Bytes(), []byte(want)) {
		n, err := f.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Fatalf("reading %q: %v, got %q", want, err, got.String())
		}
	}
}

func silent(t *testing.T, f *os.File) {
	t.Helper()
	f.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	buf := make([]byte, 1024)
	if n, err := f.Read(buf); err == nil {
		t.Fatalf("read %q where nothing was due", buf[:n])
	}
}

func TestSessionForwards(t *testing.T) {
	me, tty := person(t)
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	child, err := os.OpenFile(s.Child().Name(), os.O_RDWR|0x100, 0) // O_NOCTTY
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if _, err := xterm.MakeRaw(int(child.Fd())); err != nil { // as podman does
		t.Fatal(err)
	}
	if w, h, _ := xterm.GetSize(int(child.Fd())); w != 33 || h != 7 {
		t.Errorf("the sandbox's terminal is %dx%d, want 33x7", w, h)
	}
	forward(t, s)

	keys := "a\x03\x10\x1a" // Ctrl-C, Ctrl-P and Ctrl-Z are the sandbox's
	me.WriteString(keys)
	child2 := reopen(t, s.Child().Name())
	read(t, child2, keys)
	child.WriteString("from inside")
	read(t, me, "from inside")

	s.Output().WriteString("from \x1b]52;c;aGk=\x07inside")
	read(t, me, "from inside") // filtered likewise

	// What is printed last is still shown.
	child.WriteString("last words")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read(t, me, "last words")
}

// A window that is resized while the sandbox is made, when nobody follows it yet,
// has its new size there.
func TestResizedBeforeForward(t *testing.T) {
	me, tty := person(t)
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pty.Setsize(me, &pty.Winsize{Rows: 9, Cols: 50})
	forward(t, s)
	var size *pty.Winsize
	for range 500 {
		if size, err = pty.GetsizeFull(s.ptmx); err == nil && size.Cols == 50 && size.Rows == 9 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the sandbox's terminal is %+v, %v", size, err)
}

// What is printed into the pipe is shown, more than that and the terminal hold. A
// program that keeps it does not keep a session from ending.
func TestOutputIsShown(t *testing.T) {
	me, tty := person(t)
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := unix.Dup(int(s.Output().Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kept)
	forward(t, s)
	line := []byte("\x1b[32mok\x1b[0m a line of what a build prints\r\n")
	want := 10_000 * len(line)
	seen := make(chan int, 1)
	go func() {
		n, buf := 0, make([]byte, 4096)
		me.SetReadDeadline(time.Now().Add(20 * time.Second))
		for n < want {
			m, err := me.Read(buf)
			if n += m; err != nil {
				break
			}
		}
		seen <- n
	}()
	if n, err := unix.Write(kept, bytes.Repeat(line, 10_000)); n != want {
		t.Fatalf("%d bytes are taken: %v", n, err)
	}
	if n := <-seen; n != want {
		t.Errorf("%d bytes are shown of %d", n, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(kept, line); !errors.Is(err, unix.EPIPE) {
		t.Errorf("printing after the end: %v", err)
	}
}

// A window that was closed has nothing to be restored.
func TestCloseAfterTheTerminalIsGone(t *testing.T) {
	ptmx, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(pts.Name(), Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	forward(t, s)
	pts.Close()
	ptmx.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What cannot be delivered does not keep a session from ending: input that the
// program never reads, output that nobody takes off the terminal.
func TestCloseWithWhatNobodyReads(t *testing.T) {
	me, tty := person(t)
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	child := reopen(t, s.Child().Name())
	if _, err := xterm.MakeRaw(int(child.Fd())); err != nil {
		t.Fatal(err)
	}
	forward(t, s)
	flood := bytes.Repeat([]byte("x"), 1<<20)
	for _, f := range []*os.File{me, reopen(t, s.Child().Name())} {
		f.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		f.Write(flood)
	}
	for _, end := range []func() error{
		func() error { return s.Takeover(func(*os.File) error { return nil }) },
		s.Close,
	} {
		done := make(chan error, 1)
		go func() { done <- end() }()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the session does not end")
		}
	}
}

func forward(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Forward(); err != nil {
		t.Fatal(err)
	}
}

// reopen opens a terminal so that reads can have a deadline.
func reopen(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|0x100|0x800, 0) // O_NOCTTY|O_NONBLOCK
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestSessionRestoresTheTerminal(t *testing.T) {
	_, tty := person(t)
	f := reopen(t, tty)
	before, err := xterm.GetState(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := xterm.GetState(int(f.Fd())); *now != *before {
		t.Error("the terminal is not in its own mode before Forward")
	}
	forward(t, s)
	if now, _ := xterm.GetState(int(f.Fd())); *now == *before {
		t.Error("the terminal is not raw while forwarding")
	}
	if err := s.Takeover(func(*os.File) error {
		if now, _ := xterm.GetState(int(f.Fd())); *now == *before {
			t.Error("the terminal is not raw during a takeover: keys would be shown and obeyed")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if now, _ := xterm.GetState(int(f.Fd())); *now == *before {
		t.Error("the terminal is not raw after a takeover")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if now, _ := xterm.GetState(int(f.Fd())); *now != *before {
		t.Error("Close did not restore the terminal")
	}
}

func TestTakeoverIsExclusive(t *testing.T) {
	me, tty := person(t)
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	child := reopen(t, s.Child().Name())
	if _, err := xterm.MakeRaw(int(child.Fd())); err != nil {
		t.Fatal(err)
	}
	child = reopen(t, s.Child().Name())
	forward(t, s)
	err = s.Takeover(func(own *os.File) error {
		read(t, me, "\x1b[2J\x1b[H") // a cleared screen
		child.WriteString("while you were asked")
		silent(t, me)
		me.WriteString("yes\n")
		read(t, own, "yes")
		silent(t, child)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read(t, me, "while you were asked") // late, not lost
	me.WriteString("to the sandbox")
	read(t, child, "to the sandbox")
}
