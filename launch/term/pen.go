package term

import "fmt"

// pen is how the next character will look.
type pen struct {
	attrs      uint16 // 1<<n for SGR n, 1 to 9 and 53
	underline  uint8  // its form, 0 to 5
	fg, bg, ul colour
}

const overlined = 15 // the bit for SGR 53

// colour is one colour: kind 0 is the terminal's own, 5 is of the palette, 2
// is red, green and blue.
type colour struct{ kind, r, g, b uint8 }

// apply follows an SGR sequence. One in no proper form is not ok.
func (p *pen) apply(params []byte) bool {
	// Parameters in order, with those that are parts of the one before (after a
	// colon) marked: this is done for every change of colour, so it allocates
	// nothing.
	var vals [64]uint16
	var part [64]bool
	n, v := 0, uint16(0)
	for _, c := range params {
		switch {
		case c == ';' || c == ':':
			vals[n], v = v, 0
			if n++; n == len(vals) {
				return false
			}
			part[n] = c == ':'
		case v > 6000:
			return false
		default:
			v = v*10 + uint16(c-'0')
		}
	}
	vals[n] = v
	n++
	q := *p
	for i := 0; i < n; {
		parts := 1
		for i+parts < n && part[i+parts] {
			parts++
		}
		switch v := vals[i]; {
		case part[i]:
			return false
		case v == 38 || v == 48 || v == 58:
			c, used, ok := readColour(vals[i+1:n], parts-1)
			if !ok {
				return false
			}
			parts = 1 + used
			switch v {
			case 38:
				q.fg = c
			case 48:
				q.bg = c
			default:
				q.ul = c
			}
		case v == 4 && parts == 2 && vals[i+1] <= 5:
			q.underline = uint8(vals[i+1])
		case parts > 1:
			return false
		default:
			q.one(int(v))
		}
		i += parts
	}
	*p = q
	return true
}

// one applies a parameter that stands alone. Unknown ones change nothing.
func (p *pen) one(v int) {
	switch {
	case v == 0:
		*p = pen{}
	case v == 4:
		p.underline = 1
	case v == 21:
		p.underline = 2
	case v >= 1 && v <= 9:
		p.attrs |= 1 << v
	case v == 22:
		p.attrs &^= 1<<1 | 1<<2
	case v == 24:
		p.underline = 0
	case v == 25:
		p.attrs &^= 1<<5 | 1<<6
	case v >= 23 && v <= 29:
		p.attrs &^= 1 << (v - 20)
	case v >= 30 && v <= 37:
		p.fg = colour{kind: 5, r: uint8(v - 30)}
	case v >= 40 && v <= 47:
		p.bg = colour{kind: 5, r: uint8(v - 40)}
	case v >= 90 && v <= 97:
		p.fg = colour{kind: 5, r: uint8(v - 90 + 8)}
	case v >= 100 && v <= 107:
		p.bg = colour{kind: 5, r: uint8(v - 100 + 8)}
	case v == 39:
		p.fg = colour{}
	case v == 49:
		p.bg = colour{}
	case v == 53:
		p.attrs |= 1 << overlined
	case v == 55:
		p.attrs &^= 1 << overlined
	case v == 59:
		p.ul = colour{}
	}
}

// readColour reads 5;N or 2;R;G;B, or with parts, which come after colons,
// 5:N, 2:R:G:B or 2:SPACE:R:G:B.
func readColour(v []uint16, parts int) (c colour, used int, ok bool) {
	switch {
	case len(v) >= 2 && v[0] == 5 && (parts == 0 || parts == 2):
		return colour{kind: 5, r: uint8(v[1])}, 2, v[1] < 256
	case len(v) >= 5 && v[0] == 2 && parts >= 5:
		return colour{2, uint8(v[2]), uint8(v[3]), uint8(v[4])}, parts, max(v[2], v[3], v[4]) < 256
	case len(v) >= 4 && v[0] == 2 && (parts == 0 || parts == 4):
		return colour{2, uint8(v[1]), uint8(v[2]), uint8(v[3])}, 4, max(v[1], v[2], v[3]) < 256
	}
	return c, 0, false
}

// append gives the sequence that makes the pen from any other.
func (p pen) append(dst []byte) []byte {
	dst = append(dst, "\x1b[0"...)
	for n := 1; n <= 9; n++ {
		if p.attrs&(1<<n) != 0 {
			dst = fmt.Appendf(dst, ";%d", n)
		}
	}
	if p.attrs&(1<<overlined) != 0 {
		dst = append(dst, ";53"...)
	}
	switch {
	case p.underline == 1:
		dst = append(dst, ";4"...)
	case p.underline > 1:
		dst = fmt.Appendf(dst, ";4:%d", p.underline)
	}
	dst = p.fg.append(dst, 38)
	dst = p.bg.append(dst, 48)
	dst = p.ul.append(dst, 58)
	return append(dst, 'm')
}

func (c colour) append(dst []byte, what int) []byte {
	switch {
	case c.kind == 5 && c.r < 8 && what != 58:
		return fmt.Appendf(dst, ";%d", what-8+int(c.r)) // 30 and 40
	case c.kind == 5 && c.r < 16 && what != 58:
		return fmt.Appendf(dst, ";%d", what+52+int(c.r)-8) // 90 and 100
	case c.kind == 5:
		return fmt.Appendf(dst, ";%d;5;%d", what, c.r)
	case c.kind == 2:
		return fmt.Appendf(dst, ";%d;2;%d;%d;%d", what, c.r, c.g, c.b)
	}
	return dst
}
