package term

// dcs reads the parameters of a device control string. Only pictures are let
// through: the others ask for reports, reach through tmux to the terminal
// around it, or give kitty commands.
func (f *Filter) dcs(c byte) {
	switch {
	case c >= '0' && c <= '9' || c == ';':
		f.collect(c)
	case c == 'q' && !f.over && !f.Mute:
		f.out = append(f.out, "\x1bP"...)
		f.out = append(f.out, clampDigits(f.seq)...)
		f.out = append(f.out, 'q')
		f.begin(sixel)
		f.digits = 0
	case c < 0x20 || c == 0x7f:
	default:
		f.begin(ignore)
	}
}

// numberMax is how many digits a number of a picture may have: a repetition of
// a billion columns is no picture.
const numberMax = 5

// sixel copies a picture, byte for byte but only such bytes as it can have.
func (f *Filter) sixel(c byte) {
	switch {
	case c >= '0' && c <= '9':
		if f.digits++; f.digits > numberMax {
			return
		}
	case c >= 0x20 && c < 0x7f || c == '\r' || c == '\n':
		f.digits = 0
	default:
		return
	}
	f.out = append(f.out, c)
}

func clampDigits(s []byte) (out []byte) {
	n := 0
	for _, c := range s {
		if n++; c == ';' {
			n = 0
		}
		if n <= numberMax {
			out = append(out, c)
		}
	}
	return out
}

// Cut ends what the filter is in the middle of, so that others can write for a
// while. What it cuts off, the sandbox has lost: a picture at most.
func (f *Filter) Cut(dst []byte) []byte {
	if f.state == sixel || f.state == sixelEscape {
		dst = append(dst, "\x1b\\"...)
		f.state = ignore
	}
	return dst
}
