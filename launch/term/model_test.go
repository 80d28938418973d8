package term

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// A program that prints faster than its screen can be followed, or what takes
// for ever to follow, loses the copy of its screen and nothing else: it is made
// to draw again.
func TestModelFallsBehind(t *testing.T) {
	for name, flood := range map[string][]byte{
		"much":      bytes.Repeat([]byte("0123456789abcdef"), behindMax/8),
		"expensive": bytes.Repeat([]byte("x\x1b[4096b\x1b[65535L\x1b[65535P"), 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(200, 60)
			defer m.close()
			m.enter(nil)
			for len(flood) > 0 {
				n := min(len(flood), 4096)
				m.draw(flood[:n])
				flood = flood[n:]
			}
			begin := time.Now()
			_, _, _, ok := m.paint(nil)
			if d := time.Since(begin); d > 3*catchUp {
				t.Errorf("it took %v", d)
			}
			if name == "much" && ok {
				t.Error("a screen is given that cannot be known")
			}
			m.enter(nil) // the next program
			m.draw([]byte("fresh"))
			for range 100 {
				if out, _, _, ok := m.paint(nil); ok && bytes.Contains(out, []byte("fresh")) {
					return
				}
				m.enter(nil)
				m.draw([]byte("fresh"))
			}
			t.Error("the next program's screen is not followed")
		})
	}
}

// A screen that was lost is drawn again by the program, which is told of a
// change of its size.
func TestLostScreenIsDrawnAgain(t *testing.T) {
	w, tty := openWindow(t)
	s, child := sandboxed(t, tty)
	defer s.Close()
	child.WriteString("\x1b[?1049h\x1b[2Jready")
	w.screen("ready")
	const want = "40x10 40x9 40x10"
	got := ""
	for range 10 { // whoever looks at sizes on a busy machine may miss one
		if got = s.sizes(t, func() {
			s.model.mu.Lock()
			s.model.lost = true
			s.model.mu.Unlock()
			if err := s.Takeover(func(tty *os.File) error {
				tty.WriteString("a question")
				w.screen("a question")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}); got == want {
			return
		}
	}
	t.Errorf("the sandbox's terminal had the sizes %s, want %s", got, want)
}

// sizes are those that the sandbox's terminal has while f runs and for a while
// after, one after the other.
func (s *Session) sizes(t *testing.T, f func()) string {
	t.Helper()
	var seen []string
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			size, err := getSize(s.Child())
			if err == nil && (len(seen) == 0 || seen[len(seen)-1] != size) {
				seen = append(seen, size)
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	time.Sleep(20 * time.Millisecond) // until somebody looks
	f()
	time.Sleep(400 * time.Millisecond)
	close(stop)
	<-done
	return strings.Join(seen, " ")
}

// Marks without end on one letter, and lines without end, take no more memory
// than a screen does.
func TestModelIsBounded(t *testing.T) {
	m := newModel(80, 24)
	defer m.close()
	m.enter(nil)
	marks := append([]byte("a"), bytes.Repeat([]byte("\u0301"), 3_000)...)
	for range 60 {
		m.draw([]byte("line\r\n\n"))
	}
	for range 60 {
		m.draw(marks)
	}
	caughtUp(m)
	out, _, _, ok := m.paint(nil)
	if !ok {
		t.Fatal("the screen was lost")
	}
	if most := 80 * 24 * 2 * clusterMax; len(out) > most {
		t.Errorf("%d bytes draw the screen", len(out))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for y := range m.emu.Height() {
		for x := range m.emu.Width() {
			if c := m.emu.CellAt(x, y); c != nil && len(c.Content) > 2*clusterMax {
				t.Fatalf("a cell holds %d bytes", len(c.Content))
			}
		}
	}
	if n := m.emu.ScrollbackLen(); n > 1 {
		t.Errorf("%d lines that left the screen are kept", n)
	}
}

// caughtUp waits until a model has drawn what it was told to, however long that
// takes: one that is asked before gives up after a second.
func caughtUp(m *model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.todo) > 0 || m.busy {
		m.change.Wait()
	}
}
