package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// lines is a listing as it is put on w: folded and coloured where that is a
// terminal. One line of text is one thing; it begins with its mark.
func (d *deps) lines(w io.Writer, text string) string {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 0
	}
	colours := d.env("NO_COLOR") == "" && d.env("TERM") != "dumb"
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		style := ""
		switch {
		case !colours || line == "":
		case strings.HasPrefix(line, "!"):
			style = "1;31"
		case line[0] != ' ':
			style = "1"
		}
		for _, part := range fold(line, columns) {
			if style != "" {
				part = "\x1b[" + style + "m" + part + "\x1b[0m"
			}
			b.WriteString(part + "\n")
		}
	}
	return b.String()
}

// hang is how far the rest of a folded line is set in: further than any line
// begins. Left to the terminal it would begin where marks and headings do, and
// whoever chose the text could make it pass for one.
const hang = "      "

// fold breaks a line into parts of at most columns, at spaces where there are
// some. Too narrow a screen leaves it as it is.
func fold(line string, columns int) []string {
	const least = 20
	if columns < least {
		return []string{line}
	}
	return foldBy(line, columns, hang)
}

// foldLines folds what lazaret says, line by line, and ends lines with end.
func foldLines(text string, columns int, end string) string {
	var b strings.Builder
	for one := range strings.Lines(text) {
		whole, ended := strings.CutSuffix(one, "\n")
		parts := []string{whole}
		if ended && strings.HasPrefix(whole, "lazaret: ") {
			parts = fold(whole, columns)
		}
		b.WriteString(strings.Join(parts, end))
		if ended {
			b.WriteString(end)
		}
	}
	return b.String()
}

// foldTo breaks a text into parts of at most columns, all of which begin in one
// column.
func foldTo(text string, columns int) []string { return foldBy(text, columns, "") }

func foldBy(line string, columns int, hang string) []string {
	var out []string
	rest, room := []rune(line), columns
	for {
		end, at, used := 0, 0, 0
		for end < len(rest) {
			w := width(rest[end])
			if used+w > room {
				break
			}
			used += w
			end++
			if end < len(rest) && rest[end] == ' ' {
				at = end
			}
		}
		prefix := ""
		if len(out) > 0 {
			prefix = hang
		}
		if end == len(rest) {
			return append(out, prefix+string(rest))
		}
		if at < end/3 { // a word that is too long is cut
			at = end
		}
		out = append(out, prefix+string(rest[:at]))
		rest = rest[at:]
		if len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
		room = columns - len(hang)
	}
}

// width is how many columns a visible character may take: two where it may be
// one of the wide ones, so that no line is longer than it is taken for.
func width(r rune) int {
	if r >= 0x1100 && r != '…' && r != '→' {
		return 2
	}
	return 1
}
