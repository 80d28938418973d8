package term

import "unicode/utf8"

// Filter is what lies between a sandbox's output and the person's terminal. A
// terminal obeys what it is sent: it can be told to set the clipboard, to read
// and delete files, to answer with a text that the sender chose, which then
// stands as typed in the person's shell. So what a program needs to draw is
// let through, rewritten in one form, and everything else is dropped, known or
// not. Its memory is bounded, whatever the sandbox prints.
//
// The zero value is ready for use and not for use by two at once.
type Filter struct {
	// Title is put before the titles that the sandbox gives its window.
	Title string
	// Clipboard lets the sandbox set the clipboard. It never reads it.
	Clipboard bool
	// Mute lets nothing through that makes the terminal say something, now or
	// later, or takes more than a place on its screen: for a sandbox that does
	// not read what the terminal says. It would stand as typed in the person's
	// shell.
	Mute bool
	// ASCII lets nothing through beyond ASCII: for a terminal that does not read
	// UTF-8, to which bytes of a letter are controls.
	ASCII bool

	state  state
	seq    []byte  // the sequence being read, without its introducer
	over   bool    // it was too long, and what follows belongs to it
	rest   [4]byte // the beginning of a character
	nrest  int
	digits int // sixel: digits of one number so far
	modes  modes
	asked  bool // the terminal was asked something
	status int  // how often it was asked how it is, since settled

	screen  screen // who follows the alternate screen; nil: nobody
	main    screen // who follows the other; nil: nobody
	pending int    // where in dst the screen's part begins
	out     []byte // dst, while Append runs
}

// screen follows what is drawn on one of the two screens.
type screen interface {
	enter(pen []byte)
	leave()
	draw([]byte)
	save() // the cursor, as of what was drawn so far
}

type state uint8

const (
	ground state = iota
	escape
	escapeMore // an intermediate byte was read
	csi
	osc
	oscEscape // ESC within: the end, or another sequence
	ignore    // a string that is dropped: APC, PM, SOS, most DCS
	ignoreEscape
	dcs // the parameters of a DCS
	dcsEscape
	sixel
	sixelEscape
)

// The longest sequences that are let through, in bytes.
const (
	csiMax       = 1 << 10
	oscMax       = 4 << 10
	clipboardMax = 256 << 10
)

// Append filters src, the next part of the output, and appends what may be
// shown to dst. It ends with a whole sequence: others may write after it.
func (f *Filter) Append(dst, src []byte) []byte {
	f.out, f.pending = dst, len(dst)
	for len(src) > 0 {
		if f.state == ground {
			if rest := f.colours(f.text(src)); len(rest) < len(src) {
				src = rest
				continue
			}
		}
		c := src[0]
		// A character of several bytes can be the C1 form of an introducer or
		// an end, U+0080 to U+009F, in every state.
		if c >= 0x80 || f.nrest > 0 {
			n := f.multibyte(src)
			src = src[n:]
			continue
		}
		src = src[1:]
		f.step(c)
	}
	f.drawn()
	dst, f.out = f.out, nil
	return dst
}

// drawn gives the screen what it has not got yet.
func (f *Filter) drawn() {
	if s := f.shown(); s != nil && len(f.out) > f.pending {
		s.draw(f.out[f.pending:])
	}
	f.pending = len(f.out)
}

// shown is who follows the screen that is shown.
func (f *Filter) shown() screen {
	if f.modes.alt {
		return f.screen
	}
	return f.main
}

// multibyte takes the next byte of a character of several bytes from src and
// returns how many bytes that took: none where the byte ends a character that
// was cut short and is to be looked at again.
func (f *Filter) multibyte(src []byte) int {
	f.rest[f.nrest] = src[0]
	all := f.rest[:f.nrest+1]
	if !utf8.FullRune(all) {
		f.nrest++
		return 1
	}
	held := f.nrest
	f.nrest = 0
	r, size := utf8.DecodeRune(all)
	f.character(r)
	if r == utf8.RuneError && size == 1 && held > 0 {
		return 0
	}
	return 1
}

// character takes a character from U+0080 on, or U+FFFD for a byte that is
// none: on a terminal of eight bits, that could be a control.
func (f *Filter) character(r rune) {
	if f.ASCII && (r < 0x80 || r >= 0xa0) {
		r = '?'
	}
	switch {
	case r >= 0x80 && r < 0xa0:
		f.control1(byte(r))
	case f.state == ground:
		f.out = utf8.AppendRune(f.out, r)
	case f.state == osc:
		f.collect(utf8.AppendRune(nil, r)...)
	case f.state == ignore:
	case f.state == sixel:
	default: // no sequence has such a byte: it is not one
		f.begin(ground)
		f.out = utf8.AppendRune(f.out, r)
	}
}

