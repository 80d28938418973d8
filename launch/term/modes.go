package term

import (
	"fmt"
	"strconv"
)

// modes is what a sandbox has made of the terminal that outlasts what it drew:
// to be undone before somebody else uses the terminal, and done again after.
// The zero value is a terminal as it is when a window opens.
type modes struct {
	alt       bool   // the alternate screen is shown
	changed   uint64 // private modes, by their place in privateModes, that are not as they begin
	insert    bool   // 4
	newline   bool   // 20
	keypad    bool
	shifted   bool    // the other character set is in use
	charsets  [4]byte // 0: ASCII
	region    [2]int  // rows that scroll; 0: all
	margins   [2]int
	cursor    int // its form
	otherKeys int
	kitty     kittyKeys
	colours   colours
	pen       pen
	saved     bool // the terminal keeps a cursor that the sandbox will ask for
	savedPen  pen
	link      string // open: parameters;target
	titled    bool   // the terminal keeps the person's own title
	title     string // what the window was called last
	tabs      bool   // where tabs stop was changed
	old       traces // of what was, before a reset that may not have undone it
}

// privateModes are the modes (DECSET) that a sandbox may set, with what each
// is when a window opens. Those left out would lock the keyboard, leave the
// language that the filter reads (2: VT52), hang until an answer comes (1001),
// or cannot be put back since nobody knows what they were.
var privateModes = []struct {
	n   int
	set bool
}{
	{n: 1},                                                                              // cursor keys of an application
	{n: 5},                                                                              // reverse video
	{n: 6},                                                                              // rows counted from the region's first
	{n: 7, set: true},                                                                   // wrap at the last column
	{n: 9}, {n: 1000}, {n: 1002}, {n: 1003}, {n: 1005}, {n: 1006}, {n: 1015}, {n: 1016}, // mouse
	{n: 12},            // the cursor blinks
	{n: 25, set: true}, // the cursor is shown
	{n: 45},            // backspace wraps
	{n: 66},            // keypad of an application
	{n: 69},            // left and right margins
	{n: 80}, {n: 8452}, // where pictures go
	{n: 1004}, // focus
	{n: 2004}, // bracketed paste
	{n: 2026}, // drawn at once when it ends
	{n: 2027}, // graphemes
	{n: 2031}, // light and dark are told
	{n: 2048}, // sizes are told
}

// softReset are the private modes that a soft reset (DECSTR) ends.
var softReset = func() (bits uint64) {
	for _, n := range []int{1, 6, 7, 25, 66, 69} {
		bit, _, _ := privateMode(n)
		bits |= bit
	}
	return bits
}()

func privateMode(n int) (bit uint64, set, ok bool) {
	for i, m := range privateModes {
		if m.n == n {
			return 1 << i, m.set, true
		}
	}
	return 0, false, false
}

// on tells whether a private mode is set.
func (m *modes) on(n int) bool {
	bit, set, _ := privateMode(n)
	return set != (m.changed&bit != 0)
}

func (m *modes) set(n int, on bool) bool {
	bit, def, ok := privateMode(n)
	m.changed &^= bit
	if on != def {
		m.changed |= bit
	}
	return ok
}

func (m *modes) setANSI(n int, on bool) {
	if n == 4 {
		m.insert = on
	} else {
		m.newline = on
	}
}

// reset is what a reset (RIS, DECSTR) leaves. Terminals differ in what that
// undoes, so what was is undone again later, whether it is still there or not.
func (m *modes) reset() {
	*m = modes{titled: m.titled, title: m.title, old: m.traces()}
}

// setPrivate sets or resets one private mode, if a sandbox may.
func (f *Filter) setPrivate(n int, on bool) {
	if f.Mute && n != 7 && n != 25 {
		return
	}
	final := byte('l')
	if on {
		final = 'h'
	}
	switch n {
	case 47, 1047, 1049:
		switch {
		case on && f.modes.alt:
			return // terminals differ in what that does
		case on:
			f.drawn()
		case !on:
			f.leaveAlt()
		}
	case 1048:
		if on {
			f.saveCursor()
		} else {
			f.modes.saved = false
		}
	default:
		if !f.modes.set(n, on) {
			return
		}
	}
	f.out = strconv.AppendInt(append(f.out, "\x1b[?"...), int64(n), 10)
	f.out = append(f.out, final)
	if n != 47 && n != 1047 && n != 1049 {
		return
	}
	f.pending = len(f.out) // each screen has somebody of its own who follows it
	if on {
		f.modes.alt, f.modes.saved = true, false
		if f.screen != nil {
			f.screen.enter(f.modes.redo(nil))
		}
	}
}

