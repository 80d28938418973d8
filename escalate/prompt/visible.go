package prompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// cell is what is shown of one character: itself, or how it is written where
// it cannot be seen, moves the cursor, or would change how others are read.
type cell struct {
	text string
	w    int
	look look
}

// cells takes a text of the sandbox's apart. Whatever it holds, what comes out
// are visible characters of known width, and what is not written as itself
// looks so.
func cells(s string, as look) []cell {
	var out []cell
	marks := 0 // combining marks on the last cell
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch w := width(r); {
		case r == utf8.RuneError && n == 1:
			out = append(out, escaped(fmt.Sprintf(`\x%02x`, s[i])))
		case r < 0x80 && r >= 0x20 && r != 0x7f:
			out = append(out, cell{string(r), 1, as})
			marks = 0
		case combines(r) && marks == 0 && len(out) > 0 && out[len(out)-1].look != hidden && isLetter(out[len(out)-1].text):
			out[len(out)-1].text += string(r)
			marks++
		case !harmless(r) || w < 1:
			out = append(out, escaped(escape(r)))
			marks = 1
		default:
			out = append(out, cell{string(r), w, as})
			marks = 0
		}
		i += n
	}
	return out
}

// legible writes out what a terminal that reads no UTF-8 cannot show: there, too,
// no two texts look the same.
func (y symbols) legible(c []cell) []cell {
	if !y.ascii {
		return c
	}
	var out []cell
	for _, c := range c {
		if c.text == "·" && c.look == hidden {
			c = escaped(`\x20`)
		}
		if !foreign(c.text) {
			out = append(out, c)
			continue
		}
		for _, r := range c.text {
			if r < 0x80 {
				out = append(out, cell{string(r), 1, c.look})
			} else {
				out = append(out, escaped(escape(r)))
			}
		}
	}
	return out
}

func escaped(s string) cell { return cell{s, len(s), hidden} }

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u{%x}`, r)
}

func width(r rune) int { return ansi.StringWidth(string(r)) }

func combines(r rune) bool { return unicode.Is(unicode.Mn, r) && !ignorable(r) }

func isLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

// harmless tells whether a character beyond ASCII can be shown as it is:
// letters, digits and punctuation that terminals agree on. Symbols can draw
// what looks like part of a screen; letters that are written from right to left
// reorder those around them; spaces hide.
func harmless(r rune) bool {
	switch {
	case ignorable(r) || rightToLeft(r):
		return false
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Sc, r):
		return true
	case unicode.IsPunct(r):
		return true
	case r == '±' || r == '×' || r == '÷' || r == '°' || r == '§' || r == '¬':
		return true
	}
	return false
}

// ignorable are letters and marks that have no shape.
func ignorable(r rune) bool {
	return r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x17b4 || r == 0x17b5 ||
		r == 0x034f || r >= 0x180b && r <= 0x180f || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0000 && r <= 0xe0fff
}

func rightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// spaced makes the spaces visible that could be overlooked: at the ends, and
// more than one in a row.
func spaced(c []cell) []cell {
	space := func(i int) bool { return i >= 0 && i < len(c) && c[i].text == " " }
	for i := range c {
		if space(i) && (i == 0 || i == len(c)-1 || c[i-1].text == "·" || space(i+1)) {
			c[i] = cell{"·", 1, hidden}
		}
	}
	return c
}

// wrap breaks cells into lines of at most w columns, at spaces where words is
// set and a line has one.
func wrap(c []cell, w int, words bool) (lines [][]cell) {
	w = max(w, 1)
	start, used, space := 0, 0, -1
	for i := 0; i < len(c); i++ {
		if used+c[i].w > w && i > start {
			cut := i
			if words && space > start {
				cut = space + 1
			}
			lines = append(lines, c[start:cut])
			start, used, space = cut, 0, -1
			i = cut
		}
		if c[i].text == " " {
			space = i
		}
		used += c[i].w
	}
	return append(lines, c[start:])
}

// scripts are those whose letters are mistaken for others.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin},
	{"Cyrillic", unicode.Cyrillic},
	{"Greek", unicode.Greek},
	{"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee},
	{"Coptic", unicode.Coptic},
	{"Lisu", unicode.Lisu},
}

// alike tells what is odd about the letters of a text: words that mix scripts,
// and forms of ASCII letters that are not ASCII. "" where nothing is.
func alike(s string) string {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !combines(r) }) {
		var has []string
		for _, script := range scripts {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script.table, r) }) {
				has = append(has, script.name)
			}
		}
		if len(has) > 1 {
			return "mixes " + strings.Join(has, " and ") + " letters, which can look the same"
		}
		if strings.ContainsFunc(word, func(r rune) bool {
			return r >= 0xff01 && r <= 0xff5e || r >= 0x1d400 && r <= 0x1d7ff || r >= 0x2100 && r <= 0x214f
		}) {
			return "holds letters that look like ASCII and are not"
		}
	}
	return ""
}

// foreign tells whether a text that names programs, options and files has
// letters beyond ASCII: rarely wrong, always worth a look.
func foreign(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// unseen tells whether a text holds what is not shown as itself.
func unseen(s string) bool {
	for _, c := range cells(s, plain) {
		if c.look == hidden {
			return true
		}
	}
	return false
}