// control1 takes a C1 control as the two characters it stands for.
func (f *Filter) control1(c byte) {
	f.step(0x1b)
	f.step(c - 0x40)
}

func (f *Filter) begin(s state) {
	if f.state == sixel || f.state == sixelEscape {
		f.out = append(f.out, "\x1b\\"...)
	}
	f.state, f.seq, f.over = s, f.seq[:0], false
}

// collect adds to the sequence being read, up to what its kind may have.
func (f *Filter) collect(b ...byte) {
	most := oscMax
	switch {
	case f.state == csi || f.state == dcs || f.state == escapeMore:
		most = csiMax
	case f.Clipboard && len(f.seq) > 2 && string(f.seq[:3]) == "52;":
		most = clipboardMax
	}
	if len(f.seq)+len(b) > most {
		f.over = true
		return
	}
	f.seq = append(f.seq, b...)
}

// step takes one ASCII byte.
func (f *Filter) step(c byte) {
	switch f.state {
	case oscEscape, ignoreEscape, dcsEscape, sixelEscape:
		if c == '\\' && f.state == oscEscape && !f.over {
			f.osc()
		}
		f.begin(escape)
		if c == '\\' {
			f.begin(ground)
			return
		}
	}
	switch c {
	case 0x1b:
		switch f.state {
		case osc:
			f.state = oscEscape
		case ignore:
			f.state = ignoreEscape
		case dcs:
			f.state = dcsEscape
		case sixel:
			f.state = sixelEscape
		default:
			f.begin(escape)
		}
		return
	case 0x18, 0x1a: // cancel
		f.begin(ground)
		return
	}
	switch f.state {
	case ground:
		f.control(c)
	case escape:
		f.escape(c)
	case escapeMore, csi:
		switch {
		case c < 0x20:
			f.control(c) // is obeyed within a sequence
		case c == 0x7f:
		case c < 0x40 && f.state == csi || c < 0x30:
			f.collect(c)
		case f.over:
			f.begin(ground)
		case f.state == csi:
			f.csi(c)
			f.begin(ground)
		default:
			f.designate(f.seq, c)
			f.begin(ground)
		}
	case osc:
		switch {
		case c == 7:
			if !f.over {
				f.osc()
			}
			f.begin(ground)
		case c >= 0x20:
			f.collect(c)
		}
	case dcs:
		f.dcs(c)
	case sixel:
		f.sixel(c)
	}
}

// control takes a C0 control, or a printable character that came by a detour.
func (f *Filter) control(c byte) {
	switch {
	case plain[c]:
		f.out = append(f.out, c)
	case c == 0x0e || c == 0x0f: // the other character set, and back
		f.modes.shifted = c == 0x0e
		f.out = append(f.out, c)
	}
}

// escape takes the byte after ESC.
func (f *Filter) escape(c byte) {
	switch {
	case c == '[':
		f.begin(csi)
	case c == ']':
		f.begin(osc)
	case c == 'P':
		f.begin(dcs)
	case c == '_' || c == '^' || c == 'X' || c == 'k': // k: a title, to screen and tmux
		f.begin(ignore)
	case c < 0x20:
		f.control(c)
	case c < 0x30:
		f.begin(escapeMore)
		f.collect(c)
	case c == 0x7f:
	default:
		f.begin(ground)
		f.single(c)
	}
}

// single takes a sequence of ESC and one character.
func (f *Filter) single(c byte) {
	switch c {
	case '7':
		f.saveCursor()
	case '8':
		f.modes.saved = false
	case '=', '>':
		f.modes.keypad = c == '='
	case 'H':
		f.modes.tabs = true
	case 'D', 'E', 'M', 'N', 'O':
	case 'c':
		f.leaveAlt()
		f.modes.reset()
	default: // Z asks who is there; n, o, |, } and ~ shift for good; l and m lock memory
		return
	}
	f.out = append(f.out, 0x1b, c)
}

// designate takes ESC, intermediate bytes and a final one.
func (f *Filter) designate(inter []byte, c byte) {
	if len(inter) != 1 {
		return
	}
	switch i := inter[0]; {
	case i >= '(' && i <= '+' && (c == 'B' || c == '0' || c == 'A'):
		f.modes.charsets[i-'('] = c
	case i == '#' && (c >= '3' && c <= '6' || c == '8'):
	default:
		// ESC % @ leaves UTF-8 and ESC SP G makes answers eight bits wide: either
		// would bring back controls that look like characters here.
		return
	}
	f.out = append(f.out, 0x1b, inter[0], c)
}

// saveCursor is told that the terminal's place for one cursor is taken.
func (f *Filter) saveCursor() {
	f.modes.saved, f.modes.savedPen = true, f.modes.pen
	f.drawn()
	if s := f.shown(); s != nil {
		s.save()
	}
}
