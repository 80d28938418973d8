package term

import "unicode/utf8"

// What most output consists of is taken in runs, and not byte by byte.

// plain are the bytes that are copied as they are.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		t[c] = true
	}
	for _, c := range "\a\b\t\n\v\f\r" {
		t[c] = true
	}
	return t
}()

// text copies as much of src as is plain and returns the rest.
func (f *Filter) text(src []byte) []byte {
	if f.nrest > 0 {
		return src
	}
	i := 0
	for {
		for i < len(src) && plain[src[i]] {
			i++
		}
		if i == len(src) || src[i] < 0xc3 || f.ASCII {
			break
		}
		// A whole character that is no control: from U+00C0 on, none is.
		_, n := utf8.DecodeRune(src[i:])
		if n == 1 {
			break
		}
		i += n
	}
	f.out = append(f.out, src[:i]...)
	return src[i:]
}

// colours takes the changes of colour from the beginning of src that are whole, as
// step would byte by byte, and returns the rest. They are nearly all the sequences
// that a program prints that prints much.
func (f *Filter) colours(src []byte) []byte {
	if f.state != ground || f.nrest > 0 {
		return src
	}
	for len(src) > 2 && src[0] == 0x1b && src[1] == '[' {
		n := 2
		for n < len(src) && src[n] >= '0' && src[n] <= ';' {
			n++
		}
		if n == len(src) || src[n] != 'm' || n-2 > csiMax {
			break
		}
		if f.modes.pen.apply(src[2:n]) {
			f.out = append(f.out, src[:n+1]...)
		}
		src = src[n+1:]
	}
	return src
}
