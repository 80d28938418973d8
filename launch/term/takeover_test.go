package term

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	xterm "golang.org/x/term"
)

// window is a person's terminal that answers what it is asked.
type window struct {
	t    *testing.T
	f    *os.File // our end of its pty
	mu   sync.Mutex
	slow atomic.Int64 // how long it takes to answer
	emu  *vt.Emulator
	got  bytes.Buffer // all it was sent
}

func openWindow(t *testing.T) (w *window, tty string) {
	me, tty := person(t)
	pty.Setsize(me, &pty.Winsize{Rows: 10, Cols: 40})
	w = &window{t: t, f: me, emu: vt.NewEmulator(40, 10)}
	answers := make(chan []byte, 1000)
	go func() {
		defer close(answers)
		for {
			buf := make([]byte, 4096)
			n, err := w.emu.Read(buf)
			if err != nil {
				return
			}
			answers <- buf[:n]
		}
	}()
	go func() { // they take their time
		for b := range answers {
			time.Sleep(time.Duration(w.slow.Load()))
			me.Write(b)
		}
	}()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := me.Read(buf)
			w.mu.Lock()
			w.emu.Write(buf[:n])
			w.got.Write(buf[:n])
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w, tty
}

// screen is what the window shows, once it shows want.
func (w *window) screen(want string) string {
	w.t.Helper()
	for range 5000 {
		w.mu.Lock()
		s := w.emu.Render()
		w.mu.Unlock()
		if strings.Contains(s, want) {
			time.Sleep(20 * time.Millisecond)
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.emu.Render() + "\ncursor at " + w.emu.CursorPosition().String()
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("no %q on the screen", want)
	return ""
}

// becomes waits until the window shows just that, which screen gave.
func (w *window) becomes(before string) {
	w.t.Helper()
	var is string
	for range 500 {
		w.mu.Lock()
		is = w.emu.Render() + "\ncursor at " + w.emu.CursorPosition().String()
		w.mu.Unlock()
		if is == before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Errorf("the screen is another:\n%q\nwas\n%q", is, before)
}

func (w *window) sent() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.String()
}

// sandboxed is a session in that window, with the sandbox's end of its pty raw.
func sandboxed(t *testing.T, tty string) (*Session, *os.File) {
	t.Helper()
	s, err := Open(tty, Options{Title: "lazaret: ", UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	child := reopen(t, s.Child().Name())
	if _, err := xterm.MakeRaw(int(child.Fd())); err != nil {
		t.Fatal(err)
	}
	child = reopen(t, s.Child().Name())
	forward(t, s)
	return s, child
}

// fullScreen is a program that has taken the screen and most modes.
const fullScreen = "\x1b[?1049h\x1b[2J\x1b[?1h\x1b=\x1b[?25l\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[>4;2m\x1b[>5u" +
	"\x1b[3;8r\x1b[1;1H\x1b[1;31mred\x1b[0;44m on blue   \x1b[m and \x1b[4munderlined\x1b[m" +
	"\x1b[5;3H日本語 wide\x1b[6;38Hend\x1b[10;1H\x1b[7mstatus line, forty columns wide or so ..\x1b[m\x1b]11;#102030\x07\x1b]4;1;#000\x07" +
	"\x1b[4;4H\x1b7\x1b[38;5;200;1m\x1b(0\x1b[7;11H"

func TestTakeoverKeepsTheScreen(t *testing.T) {
	for name, program := range map[string]string{
		"alternate": fullScreen + "\x1b(Bready",
		"origin":    fullScreen + "\x1b(B\x1b[?6h\x1b[2;2Hready",
		"main":      "one\r\ntwo\r\n\x1b[1;32mthree\x1b[m\r\n\x1b[2;9r\x1b[4;4H\x1b[35mready",
	} {
		t.Run(name, func(t *testing.T) {
			w, tty := openWindow(t)
			s, child := sandboxed(t, tty)
			child.WriteString(program)
			before := w.screen("ready")
			modes := s.filter.modes
			if err := s.Takeover(func(tty *os.File) error {
				tty.WriteString("\x1b[?1049h\x1b[H\x1b[2Ja question\x1b[?1004h\x1b[?2004h\x1b[5;5H")
				w.screen("a question")
				if strings.Contains(w.screen("a question"), "ready") {
					t.Error("the sandbox's screen is not gone")
				}
				_, err := tty.WriteString("\x1b[?1004l\x1b[?2004l\x1b[?1049l")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			w.becomes(before)
			// What comes next continues in the same pen and place.
			child.WriteString("\x1b[1Dand\x1b8*")
			next := w.screen("*")
			w2, tty2 := openWindow(t)
			s2, child2 := sandboxed(t, tty2)
			child2.WriteString(program)
			w2.screen("ready")
			child2.WriteString("\x1b[1Dand\x1b8*")
			if want := w2.screen("*"); next != want && name != "main" {
				t.Errorf("it goes on with\n%q\nwant\n%q", next, want)
			}
			// The terminal was told everything again.
			sent := w.sent()
			sent = sent[strings.LastIndex(sent, "\x1b[?1049h\x1b[<u"):]
			var again Filter
			again.Append(nil, []byte(sent))
			for _, n := range []int{1, 25, 1002, 1004, 1006, 2004, 6} {
				if got, want := again.modes.on(n), modes.on(n); name != "main" && got != want {
					t.Errorf("mode %d is %v after, was %v", n, got, want)
				}
			}
			if again.modes.colours["11"] != modes.colours["11"] || again.modes.colours["4;1"] != modes.colours["4;1"] {
				t.Errorf("colours are %v, were %v", again.modes.colours, modes.colours)
			}
			s.Close()
			s2.Close()
		})
	}
}

// A question is not shown in colours that the sandbox chose.
func TestTakeoverIsInTheTerminalsOwnColours(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	defer s.Close()
	child.WriteString("\x1b]10;#000000\x07\x1b]11;#000000\x07\x1b]4;2;#000\x07\x1b[30;40m\x1b[?5h\x1b[8mready")
	w.screen("ready")
	s.Takeover(func(tty *os.File) error {
		for _, want := range []string{"\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]104\x1b\\", "\x1b[?5l", "\x1b[m"} {
			for i := 0; !strings.Contains(w.sent(), want); i++ {
				if i == 500 {
					t.Fatalf("the terminal was not sent %q", want)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		return nil
	})
}

// What was typed, and what the terminal answers, before the question can be
// seen goes to the sandbox; what is typed to the question does not.
func TestTakeoverAndTypeAhead(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	defer s.Close()
	child.WriteString("\x1b[6nready")
	w.screen("ready")
	read(t, child, "\x1b[1;1R")
	w.f.WriteString("typed before")
	read(t, child, "typed before")
	err := s.Takeover(func(tty *os.File) error {
		w.f.WriteString("y")
		b := make([]byte, 8)
		n, err := tty.Read(b)
		if string(b[:n]) != "y" {
			t.Errorf("read %q", b[:n])
		}
		// An answer that comes late, and a key that nobody read.
		tty.WriteString("\x1b[c\x1b[6n")
		w.f.WriteString("late")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	silent(t, child)
	w.f.WriteString("after")
	read(t, child, "after")
}

// After the end, the terminal is as it was, and says nothing more.
func TestCloseResets(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	w.slow.Store(int64(60 * time.Millisecond)) // as over a network
	child.WriteString("shell\r\n" + fullScreen + "\x1b(Bready\x1b]0;evil\x07\x1b[6n\x1b[c\x1b[c\x1b[6n")
	w.screen("ready")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s := w.screen("shell"); strings.Contains(s, "ready") {
		t.Errorf("the alternate screen is still shown: %q", s)
	}
	var f Filter
	f.Append(nil, []byte(w.sent()))
	if f.modes.touched() && !f.modes.titled {
		t.Errorf("left: %q", f.modes.end(nil))
	}
	own := reopen(t, tty)
	if _, err := xterm.MakeRaw(int(own.Fd())); err != nil { // or only a whole line would be read
		t.Fatal(err)
	}
	time.Sleep(8 * time.Duration(w.slow.Load()))
	silent(t, reopen(t, tty))
}

// A sandbox that asks what lazaret asks itself leaves no answer behind: not for
// the shell, and not for the keys to a question.
func TestAnswersThatAreDue(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	w.slow.Store(int64(4 * time.Millisecond))
	child.WriteString("\x1b[5n")
	read(t, child, "\x1b[?0n") // one that has been answered is not waited for
	child.WriteString(strings.Repeat("\x1b[5n\x1b[6n", 8) + "asked")
	w.screen("asked")
	start := time.Now()
	err := s.Takeover(func(tty *os.File) error {
		tty.SetReadDeadline(time.Now().Add(30 * time.Duration(w.slow.Load())))
		b := make([]byte, 100)
		if n, _ := tty.Read(b); n > 0 {
			t.Errorf("keys that nobody typed: %q", b[:n])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("taken over within %v", time.Since(start))
	child.WriteString(strings.Repeat("\x1b[6n\x1b[5n", 8) + "again")
	w.screen("again")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	own := reopen(t, tty)
	if _, err := xterm.MakeRaw(int(own.Fd())); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Duration(w.slow.Load()))
	silent(t, reopen(t, tty))
}

// An answer to lazaret's own question that comes when nobody waits for it any
// more is not left behind either.
func TestAnswersThatAreLate(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	child.WriteString("begins")
	w.screen("begins")
	w.slow.Store(int64(askFor + askFor/50))
	if err := s.Takeover(func(*os.File) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Takeover(func(*os.File) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	own := reopen(t, tty)
	if _, err := xterm.MakeRaw(int(own.Fd())); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Duration(w.slow.Load()))
	silent(t, reopen(t, tty))
}

// Where an answer was late and a question to the person took it for keys, what
// follows does not go on waiting for it.
func TestAnswerThatIsTaken(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	child.WriteString("begins")
	w.screen("begins")
	takeover := func(f func(tty *os.File) error) time.Duration {
		start := time.Now()
		if err := s.Takeover(f); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	w.slow.Store(int64(askFor + askFor/50))
	took := takeover(func(tty *os.File) error {
		w.slow.Store(int64(0))
		b := make([]byte, 100)
		n, err := tty.Read(b)
		if !statusReport.Match(b[:n]) {
			t.Errorf("read %q", b[:n])
		}
		return err
	})
	var after []time.Duration
	for range 4 {
		after = append(after, takeover(func(*os.File) error { return nil }))
	}
	t.Logf("%v, then %v", took, after)
	if slices.Min(after) >= askFor {
		t.Errorf("each still waits: %v", after)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	silent(t, reopen(t, tty))
}

// TestReports: also those that come in parts are counted.
func TestReports(t *testing.T) {
	const said = "x\x1b[0n\x1b[3n\x1b[?0n\x1b[1;1R\x1b\x1b[0n\x1b[0"
	for size := 1; size < len(said); size++ {
		var r reports
		for i := 0; i < len(said); i += size {
			r.feed([]byte(said[i:min(i+size, len(said))]))
		}
		if r.n != 4 {
			t.Errorf("%d bytes at a time: %d", size, r.n)
		}
	}
}

// TestQuestions: however a sandbox writes the question and wherever what is shown
// is cut, a window counts what the filter does.
func TestQuestions(t *testing.T) {
	const asks = "x\x1b[5n\x1b[05nyy\x1b[0005n\x1b[6n\x1b[5n\x1b[5n\x1b[15n"
	var f Filter
	shown := f.Append(nil, []byte(asks))
	if f.status != 5 {
		t.Fatalf("%d of 5", f.status)
	}
	for size := 1; size <= len(shown); size++ {
		var q questions
		for i := 0; i < len(shown); i += size {
			q.feed(shown[i:min(i+size, len(shown))])
		}
		if q.n != f.status {
			t.Errorf("%d bytes at a time: %d", size, q.n)
		}
	}
}

// What the person's shell prints next stands where the sandbox left off.
func TestCloseKeepsTheCursor(t *testing.T) {
	for _, end := range []string{"", "\x1b[1;10r\x1b[4;1H", "\x1b[?69h\x1b[2;9s\x1b[4;1H", "\x1b[?1049h\x1b[1;10r\x1b[5;5Hx"} {
		w, tty := openWindow(t)
		s, child := sandboxed(t, tty)
		child.WriteString("one\r\ntwo\r\nthree\r\n" + end)
		for range 5000 {
			if strings.Contains(w.sent(), "three\r\n"+end) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		reopen(t, tty).WriteString("$ ")
		if got := w.screen("$ "); !strings.Contains(got, "three") || !strings.HasSuffix(got, "cursor at (2,3)") {
			t.Errorf("after %q: %q", end, got)
		}
	}
}

func getSize(f *os.File) (string, error) {
	size, err := pty.GetsizeFull(f)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%dx%d", size.Cols, size.Rows), nil
}
