// Command screens draws what "tmux capture-pane -e -p" printed, from its
// standard input, as an SVG picture: COLUMNS of text, under TITLE.
//
//	screens COLUMNS TITLE <capture >picture.svg
package main

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The size of a character, and what is around the text, in pixels.
const (
	cellW, cellH = 8.43, 18
	margin, bar  = 14, 30
)

// style is how characters look.
type style struct {
	fg, bg                             string // "": the terminal's own
	bold, faint, reverse, italic, line bool
}

var palette = []string{
	"#2b2b36", "#f25f6b", "#59c27c", "#e5b567", "#6f9df0", "#b48ef0", "#5cc6d0", "#c9c9d6",
	"#71718a", "#ff8a94", "#84e0a3", "#f5d08a", "#9bbcf7", "#cfb3f7", "#8be0e8", "#ffffff",
}

const text, ground = "#dcdce6", "#1b1b24"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screens COLUMNS TITLE <capture >picture.svg")
		os.Exit(2)
	}
	columns, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := draw(os.Stdout, os.Stdin, columns, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// draw makes a picture on w of what a terminal showed.
func draw(w io.Writer, capture io.Reader, columns int, title string) error {
	var lines []string
	in := bufio.NewScanner(capture)
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1] // a terminal is rarely full
	}
	out := bufio.NewWriter(w)
	width, height := float64(columns)*cellW+2*margin, len(lines)*cellH+bar+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`+"\n", width, height, width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="9" fill="%s"/>`+"\n", ground)
	for i, c := range []string{"#f25f6b", "#e5b567", "#59c27c"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="16" r="5.5" fill="%s"/>`, 18+i*18, c)
	}
	fmt.Fprintf(out, `<text x="50%%" y="21" text-anchor="middle" fill="#8b8b99" font-size="12">%s</text>`+"\n", html.EscapeString(title))
	var s style
	for y, l := range lines {
		row(out, &s, l, bar+margin+y*cellH)
	}
	fmt.Fprintln(out, "</svg>")
	return errors.Join(in.Err(), out.Flush())
}

// row draws one line, a run of characters of one look at a time.
func row(w io.Writer, s *style, l string, y int) {
	x := 0
	for l != "" {
		if strings.HasPrefix(l, "\x1b[") {
			if end := strings.IndexByte(l, 'm'); end > 0 {
				s.apply(l[2:end])
				l = l[end+1:]
				continue
			}
		}
		end := strings.IndexByte(l, 0x1b)
		if end <= 0 {
			end = len(l)
		}
		run := l[:end]
		l = l[end:]
		n := utf8.RuneCountInString(run)
		s.draw(w, run, x, n, y)
		x += n
	}
}

func (s style) draw(w io.Writer, run string, x, n, y int) {
	fg, bg := s.fg, s.bg
	if fg == "" {
		fg = text
	}
	if s.reverse {
		if bg == "" {
			bg = ground
		}
		fg, bg = bg, fg
	}
	left := margin + float64(x)*cellW
	if bg != "" {
		fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, float64(n)*cellW, cellH, bg)
	}
	if strings.TrimSpace(run) == "" {
		return
	}
	attrs := ""
	if s.bold {
		attrs += ` font-weight="bold"`
	}
	if s.italic {
		attrs += ` font-style="italic"`
	}
	if s.faint {
		attrs += ` opacity="0.65"`
	}
	if s.line {
		attrs += ` text-decoration="underline"`
	}
	fmt.Fprintf(w, `<text x="%.1f" y="%d" xml:space="preserve" textLength="%.1f" fill="%s"%s>%s</text>`+"\n", left, y+14, float64(n)*cellW, fg, attrs, html.EscapeString(run))
}

// apply follows an SGR sequence.
func (s *style) apply(params string) {
	var v []int
	for p := range strings.SplitSeq(params, ";") {
		n, _ := strconv.Atoi(p)
		v = append(v, n)
	}
	for i := 0; i < len(v); i++ {
		switch n := v[i]; {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.line = true
		case n == 7:
			s.reverse = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 23:
			s.italic = false
		case n == 24:
			s.line = false
		case n == 27:
			s.reverse = false
		case n >= 30 && n <= 37:
			s.fg = palette[n-30]
		case n >= 90 && n <= 97:
			s.fg = palette[n-82]
		case n == 39:
			s.fg = ""
		case n >= 40 && n <= 47:
			s.bg = palette[n-40]
		case n >= 100 && n <= 107:
			s.bg = palette[n-92]
		case n == 49:
			s.bg = ""
		case (n == 38 || n == 48) && i+2 < len(v) && v[i+1] == 5:
			s.set(n, indexed(v[i+2]))
			i += 2
		case (n == 38 || n == 48) && i+4 < len(v) && v[i+1] == 2:
			s.set(n, fmt.Sprintf("#%02x%02x%02x", v[i+2], v[i+3], v[i+4]))
			i += 4
		}
	}
}

func (s *style) set(what int, c string) {
	if what == 38 {
		s.fg = c
	} else {
		s.bg = c
	}
}

// indexed is a colour of the palette of 256.
func indexed(n int) string {
	switch {
	case n < 16:
		return palette[max(n, 0)]
	case n < 232:
		n -= 16
		level := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	g := 8 + 10*min(n-232, 23)
	return fmt.Sprintf("#%02x%02x%02x", g, g, g)
}
