package launch

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"lazaret/launch/term"
)

// patience is more than anything here takes.
const patience = time.Minute

// far is a sandbox's terminal that can be attached to, and the end of it that the
// sandbox has: raw.
func far(t *testing.T) (*attend, *os.File) {
	t.Helper()
	screen, err := term.NewVirtual(40, 10, term.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close(0) })
	inside, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inside.Close() })
	fd := int(inside.Fd())
	if err := screen.Connect(fd); err != nil {
		t.Fatal(err)
	}
	if _, err := xterm.MakeRaw(fd); err != nil {
		t.Fatal(err)
	}
	return &attend{screen: screen}, inside
}

// sitting is a viewer, at the level of what it says.
type sitting struct {
	*Attached
	t    *testing.T
	tty  *os.File
	mode *xterm.State // of its terminal, before
	gone chan struct{}
}

// sit attaches with a terminal that is made raw.
func sit(t *testing.T, a *attend) *sitting {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); person.Close() })
	go func() { // what is shown is looked at
		buf := make([]byte, 4096)
		for _, err := person.Read(buf); err == nil; _, err = person.Read(buf) {
		}
	}()
	mode, err := xterm.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := socketPair(t)
	raw, _ := json.Marshal(attachArgs{Take: true, Cols: 40, Rows: 10})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer theirs.Close()
		a.attach(t.Context(), theirs, raw)
	}()
	if line, err := readLine(ours, questionMax); err != nil || string(line) != "{}" {
		t.Fatalf("answered %q, %v", line, err)
	}
	if err := sendFile(ours, tty); err != nil {
		t.Fatal(err)
	}
	s := &sitting{&Attached{conn: ours, dec: json.NewDecoder(ours), enc: json.NewEncoder(ours)}, t, tty, mode, gone}
	if _, err := s.Next(); err != nil { // it is attached, and its terminal taken note of
		t.Fatal(err)
	}
	if _, err := xterm.MakeRaw(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	return s
}

func socketPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// end waits for the End that the viewer is told.
func (s *sitting) end() {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, err := s.Next(); err != nil {
			if s.Attached.end == nil {
				s.t.Fatalf("no end in order within %v: %v", patience, err)
			}
			return
		}
	}
}

// back closes the connection, as the end of the process does, and tells whether
// the terminal is what it was after that.
func (s *sitting) back() bool {
	s.t.Helper()
	s.Close()
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.t.Fatal("its going is not seen")
	}
	now, err := xterm.GetState(int(s.tty.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	return *now == *s.mode
}

// TestAttachKeepsTheTerminal: a viewer that does not put its terminal back itself
// is killed, at whatever point, and the terminal is put back.
func TestAttachKeepsTheTerminal(t *testing.T) {
	t.Run("attached", func(t *testing.T) {
		a, _ := far(t)
		if !sit(t, a).back() {
			t.Error("the terminal is left raw")
		}
	})
	t.Run("parted and hanging", func(t *testing.T) {
		a, _ := far(t)
		hangs := sit(t, a)
		sit(t, a).Leave() // has taken its place
		if !hangs.back() {
			t.Error("the terminal is left raw")
		}
	})
	t.Run("parted and told", func(t *testing.T) {
		a, _ := far(t)
		s := sit(t, a)
		s.Leave()
		s.end()
		if !s.back() {
			t.Error("the terminal is left raw")
		}
	})
	// One that has put it back may be followed by whoever wants it raw.
	t.Run("in order", func(t *testing.T) {
		a, _ := far(t)
		s := sit(t, a)
		s.Leave()
		s.end()
		s.Back()
		if s.back() {
			t.Error("the terminal is touched that is somebody else's by now")
		}
	})
}

// TestAttachWhereNothingIsRead: whoever types to a program that does not read can
// leave all the same, and go.
func TestAttachWhereNothingIsRead(t *testing.T) {
	type_ := func(s *sitting) {
		s.conn.SetWriteDeadline(time.Now().Add(patience))
		for range 20 { // more than a terminal and a socket keep, at a wait each
			if err := s.Type([]byte(strings.Repeat("x", 64<<10))); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("leaves", func(t *testing.T) {
		a, _ := far(t)
		s := sit(t, a)
		type_(s)
		s.Leave()
		s.end()
	})
	t.Run("goes", func(t *testing.T) {
		a, _ := far(t)
		s := sit(t, a)
		type_(s)
		s.back()
		if busy := a.screen.Busy(); busy != "" {
			t.Errorf("%s is still attached", busy)
		}
	})
}

// TestAttachTypesBeforeItLeaves: nothing is lost of what a program takes its time
// to read, nor of what is typed last.
func TestAttachTypesBeforeItLeaves(t *testing.T) {
	a, inside := far(t)
	s := sit(t, a)
	read := func(want string) {
		t.Helper()
		got := make(chan string, 1)
		go func() {
			text := make([]byte, len(want))
			n, _ := io.ReadFull(inside, text)
			got <- string(text[:n])
		}()
		select {
		case text := <-got:
			if text != want {
				t.Errorf("what came is not what was typed: %d bytes, not %d", len(text), len(want))
			}
		case <-time.After(patience):
			t.Fatal("not all that was typed came")
		}
	}
	part := strings.Repeat("0123456789abcdef", 64)
	for range 500 {
		s.Type([]byte(part))
	}
	read(strings.Repeat(part, 500))
	s.Type([]byte("last"))
	s.Leave()
	s.end()
	read("last")
}
