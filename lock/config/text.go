package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden tells whether r cannot be trusted on a screen: control characters,
// spaces that are not a space, marks that reorder text (bidi) and characters
// that show as nothing. Such a character makes a path or command look like
// another one to the person who is asked to agree to it.
func hidden(r rune) bool {
	return r == utf8.RuneError ||
		!unicode.IsPrint(r) || // bidi, zero-width and no-break spaces are not printable
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// checkVisible refuses hidden characters but those in allow.
func checkVisible(s, allow string) error {
	for _, r := range s {
		if hidden(r) && !strings.ContainsRune(allow, r) {
			return errorf("", "holds the character %U, which does not show on a screen", r)
		}
	}
	return nil
}

// lines are the hidden characters that a text of several lines needs.
const lines = "\n\t"

// Show gives s as it can be put on a screen: unchanged where all of it is
// visible, else with the hidden characters escaped as in a Go string.
func Show(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			_, n := utf8.DecodeRuneInString(s[i:])
			if n == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
				continue
			}
			b.WriteString(`\ufffd`)
		case !hidden(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// quote gives s in double quotes for a message, escaped and cut to a length
// that leaves the message readable.
func quote(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return `"` + Show(strings.ReplaceAll(s, `"`, `\"`)) + `"`
}

// Nearest gives the known word closest to s by edit distance, or "" where
// nothing is close enough to be what was meant.
func Nearest(s string, known []string) string {
	best, least := "", len(s)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(s), k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of single-byte insertions, deletions, substitutions
// and swaps of neighbours between a and b.
func distance(a, b string) int {
	const longest = 64 // keeps a key of a megabyte from costing a minute
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var d [longest + 1][longest + 1]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
