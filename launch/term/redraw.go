package term

import (
	"bytes"
	"fmt"
	"strings"
)

// repaint makes a person's terminal what this one would be, from the state in
// which a window opens. What is on the person's screen is scrolled up first, not
// lost.
func (v *Virtual) repaint(dst []byte, rows int) []byte {
	m := &v.filter.modes
	dst = append(dst, "\x1b[m"...)
	dst = append(dst, bytes.Repeat([]byte("\r\n"), min(rows, sizeMost))...)
	dst = append(dst, "\x1b[H\x1b[J\x1b[?25l"...)
	dst = append(dst, "\x1b[22;0t\x1b]0;"...) // its own title is taken back at the end
	dst = append(append(dst, m.title...), "\x1b\\"...)
	if !m.alt {
		dst = m.kitty.redo(dst, false)
		dst, _ = m.painted(dst, v.main)
		return dst
	}
	painted, at, _, ok := v.main.paint(dst)
	if ok {
		dst = position(painted, at)
	}
	dst = m.kitty.redo(dst, false)
	dst = append(dst, "\x1b[?1049h"...)
	dst = m.kitty.redo(dst, true)
	dst, ok = m.painted(dst, v.alt)
	if !ok {
		v.nudge()
	}
	return dst
}

// nudge makes the program draw its screen again.
func (v *Virtual) nudge() {
	cols, rows := v.main.cols, v.main.rows
	v.resize(cols, max(rows-1, 1))
	v.resize(cols, rows)
}

// leftovers is what a viewer's terminal is sent last.
func (v *Virtual) leftovers(from *Viewer) []byte {
	if from.Cols == 0 {
		return nil
	}
	f := &v.filter
	var dst []byte
	if f.state == sixel || f.state == sixelEscape {
		dst = append(dst, "\x1b\\"...)
	}
	return f.modes.end(dst)
}

// redo puts on a screen's stack what the sandbox has put there.
func (k *kittyKeys) redo(dst []byte, alt bool) []byte {
	for _, flags := range []byte(*k.of(alt)) {
		dst = fmt.Appendf(dst, "\x1b[>%du", flags)
	}
	return dst
}

// Text is what stands on the terminal's main screen, a line each, without the
// empty ones at its end.
func (v *Virtual) Text() []string { return v.main.text() }

// text gives the lines of the screen, as far as they are known.
func (m *model) text() (lines []string) {
	_, _, _, ok := m.paint(nil) // waits
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok || m.emu == nil || m.busy {
		return nil
	}
	for y := range m.emu.Height() {
		var b strings.Builder
		for x := 0; x < m.emu.Width(); x++ {
			c := m.emu.CellAt(x, y)
			if c == nil || c.Content == "" {
				b.WriteByte(' ')
				continue
			}
			b.WriteString(strings.Map(visible, c.Content))
			x += max(c.Width-1, 0)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