func (f *Filter) leaveAlt() {
	if !f.modes.alt {
		return
	}
	f.drawn()
	f.modes.alt, f.modes.saved = false, false
	if f.screen != nil {
		f.screen.leave()
	}
}

// undo gives what makes the terminal as it was when the sandbox began, but for
// what is drawn, which screen is shown, and where the cursor is.
func (m *modes) undo(dst []byte) []byte { return m.traces().undo(dst) }

// redo makes the terminal again what the sandbox had made of it. It does not
// hold back what is drawn (2026): who does that for longer than a moment is
// not waited for by any terminal.
func (m *modes) redo(dst []byte) []byte {
	if m.on(69) && m.margins != [2]int{} {
		dst = append(dst, "\x1b[?69h"...)
		dst = fmt.Appendf(dst, "\x1b[%d;%ds", max(m.margins[0], 1), m.margins[1])
	}
	if r := m.region; r != [2]int{} {
		dst = fmt.Appendf(dst, "\x1b[%d;", max(r[0], 1))
		if r[1] > 0 {
			dst = strconv.AppendInt(dst, int64(r[1]), 10)
		}
		dst = append(dst, 'r')
	}
	for i, p := range privateModes {
		if m.changed&(1<<i) != 0 && p.n != 2026 {
			dst = fmt.Appendf(dst, "\x1b[?%d%c", p.n, letter(!p.set))
		}
	}
	if m.insert {
		dst = append(dst, "\x1b[4h"...)
	}
	if m.newline {
		dst = append(dst, "\x1b[20h"...)
	}
	if m.keypad {
		dst = append(dst, "\x1b="...)
	}
	for i, c := range m.charsets {
		if c != 0 && c != 'B' {
			dst = append(dst, 0x1b, '('+byte(i), c)
		}
	}
	if m.shifted {
		dst = append(dst, 0x0e)
	}
	if m.cursor != 0 {
		dst = fmt.Appendf(dst, "\x1b[%d q", m.cursor)
	}
	if m.otherKeys != 0 {
		dst = fmt.Appendf(dst, "\x1b[>4;%dm", m.otherKeys)
	}
	dst = m.colours.redo(dst)
	if m.link != "" {
		dst = append(append(append(dst, "\x1b]8;"...), m.link...), "\x1b\\"...)
	}
	if m.pen != (pen{}) {
		dst = m.pen.append(dst)
	}
	return dst
}

// end gives what puts everything back, for good.
func (m *modes) end(dst []byte) []byte {
	if m.alt {
		dst = m.kitty.undo(dst, true)
		dst = m.undo(dst)
		dst = append(dst, "\x1b[?1049l"...)
	} else if t := m.traces(); t.origin() {
		// Wherever the cursor is put, this moves it away again.
		dst = append(m.undo(dst), "\x1b[999;1H"...)
	} else if t.region || t.margins() {
		// These move the cursor, which is to stay: it is where the person's
		// shell goes on.
		dst = append(dst, "\x1b7"...)
		dst = m.undo(dst)
		dst = append(dst, "\x1b8\x1b[m"...)
	} else {
		dst = m.undo(dst)
	}
	if m.old.keys {
		dst = fmt.Appendf(dst, "\x1b[=0u\x1b[<%du", kittyMost)
	}
	dst = m.kitty.undo(dst, false)
	if m.titled {
		dst = append(dst, "\x1b[23;0t"...)
	}
	return dst
}

func letter(set bool) byte {
	if set {
		return 'h'
	}
	return 'l'
}

// touched tells whether anything is to be undone.
func (m *modes) touched() bool {
	return m.alt || m.titled || m.kitty != (kittyKeys{}) || len(m.undo(nil)) > 0
}
