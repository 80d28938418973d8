package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// live shows a board on a terminal while it changes, below what was written
// before, and takes it away from under what else is written there. It is the
// writer for that. Where there is no terminal, it only writes.
type live struct {
	to    io.Writer
	tty   *os.File // nil: nothing is shown
	look  func() style
	moves bool // what was drawn can be drawn again
	now   func() time.Time
	// shared tells whether the sandbox says when it begins to print; see first.
	shared bool

	mu    sync.Mutex
	began time.Time
	board *board
	on    bool    // the board is on the screen, and stays up to date
	drawn []drawn // what of it is on the screen, above the cursor
	as    int     // how many columns there were
	held  bool    // what will print is being made, and waits for its network
	told  bool    // that it was interrupted
	over  bool    // nothing more is shown
	ours  bool    // the sandbox prints no more
	owed  bool    // the sandbox has printed: what follows begins on a line of its own
	end   chan struct{}
	ended sync.WaitGroup
	later *time.Timer
}

// newLive shows nothing yet. It may be nil: nothing is ever shown.
func (d *deps) newLive(w io.Writer, shared bool) *live {
	l := &live{to: w, tty: terminalOf(w), now: time.Now, shared: shared, moves: !d.dumb()}
	if l.tty != nil {
		l.look = func() style { return d.style(l.tty) }
	}
	return l
}

// show begins with a board.
func (l *live) show(b *board) {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board, l.began = b, l.now()
	l.begin()
}

// begin keeps the board up to date until stop.
func (l *live) begin() {
	l.on = true
	if !l.moves {
		return
	}
	l.draw()
	l.end = make(chan struct{})
	l.ended.Add(1)
	go func(end chan struct{}) {
		defer l.ended.Done()
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				l.mu.Lock()
				l.draw()
				l.mu.Unlock()
			}
		}
	}(l.end)
}

// draw brings the screen up to date, with one write.
func (l *live) draw() {
	if !l.on || !l.moves {
		return
	}
	s := l.look()
	frame := l.board.frame(l.now(), s, true)
	// A screen that is too low cannot be gone back on.
	if _, rows, err := term.GetSize(int(l.tty.Fd())); err == nil && rows > 0 && len(frame) >= rows {
		return
	}
	var b bytes.Buffer
	l.back(&b, s.columns)
	put(&b, frame)
	b.WriteString("\x1b[J")
	l.drawn, l.as = frame, s.columns
	l.tty.Write(b.Bytes())
}

// put writes lines, for a terminal in whatever mode.
func put(b *bytes.Buffer, lines []drawn) {
	for _, d := range lines {
		b.WriteString(d.text + "\x1b[K\r\n")
	}
}

// back goes to where the board begins. What no longer fits on a line was broken
// up by the terminal.
func (l *live) back(b *bytes.Buffer, columns int) {
	up := 0
	for _, d := range l.drawn {
		up++
		if columns > 0 && columns < l.as {
			up += max(d.width-1, 0) / columns
		}
	}
	b.WriteByte('\r')
	if up > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(up) + "A")
	}
	l.drawn = nil
}

// Write writes above the board, or where there is none.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tty == nil {
		return l.to.Write(p)
	}
	var b bytes.Buffer
	if l.on && l.moves {
		l.back(&b, l.look().columns)
		b.WriteString("\x1b[J")
	} else {
		l.pay(&b)
	}
	b.WriteString(l.folded(string(p)))
	_, err := l.tty.Write(b.Bytes())
	l.draw()
	return len(p), err
}

// folded is a text for the terminal: what is longer than a line is folded, and
// since a line feed does not return in raw mode, that is made explicit.
func (l *live) folded(text string) string {
	return foldLines(strings.ReplaceAll(text, "\r\n", "\n"), l.look().columns, "\r\n")
}

// pay begins a line where the sandbox may have left one unfinished.
func (l *live) pay(b *bytes.Buffer) {
	if l.owed && l.ours {
		b.WriteString("\r\n")
		l.owed = false
	}
}

// settle leaves the board on the screen as it is, for good. Where something else
// is about to print there, a line stays free.
func (l *live) settle(gap bool) {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	defer l.stop()
	defer l.mu.Unlock()
	if !l.on {
		return
	}
	l.on = false
	s := l.look()
	var b bytes.Buffer
	if l.moves {
		l.back(&b, s.columns)
	}
	for _, d := range l.board.frame(l.now(), s, false) {
		b.WriteString(d.text)
		if l.moves {
			b.WriteString("\x1b[K")
		}
		b.WriteString("\r\n")
	}
	if l.moves {
		b.WriteString("\x1b[J")
	}
	if gap {
		b.WriteString("\r\n")
	}
	l.tty.Write(b.Bytes())
}

// stop ends what keeps the board up to date. Called without the lock.
func (l *live) stop() {
	l.mu.Lock()
	end, later := l.end, l.later
	l.end, l.later = nil, nil
	l.mu.Unlock()
	if later != nil {
		later.Stop()
	}
	if end != nil {
		close(end)
		l.ended.Wait()
	}
}
