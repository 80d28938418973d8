package term

import (
	"fmt"
	"maps"
	"slices"
)

// kittyKeys is what each screen has on its stack of keyboard flags.
type kittyKeys struct{ main, alt string } // a byte each, the last on top

// kittyMost is how many there can be; terminals forget the oldest.
const kittyMost = 16

func (k *kittyKeys) of(alt bool) *string {
	if alt {
		return &k.alt
	}
	return &k.main
}

func (k *kittyKeys) push(alt bool, flags int) {
	s := k.of(alt)
	if *s += string([]byte{byte(flags & 31)}); len(*s) > kittyMost {
		*s = (*s)[1:]
	}
}

func (k *kittyKeys) pop(alt bool, n int) {
	s := k.of(alt)
	*s = (*s)[:len(*s)-min(max(n, 1), len(*s))]
}

// set changes the flags on top: all of them, or some set (2) or cleared (3).
// What is set with nothing on the stack counts as put there, to be taken off.
func (k *kittyKeys) set(alt bool, flags, how int) {
	s := k.of(alt)
	top := byte(0)
	if n := len(*s); n > 0 {
		top, *s = (*s)[n-1], (*s)[:n-1]
	}
	switch f := byte(flags & 31); how {
	case 2:
		top |= f
	case 3:
		top &^= f
	default:
		top = f
	}
	*s += string([]byte{top})
}

// undo takes everything off the stack of a screen.
func (k *kittyKeys) undo(dst []byte, alt bool) []byte {
	if s := *k.of(alt); s != "" {
		dst = append(dst, "\x1b[=0u"...) // what was set without being put there
		dst = fmt.Appendf(dst, "\x1b[<%du", len(s))
	}
	return dst
}

// colours are those that the sandbox changed, with what sets each: whoever
// writes after it must not do so in black on black.
type colours map[string]string

// coloursMost bounds them: the palette, text, background and cursor.
const coloursMost = 256 + 3

func (c *colours) set(what, to string) {
	if *c == nil {
		*c = colours{}
	}
	if len(*c) < coloursMost {
		(*c)[what] = to
	}
}

func (c colours) unset(what string) { delete(c, what) }

func (c colours) unsetPalette() {
	maps.DeleteFunc(c, func(k, _ string) bool { return k[:2] == "4;" })
}

func (c colours) redo(dst []byte) []byte {
	for _, k := range slices.Sorted(maps.Keys(c)) {
		dst = append(dst, "\x1b]"+c[k]+"\x1b\\"...)
	}
	return dst
}
