package term

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	xterm "golang.org/x/term"
)

// virtual is a virtual terminal, and the end of it that lazaret has.
func virtual(t *testing.T) (*Virtual, *os.File) {
	t.Helper()
	v, err := NewVirtual(40, 10, Options{Title: "lazaret x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close(0) })
	if _, err := xterm.MakeRaw(int(v.pts.Fd())); err != nil {
		t.Fatal(err)
	}
	return v, v.pts
}

// watcher is a viewer that shows what it sees in a window.
func watcher(t *testing.T, name string) (*Viewer, *window, chan End) {
	t.Helper()
	w, tty := openWindow(t)
	f := reopen(t, tty)
	if _, err := xterm.MakeRaw(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	end := make(chan End, 1)
	return &Viewer{
		Name: name, Cols: 40, Rows: 10, Hurry: func() {}, Gone: func(e End) { end <- e },
		Show: func(b []byte) error { _, err := f.Write(b); return err },
	}, w, end
}

// Whoever comes late sees what somebody sees who was there all the time, and
// what is printed next goes on from there.
func TestVirtualPaintsForWhoComesLate(t *testing.T) {
	for name, program := range map[string]string{
		"alternate": "below\r\nthe rest\r\n" + fullScreen + "\x1b(Bready",
		"origin":    fullScreen + "\x1b(B\x1b[?6h\x1b[2;2Hready",
		"main":      "one\r\ntwo\r\n\x1b[1;32mthree\x1b[m\r\n\x1b[4;4H\x1b[35mready",
		"back":      "one\r\n" + fullScreen + "\x1b(B\x1b[?1049l\x1b[r\x1b[?25h\x1b[mready",
		"half":      "ready\x1b[31", // what was begun when somebody came
	} {
		t.Run(name, func(t *testing.T) {
			early, p := virtual(t)
			first, w, _ := watcher(t, "first")
			if err := early.Attach(first, false); err != nil {
				t.Fatal(err)
			}
			p.WriteString(program)
			want := w.screen("ready")

			late, p2 := virtual(t)
			p2.WriteString(program)
			second, w2, _ := watcher(t, "second")
			waitModes(t, late, early)
			if err := late.Attach(second, false); err != nil {
				t.Fatal(err)
			}
			if got := w2.screen("ready"); got != want {
				t.Errorf("who came late sees\n%q\nwant\n%q", got, want)
			}
			for _, f := range []*os.File{p, p2} {
				f.WriteString(";1m and*")
			}
			if got, want := w2.screen("*"), w.screen("*"); got != want {
				t.Errorf("it goes on with\n%q\nwant\n%q", got, want)
			}
		})
	}
}

// waitModes waits until one terminal has read as much as the other.
func waitModes(t *testing.T, a, b *Virtual) {
	t.Helper()
	state := func(v *Virtual) (s string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		return string(v.filter.modes.redo(nil)) + string(v.filter.seq)
	}
	for range 5000 {
		if state(a) == state(b) {
			time.Sleep(50 * time.Millisecond)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("they differ: %q, %q", state(a), state(b))
}

// A terminal that is left is as it was.
func TestVirtualLeavesNoTrace(t *testing.T) {
	v, p := virtual(t)
	viewer, w, end := watcher(t, "me")
	if err := v.Attach(viewer, false); err != nil {
		t.Fatal(err)
	}
	p.WriteString(fullScreen + "\x1b(Bready")
	w.screen("ready")
	v.Leave(viewer)
	if e := <-end; e != (End{}) {
		t.Errorf("it was told %+v", e)
	}
	p.WriteString("not for you")
	for range 5000 {
		if strings.Contains(w.sent(), "\x1b[23;0t") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var f Filter
	f.Append(nil, []byte(w.sent()))
	f.modes.titled = false // its own title: next
	if f.modes.touched() {
		t.Errorf("the terminal still has %+v", f.modes)
	}
	if s := w.sent(); strings.Count(s, "\x1b[22;0t") != 1 || strings.Count(s, "\x1b[23;0t") != 1 || strings.Contains(s, "not for you") {
		t.Errorf("it was sent %q", s)
	}
	if is, _ := v.Watched(); is {
		t.Error("it counts as watched")
	}
}

// What is dangerous is dropped whoever prints it: also lazaret's own filter may
// have let it through.
func TestVirtualFilters(t *testing.T) {
	v, p := virtual(t)
	viewer, w, _ := watcher(t, "me")
	if err := v.Attach(viewer, false); err != nil {
		t.Fatal(err)
	}
	for _, in := range drops {
		p.WriteString(in)
	}
	p.WriteString("ready")
	w.screen("ready")
	for _, bad := range []string{"52;", "Y3VybA", "\x1b]9", "\x1b_", "\x1b^", "\x1b[21t", "1337"} {
		if strings.Contains(w.sent(), bad) {
			t.Errorf("%q came through", bad)
		}
	}
}

func TestVirtualOneAtATime(t *testing.T) {
	v, p := virtual(t)
	first, w, gone := watcher(t, "the first")
	second, w2, gone2 := watcher(t, "the second")
	if err := v.Attach(first, false); err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if err := v.Attach(second, false); !errors.As(err, &busy) || busy.Name != "the first" {
		t.Fatalf("a second one: %v", err)
	}
	if err := v.Attach(second, true); err != nil {
		t.Fatal(err)
	}
	if e := <-gone; e != (End{Taken: "the second"}) {
		t.Errorf("the first was told %+v", e)
	}
	p.WriteString("ready")
	w2.screen("ready")
	if strings.Contains(w.sent(), "ready") {
		t.Error("the first still sees what is printed")
	}
	v.Leave(first) // is not there: ends nothing
	v.Type(first, []byte("no"))
	v.Type(second, []byte("yes"))
	read(t, reopen(t, p.Name()), "yes")
	v.Close(7)
	if e := <-gone2; e != (End{Over: true, Status: 7}) {
		t.Errorf("the second was told %+v", e)
	}
}

// A viewer that takes nothing does not hold up the sandbox.
func TestVirtualViewerThatHangs(t *testing.T) {
	v, p := virtual(t)
	stuck := make(chan struct{})
	var once sync.Once
	viewer := &Viewer{
		Name: "stuck", Cols: 40, Rows: 10, Gone: func(End) {},
		Hurry: func() { once.Do(func() { close(stuck) }) },
		Show: func(b []byte) error {
			if !strings.Contains(string(b), "ready") {
				return nil
			}
			<-stuck
			return io.ErrShortWrite
		},
	}
	if err := v.Attach(viewer, false); err != nil {
		t.Fatal(err)
	}
	p.WriteString("ready")
	other, w, _ := watcher(t, "other")
	if err := v.Attach(other, true); err != nil {
		t.Fatal(err)
	}
	p.WriteString(", steady")
	w.screen("ready, steady")
}

// A program that asks the terminal something is answered by lazaret while nobody
// is there, and by the viewer's terminal alone while somebody is.
func TestVirtualAnswers(t *testing.T) {
	v, p := virtual(t)
	me := reopen(t, p.Name())
	p.WriteString("abc\x1b[6n")
	read(t, me, "\x1b[1;4R")
	viewer := &Viewer{Name: "mute", Cols: 40, Rows: 10, Gone: func(End) {}, Hurry: func() {}, Show: func([]byte) error { return nil }}
	if err := v.Attach(viewer, false); err != nil {
		t.Fatal(err)
	}
	p.WriteString("\x1b[6n\x1b[c")
	silent(t, me)
}
