package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// style is how lines are put on a terminal: only with what every terminal
// shows on light and dark alike.
type style struct {
	columns int
	colours bool
	ascii   bool // the terminal is not known to show more
}

// drawn is one line, and how many columns of the terminal it takes at most.
type drawn struct {
	text  string
	width int
}

// terminalOf is the terminal that w is, or nil.
func terminalOf(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// style looks at a terminal and what the environment says of it.
func (d *deps) style(f *os.File) style {
	s := style{colours: d.env("NO_COLOR") == "" && !d.dumb(), ascii: !d.utf8()}
	s.columns, _, _ = term.GetSize(int(f.Fd()))
	return s
}

// dumb is a terminal on which nothing can be taken back.
func (d *deps) dumb() bool { return d.env("TERM") == "dumb" || d.env("TERM") == "" }

// utf8 says whether the person's locale has more than ASCII.
func (d *deps) utf8() bool {
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(d.env(k)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// mark says how far a row is.
type mark int

const (
	markNone mark = iota
	markWaiting
	markBusy
	markDone
	markFailed
	markBroken
	markAlarm
)

var marks = map[mark]struct{ utf8, ascii, colour string }{
	markNone:    {" ", " ", ""},
	markWaiting: {"·", ".", "2"},
	markDone:    {"✓", "+", "32"},
	markFailed:  {"✗", "x", "31"},
	markBroken:  {"–", "-", "2"},
	markAlarm:   {"!", "!", "1;31"},
}

var (
	spinner      = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	asciiSpinner = []rune(`-\|/`)
)

// beat is how long each picture of the spinner stands.
const beat = 100 * time.Millisecond

func (s style) mark(m mark, now time.Time) string {
	if m == markBusy {
		wheel := spinner
		if s.ascii {
			wheel = asciiSpinner
		}
		return s.paint("36", string(wheel[int(now.UnixMilli()/beat.Milliseconds())%len(wheel)]))
	}
	if s.ascii {
		return s.paint(marks[m].colour, marks[m].ascii)
	}
	return s.paint(marks[m].colour, marks[m].utf8)
}

func (s style) paint(sgr, text string) string {
	if !s.colours || sgr == "" || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// Columns of a row: the mark, the name and what is said of it.
const (
	nameColumn = 4
	factColumn = nameColumn + 9
	mostLines  = 4 // of one row
)

// room is the room that lines have. The last column stays free: some
// terminals wrap as soon as it is filled.
func (s style) room() int {
	if s.columns <= 0 {
		return 79
	}
	return max(s.columns-1, factColumn+8)
}

// title is the head of a board.
func (s style) title(name, place string) []drawn {
	rest := ""
	if place != "" {
		rest = "  " + s.last(place, s.room()-widths(name)-2)
	}
	return []drawn{{s.paint("1", name) + s.paint("2", rest), widths(name + rest)}}
}

// say is a mark and a text, folded.
func (s style) say(m mark, text string, now time.Time) (out []drawn) {
	for i, p := range foldTo(text, s.room()-nameColumn) {
		begin := strings.Repeat(" ", nameColumn)
		if i == 0 {
			begin = "  " + s.mark(m, now) + " "
		}
		out = append(out, drawn{begin + p, nameColumn + widths(p)})
	}
	return out
}

// line is one row as it is put on a terminal.
type line struct {
	mark mark
	name string // the row's word
	text string
	note string // after the text, such as a time
	next string // what a person can do about it: a command, or a line of the config
}

// row draws a line, its text folded beside its name. What comes after the text
// stays in one piece where there is room for that.
func (s style) row(l line, now time.Time) (out []drawn) {
	name := l.name
	if l.text != "" || l.note != "" || l.next != "" {
		name += strings.Repeat(" ", max(factColumn-nameColumn-widths(name), 1))
	}
	room := s.room() - factColumn
	type part struct {
		text  string
		width int
	}
	var parts []part
	for i, p := range foldTo(l.text, room) {
		if i == mostLines {
			parts[i-1] = part{s.dots(), widths(s.dots())}
			break
		}
		parts = append(parts, part{p, widths(p)})
	}
	after := func(text, sgr string) {
		end := &parts[len(parts)-1]
		if end.width+2+widths(text) <= room && end.width > 0 {
			end.text += "  " + s.paint(sgr, text)
			end.width += 2 + widths(text)
			return
		}
		for i, p := range foldTo(text, room) {
			if i == 0 && end.width == 0 {
				*end = part{s.paint(sgr, p), widths(p)}
				continue
			}
			parts = append(parts, part{s.paint(sgr, p), widths(p)})
		}
	}
	if l.note != "" {
		after(l.note, "2")
	}
	if l.next != "" {
		after(s.arrow()+l.next, "36")
	}
	for i, p := range parts {
		begin := strings.Repeat(" ", factColumn)
		if i == 0 {
			begin = "  " + s.mark(l.mark, now) + " " + s.paint("2", name)
		}
		out = append(out, drawn{begin + p.text, max(nameColumn+widths(name), factColumn) + p.width})
	}
	return out
}

func (s style) arrow() string {
	if s.ascii {
		return "-> "
	}
	return "→ "
}

// widths is how many columns text takes at most.
func widths(text string) (n int) {
	for _, r := range text {
		n += width(r)
	}
	return n
}

// last is the end of a text, as much of it as fits.
func (s style) last(text string, columns int) string {
	if widths(text) <= columns {
		return text
	}
	runes := []rune(text)
	at, n := len(runes), widths(s.dots())
	for at > 0 && n+width(runes[at-1]) <= columns {
		at--
		n += width(runes[at])
	}
	if at == len(runes) {
		return ""
	}
	return s.dots() + string(runes[at:])
}

// dots stand for what is left out.
func (s style) dots() string {
	if s.ascii {
		return "..."
	}
	return "…"
}
