package term

import (
	"bytes"
	"strconv"
)

// csiSeq is a control sequence, taken apart.
type csiSeq struct {
	prefix byte // one of <=>?, or 0
	params []byte
	inter  []byte
	final  byte
}

// parseCSI takes a sequence apart. One in no proper order is not ok.
func parseCSI(seq []byte, final byte) (s csiSeq, ok bool) {
	s.final = final
	if len(seq) > 0 && seq[0] >= '<' && seq[0] <= '?' {
		s.prefix, seq = seq[0], seq[1:]
	}
	n := 0
	for n < len(seq) && (seq[n] >= '0' && seq[n] <= ';') {
		n++
	}
	s.params, s.inter = seq[:n], seq[n:]
	for _, c := range s.inter {
		if c < 0x20 || c > 0x2f {
			return s, false
		}
	}
	return s, len(s.inter) < 2
}

// valueMax is the largest value of a parameter: no screen is larger, and
// terminals were brought down by larger ones.
const valueMax = 65535

// repeatMax is how often a character may be repeated: a line's length.
const repeatMax = 4096

// numbers gives the parameters, -1 where one is not given. Those with parts
// (1:2) or values out of range are not ok.
func (s csiSeq) numbers() (out []int, ok bool) {
	if len(s.params) == 0 {
		return nil, true
	}
	for p := range bytes.SplitSeq(s.params, []byte{';'}) {
		v := -1
		if len(p) > 0 {
			var err error
			if v, err = strconv.Atoi(string(p)); err != nil || v > valueMax {
				return nil, false
			}
		}
		if out = append(out, v); len(out) > 32 {
			return nil, false
		}
	}
	return out, true
}

// at gives the ith parameter, or a default.
func at(params []int, i, def int) int {
	if i < len(params) && params[i] >= 0 {
		return params[i]
	}
	return def
}

func (s csiSeq) append(dst []byte) []byte {
	dst = append(dst, "\x1b["...)
	if s.prefix != 0 {
		dst = append(dst, s.prefix)
	}
	dst = append(dst, s.params...)
	dst = append(dst, s.inter...)
	return append(dst, s.final)
}

// csi judges the control sequence that was read and ends with final.
func (f *Filter) csi(final byte) {
	s, ok := parseCSI(f.seq, final)
	if !ok {
		return
	}
	if s.prefix == 0 && len(s.inter) == 0 && final == 'm' {
		if f.modes.pen.apply(s.params) {
			f.out = s.append(f.out)
		}
		return
	}
	p, ok := s.numbers()
	if !ok {
		return
	}
	var inter byte
	if len(s.inter) > 0 {
		inter = s.inter[0]
	}
	if f.judge(s, inter, p) {
		f.out = s.append(f.out)
	}
}

// judge tells whether a control sequence is let through as it is. What it
// changes that outlasts it is kept in mind.
func (f *Filter) judge(s csiSeq, inter byte, p []int) bool {
	switch {
	case inter == 0 && s.prefix == 0:
		return f.judgePlain(s.final, p)
	case inter == 0 && s.prefix == '?':
		return f.judgePrivate(s.final, p)
	case inter == 0:
		return f.judgeKeys(s.prefix, s.final, p)
	case inter == ' ' && s.final == 'q' && s.prefix == 0:
		f.modes.cursor = at(p, 0, 0)
		return f.modes.cursor <= 6
	case inter == '!' && s.final == 'p' && s.prefix == 0:
		// Mouse, focus and others stay, and so does the screen.
		alt, kitty, colours, changed := f.modes.alt, f.modes.kitty, f.modes.colours, f.modes.changed
		f.modes.reset()
		f.modes.alt, f.modes.kitty, f.modes.colours, f.modes.changed = alt, kitty, colours, changed&^softReset
		return true
	case inter == '"' && s.final == 'q' && s.prefix == 0:
		return true // protects characters from being erased
	case inter == '$' && s.final == 'p' && (s.prefix == 0 || s.prefix == '?'):
		return f.ask() // is a mode set?
	}
	return false
}

func (f *Filter) judgePlain(final byte, p []int) bool {
	switch final {
	case '@', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'P', 'S', 'X', 'Z',
		'`', 'a', 'd', 'e', 'f':
		return true
	case 'g':
		f.modes.tabs = true
		return true
	case 'b':
		return at(p, 0, 1) <= repeatMax
	case 'T':
		return len(p) < 2 // with five it begins a mouse mode that waits for an answer
	case 'r':
		f.modes.region = [2]int{at(p, 0, 0), at(p, 1, 0)}
		return len(p) <= 2
	case 's':
		if f.modes.on(69) {
			f.modes.margins = [2]int{at(p, 0, 0), at(p, 1, 0)}
			return len(p) <= 2
		}
		if len(p) == 0 {
			f.saveCursor()
		}
		return len(p) == 0
	case 'u':
		f.modes.saved = false
		return len(p) == 0
	case 'h', 'l':
		for _, n := range p {
			switch n {
			case 4, 20:
				f.modes.setANSI(n, final == 'h')
				f.out = append(strconv.AppendInt(append(f.out, "\x1b["...), int64(n), 10), final)
			}
		}
		return false
	case 'n':
		if len(p) != 1 || p[0] != 5 && p[0] != 6 || !f.ask() {
			return false
		}
		if p[0] == 6 {
			return true
		}
		f.status++
		f.out = append(f.out, statusQuestion...) // in the one form that a Window counts
		return false
	case 'c':
		return at(p, 0, 0) == 0 && f.ask()
	}
	// t moves and reports windows and their titles, i prints, y reports what is
	// on the screen, x the line's speed.
	return false
}

func (f *Filter) judgePrivate(final byte, p []int) bool {
	switch final {
	case 'J', 'K':
		return true
	case 'h', 'l':
		for _, n := range p {
			f.setPrivate(n, final == 'h')
		}
		return false
	case 'n':
		return len(p) == 1 && (p[0] == 6 || p[0] == 996) && f.ask()
	case 'u':
		return len(p) == 0 && f.ask()
	case 'S': // what pictures can be shown
		return len(p) >= 2 && (p[1] == 1 || p[1] == 4) && f.ask()
	}
	return false
}

// judgeKeys judges what changes how keys are told apart.
func (f *Filter) judgeKeys(prefix, final byte, p []int) bool {
	switch {
	case f.Mute:
	case prefix == '>' && final == 'u':
		f.modes.kitty.push(f.modes.alt, at(p, 0, 0))
		return len(p) <= 1
	case prefix == '<' && final == 'u':
		f.modes.kitty.pop(f.modes.alt, at(p, 0, 1))
		return len(p) <= 1
	case prefix == '=' && final == 'u':
		f.modes.kitty.set(f.modes.alt, at(p, 0, 0), at(p, 1, 1))
		return len(p) <= 2
	case prefix == '>' && final == 'm':
		if at(p, 0, 0) != 4 || len(p) > 2 {
			return false
		}
		f.modes.otherKeys = at(p, 1, 0)
		return true
	case prefix == '>' && final == 'c', prefix == '=' && final == 'c', prefix == '>' && final == 'q':
		return at(p, 0, 0) == 0 && len(p) <= 1 && f.ask()
	}
	return false
}

// ask notes that the terminal was asked something, to which an answer may
// still be under way when the sandbox is gone.
func (f *Filter) ask() bool {
	f.asked = f.asked || !f.Mute
	return !f.Mute
}
