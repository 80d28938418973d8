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
	s.model.mu.Lock()
	s.model.lost = true
	s.model.mu.Unlock()
	sizes := make(chan string, 1)
	if err := s.Takeover(func(tty *os.File) error {
		tty.WriteString("a question")
		w.screen("a question")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	go func() {
		var seen []string
		for range 40 {
			size, err := getSize(s.Child())
			if err == nil && (len(seen) == 0 || seen[len(seen)-1] != size) {
				seen = append(seen, size)
			}
			time.Sleep(10 * time.Millisecond)
		}
		sizes <- strings.Join(seen, " ")
	}()
	if got := <-sizes; got != "40x9 40x10" {
		t.Errorf("the sandbox's terminal had the sizes %s", got)
	}
}
