package term

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// UTF8 tells whether the terminal that is among files reads UTF-8: it says so
// itself, as those that do so do, or the person's locale says it. To another
// terminal a letter such as Û is two bytes, and the second one a control that it
// may obey.
func UTF8(getenv func(string) string, files ...*os.File) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			if strings.Contains(v, "utf-8") || strings.Contains(v, "utf8") {
				return true
			}
			break
		}
	}
	for _, f := range files {
		var says bool
		if control(f, func(fd int) {
			t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			says = err == nil && t.Iflag&unix.IUTF8 != 0
		}) == nil && says {
			return true
		}
	}
	return false
}

// narrow makes ASCII of what a Filter let through, in place: a "?" for each
// letter beyond. A letter may be cut in two.
func narrow(b []byte) []byte {
	out := b[:0]
	for _, c := range b {
		switch {
		case c < 0x80:
			out = append(out, c)
		case c >= 0xc0: // the first byte of a letter
			out = append(out, '?')
		}
	}
	return out
}
