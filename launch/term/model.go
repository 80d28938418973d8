package term

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// model knows what is on a screen, so that it can be painted again: on the
// alternate one after somebody else used the terminal, which keeps the main one
// meanwhile, and on both where there may be no terminal; see Virtual. It follows at its own
// pace, beside the output; where it falls behind too far it gives up, until
// the next program takes the screen.
type model struct {
	cols, rows int
	answers    io.Writer // who gets what an emulator answers to questions; nil: nobody

	mu      sync.Mutex
	change  sync.Cond
	todo    []task
	size    int // bytes in todo
	busy    bool
	lost    bool
	closed  bool
	running bool

	emu   *vt.Emulator
	saved uv.Position // where the sandbox saved its cursor
}

// task is one thing for the model to do.
type task struct {
	enter  bool // a new screen begins with draw
	leave  bool
	draw   []byte
	save   bool
	resize bool
}

// behindMax is how much output, in bytes, the model may have to catch up with:
// a second or two of its work.
const behindMax = 4 << 20

// catchUp is how long it may take to do so when its screen is asked for.
const catchUp = time.Second

func newModel(cols, rows int) *model {
	m := &model{cols: cols, rows: rows}
	m.change.L = &m.mu
	return m
}

func (m *model) enter(state []byte) {
	m.mu.Lock()
	m.todo, m.size, m.lost = nil, 0, false
	m.mu.Unlock()
	m.add(task{enter: true, draw: append([]byte(nil), state...)})
}

func (m *model) leave()        { m.add(task{leave: true}) }
func (m *model) draw(b []byte) { m.add(task{draw: append([]byte(nil), b...)}) }
func (m *model) save()         { m.add(task{save: true}) }

func (m *model) resize(cols, rows int) {
	m.mu.Lock()
	m.cols, m.rows = cols, rows
	m.mu.Unlock()
	m.add(task{resize: true})
}

func (m *model) add(t task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost && !t.leave || m.closed {
		return
	}
	if m.size += len(t.draw); m.size > behindMax {
		m.todo, m.size, m.lost = nil, 0, true
		return
	}
	m.todo = append(m.todo, t)
	if !m.running {
		m.running = true
		go m.run()
	}
	m.change.Broadcast()
}

// run does what there is to do, until close.
func (m *model) run() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		for len(m.todo) == 0 && !m.closed {
			m.change.Wait()
		}
		if m.closed {
			m.drop()
			return
		}
		t := m.todo[0]
		m.todo, m.size, m.busy = m.todo[1:], m.size-len(t.draw), true
		cols, rows := m.cols, m.rows
		m.mu.Unlock()
		ok := m.do(t, cols, rows)
		m.mu.Lock()
		m.busy = false
		if !ok {
			m.todo, m.size, m.lost = nil, 0, true
		}
		m.change.Broadcast()
	}
}

// do does one task. What the sandbox prints must not be able to end lazaret,
// whatever an emulator makes of it.
func (m *model) do(t task, cols, rows int) (ok bool) {
	defer func() {
		if recover() != nil {
			m.drop()
			ok = false
		}
	}()
	switch {
	case t.enter:
		m.drop()
		m.emu = vt.NewEmulator(cols, rows)
		m.emu.SetScrollbackSize(1) // it takes 0 for thousands
		// It answers questions, and stands still until the answers are read.
		to := m.answers
		if to == nil {
			to = io.Discard
		}
		go io.Copy(to, m.emu)
		m.saved = uv.Position{}
		m.emu.Write(t.draw)
	case t.leave:
		m.drop()
	case m.emu == nil:
	case t.resize:
		m.emu.Resize(cols, rows)
	case t.save:
		m.saved = m.emu.CursorPosition()
	default:
		feed(m.emu, t.draw)
	}
	return true
}

// clusterMax bounds what a cell may hold, in bytes: an emulator keeps every mark
// that is put on a letter, and a sandbox can print marks without end.
const clusterMax = 128

// feed writes to an emulator, which takes what is in one write for what may be
// one character, in parts.
func feed(w io.Writer, b []byte) {
	start, run := 0, 0 // run: bytes beyond ASCII in a row
	for i, c := range b {
		switch {
		case c < utf8.RuneSelf:
			run = 0
		case run >= clusterMax && utf8.RuneStart(c):
			w.Write(b[start:i])
			start, run = i, 1
		default:
			run++
		}
	}
	w.Write(b[start:])
}

func (m *model) drop() {
	if m.emu == nil {
		return
	}
	// Ends the reading of its answers. Its own Close writes what that reads.
	if p, ok := m.emu.InputPipe().(io.Closer); ok {
		p.Close()
	}
	m.emu = nil
}

func (m *model) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.change.Broadcast()
}

// paint gives what draws the screen, on a terminal in its first state, and
// where the cursor and the saved one are. Not ok means that it is not known.
func (m *model) paint(dst []byte) (out []byte, at, saved uv.Position, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The person waits too: what takes an emulator longer is drawn again by
	// the program.
	until := time.Now().Add(catchUp)
	defer time.AfterFunc(catchUp, m.change.Broadcast).Stop()
	for (len(m.todo) > 0 || m.busy) && !m.lost && !m.closed && time.Now().Before(until) {
		m.change.Wait()
	}
	if len(m.todo) > 0 || m.busy {
		m.todo, m.size, m.lost = nil, 0, true
	}
	if m.lost || m.emu == nil {
		return dst, at, saved, false
	}
	dst = append(dst, "\x1b[?7l\x1b[m\x1b[2J"...)
	for y := range m.emu.Height() {
		dst = m.line(dst, y)
	}
	return append(dst, "\x1b[?7h"...), m.emu.CursorPosition(), m.saved, true
}

// line draws one line, which stands on a cleared screen.
func (m *model) line(dst []byte, y int) []byte {
	last := uv.Style{}
	link := uv.Link{}
	moved := false // the cursor is elsewhere
	for x := 0; x < m.emu.Width(); x++ {
		c := m.emu.CellAt(x, y)
		if c == nil || c.Width == 0 && c.Content == "" || (c.Content == " " || c.Content == "") && c.Style.IsZero() && c.Link == (uv.Link{}) {
			moved = false
			continue
		}
		if !moved {
			dst = position(dst, uv.Position{X: x, Y: y})
			moved = true
		}
		if !c.Style.Equal(&last) {
			dst = append(dst, c.Style.Diff(&last)...)
			last = c.Style
		}
		if c.Link != link {
			link = c.Link
			dst = append(dst, "\x1b]8;"+link.Params+";"+link.URL+"\x1b\\"...)
		}
		text := c.Content
		if text == "" {
			text = " "
		}
		dst = append(dst, strings.Map(visible, text)...)
		if c.Width > 1 {
			x += c.Width - 1
		}
	}
	if link != (uv.Link{}) {
		dst = append(dst, "\x1b]8;;\x1b\\"...)
	}
	if !last.IsZero() {
		dst = append(dst, "\x1b[m"...)
	}
	return dst
}

// visible leaves controls out: what is in a cell was only drawn, but it is the
// emulator who says so.
func visible(r rune) rune {
	if r < 0x20 || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}

func position(dst []byte, p uv.Position) []byte {
	dst = strconv.AppendInt(append(dst, "\x1b["...), int64(p.Y+1), 10)
	dst = strconv.AppendInt(append(dst, ';'), int64(p.X+1), 10)
	return append(dst, 'H')
}
