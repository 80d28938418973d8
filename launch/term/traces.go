package term

import "fmt"

// traces are what of a terminal may not be as it was when the window opened.
type traces struct {
	private                            uint64 // by the modes' places in privateModes
	insert, newline, keypad, shifted   bool
	charsets                           [4]bool
	region, cursor, otherKeys, link    bool
	pen, tabs, keys                    bool
	palette, text, background, pointer bool // colours
}

// traces gives those of the modes, and of what was before a reset.
func (m *modes) traces() traces {
	t := m.old
	t.private |= m.changed
	t.insert = t.insert || m.insert
	t.newline = t.newline || m.newline
	t.keypad = t.keypad || m.keypad
	t.shifted = t.shifted || m.shifted
	for i, c := range m.charsets {
		t.charsets[i] = t.charsets[i] || c != 0 && c != 'B'
	}
	t.region = t.region || m.region != [2]int{}
	t.cursor = t.cursor || m.cursor != 0
	t.otherKeys = t.otherKeys || m.otherKeys != 0
	t.link = t.link || m.link != ""
	t.pen = t.pen || m.pen != (pen{})
	t.tabs = t.tabs || m.tabs
	t.keys = t.keys || m.kitty != (kittyKeys{})
	for k := range m.colours {
		switch k {
		case "10":
			t.text = true
		case "11":
			t.background = true
		case "12":
			t.pointer = true
		default:
			t.palette = true
		}
	}
	return t
}

// origin and margins tell of the modes that move the cursor when they end.
func (t traces) origin() bool  { return t.has(6) }
func (t traces) margins() bool { return t.has(69) }

func (t traces) has(n int) bool {
	bit, _, _ := privateMode(n)
	return t.private&bit != 0
}

// undo gives what leaves no trace.
func (t traces) undo(dst []byte) []byte {
	for i, p := range privateModes {
		if t.private&(1<<i) != 0 {
			dst = fmt.Appendf(dst, "\x1b[?%d%c", p.n, letter(p.set))
		}
	}
	for i, on := range t.charsets {
		if on {
			dst = append(dst, 0x1b, '('+byte(i), 'B')
		}
	}
	for _, u := range []struct {
		on bool
		by string
	}{
		{t.insert, "\x1b[4l"}, {t.newline, "\x1b[20l"}, {t.keypad, "\x1b>"}, {t.region, "\x1b[r"}, {t.shifted, "\x0f"},
		{t.cursor, "\x1b[0 q"}, {t.otherKeys, "\x1b[>4m"}, {t.tabs, "\x1b[?5W"}, {t.link, "\x1b]8;;\x1b\\"}, {t.pen, "\x1b[m"},
		{t.text, "\x1b]110\x1b\\"}, {t.background, "\x1b]111\x1b\\"}, {t.pointer, "\x1b]112\x1b\\"}, {t.palette, "\x1b]104\x1b\\"},
	} {
		if u.on {
			dst = append(dst, u.by...)
		}
	}
	return dst
}
