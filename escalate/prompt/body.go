package prompt

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"lazaret/escalate"
)

// page lays out what is to be read before a request is answered.
type page struct {
	w     int
	sym   symbols
	lines []line
}

// labelled is how wide the labels at the left are.
const labelled = 10

func (p *page) add(l ...cell)  { p.lines = append(p.lines, l) }
func (p *page) gap()           { p.lines = append(p.lines, nil) }
func (p *page) text(w int) int { return max(p.w-w, 8) }
func (p *page) label(s string) []cell {
	return append(say(dim, s), spaces(labelled-len(s))...)
}

// words are lazaret's own.
func (p *page) words(s string) {
	for _, l := range wrap(say(dim, s), p.text(0), true) {
		p.add(l...)
	}
}

// field shows a text beside a label.
func (p *page) field(label string, c []cell) {
	for i, l := range wrap(p.sym.legible(c), p.text(labelled), true) {
		if i > 0 {
			label = ""
		}
		p.add(append(p.label(label), l...)...)
	}
}

// quoted shows the sandbox's own words, with a bar at every line that no text
// can draw.
func (p *page) quoted(c []cell, words bool) {
	for _, l := range wrap(p.sym.legible(c), p.text(2), words) {
		p.add(append(append(say(frame, p.sym.bar), spaces(1)...), l...)...)
	}
}

// note shows what should be seen about what stands above it.
func (p *page) note(indent int, s string) {
	head := append(spaces(indent), say(warn, p.sym.warn+" ")...)
	for i, l := range wrap(p.sym.legible(cells(s, warn)), p.text(columns(head)), true) {
		if i > 0 {
			head = spaces(columns(head))
		}
		p.add(append(append([]cell(nil), head...), l...)...)
	}
}

// request lays out a request. The lines from need on are the person's own
// environment, which need not be read: nothing in it is the sandbox's.
func request(a escalate.Ask, edited bool, w int, sym symbols) (lines []line, need int) {
	p := page{w: w, sym: sym}
	p.field("request", cells(a.ID, dim))
	if a.Why != "" {
		p.field("because", cells(a.Why, dim))
	}
	p.gap()
	if strings.TrimSpace(a.Reason) == "" {
		p.words("The sandbox gives no reason.")
	} else {
		p.add(say(dim, "The sandbox says:")...)
		p.quoted(cells(a.Reason, agent), true)
	}
	p.notes(0, a, escalate.MarkReason, a.Reason)
	p.gap()
	p.command(a, edited)
	if a.Trouble != "" {
		p.note(0, a.Trouble)
	}
	p.gap()
	p.field("runs", cells(or(a.Program, "nothing"), bold))
	p.field("in", join2(cells(a.Dir, plain), say(dim, written(a))))
	p.input(a)
	need = len(p.lines)
	if len(a.Env) > 0 {
		p.field("with", join(a.Env))
	}
	return p.lines, need
}

// written tells where an argument without a mark is looked up, if it is the name
// of a file: in a directory of the sandbox's, it can be that at any time.
func written(a escalate.Ask) string {
	if a.DirIn == "" || !slices.ContainsFunc(a.Argv[min(1, len(a.Argv)):], func(arg string) bool { return !strings.HasPrefix(arg, "/") }) {
		return ""
	}
	return ", where the sandbox can make any word a file or link"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// join shows variables, one after the other.
func join(env []string) (out []cell) {
	for i, e := range env {
		if i > 0 {
			out = append(out, spaces(1)...)
		}
		out = append(out, cells(e, dim)...)
	}
	return out
}

// command shows the argument vector in a box, an argument a line, numbered:
// what is one argument cannot look like two.
func (p *page) command(a escalate.Ask, edited bool) {
	title := fmt.Sprintf(" command, %d arguments ", len(a.Argv))
	if len(a.Argv) == 1 {
		title = " command "
	}
	if edited {
		title = " your command" + strings.TrimPrefix(title, " command")
	}
	if len(title) > p.w-3 {
		title = ""
	}
	inner := p.w - 4
	b := p.sym.box
	rule := func(n int) []cell { return say(frame, strings.Repeat(b[4], max(n, 0))) }
	p.add(join2(say(frame, b[0]+b[4]), say(bold, title), rule(p.w-3-len(title)), say(frame, b[1]))...)
	row := func(c []cell) {
		p.add(join2(say(frame, b[5]+" "), c, spaces(inner-columns(c)), say(frame, " "+b[5]))...)
	}
	num := len(fmt.Sprint(len(a.Argv) - 1))
	for i, arg := range a.Argv {
		as := plain
		if i == 0 {
			as = bold
		}
		c := p.sym.legible(spaced(cells(arg, as)))
		if arg == "" {
			c = []cell{{"(empty)", 7, hidden}}
		}
		for j, l := range wrap(c, inner-num-2, false) {
			n := spaces(num)
			if j == 0 {
				n = say(dim, fmt.Sprintf("%*d", num, i))
			}
			row(join2(n, spaces(2), l))
		}
		inside := page{w: inner, sym: p.sym}
		inside.notes(num+2, a, i, arg)
		for _, l := range inside.lines {
			row(l)
		}
	}
	p.add(join2(say(frame, b[3]), rule(p.w-2), say(frame, b[2]))...)
}

func join2(parts ...[]cell) (out []cell) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// notes shows the marks of one part of a request, and what its text shows by
// itself to be odd.
func (p *page) notes(indent int, a escalate.Ask, part int, text string) {
	kinds := map[escalate.MarkKind]bool{}
	for _, m := range a.Marks {
		if m.Arg == part {
			kinds[m.Kind] = true
			p.note(indent, m.Text)
		}
	}
	if s := alike(text); s != "" && !kinds[escalate.MarkAlike] {
		p.note(indent, s)
	} else if part >= 0 && s == "" && !kinds[escalate.MarkAlike] && foreign(text) && !unseen(text) {
		p.note(indent, "has letters beyond ASCII")
	}
	if unseen(text) && !kinds[escalate.MarkHidden] {
		p.note(indent, "holds characters that cannot be seen; they stand as \\x and \\u")
	}
}

// input shows what the command would read.
func (p *page) input(a escalate.Ask) {
	if a.StdinSHA256 == "" && a.StdinSize == 0 {
		p.field("input", say(dim, "none"))
		return
	}
	p.gap()
	p.words(fmt.Sprintf("It would read %s of input from the sandbox:", size(a.StdinSize)))
	text := string(a.Stdin)
	for l := range strings.Lines(text) {
		p.quoted(cells(strings.TrimSuffix(l, "\n"), agent), false)
	}
	if left := a.StdinSize - int64(len(a.Stdin)); left > 0 {
		p.note(0, fmt.Sprintf("and %s more that cannot be shown", size(left)))
	}
	p.notes(0, a, escalate.MarkStdin, "")
	if _, err := hex.DecodeString(a.StdinSHA256); err == nil {
		p.field("sha256", say(dim, a.StdinSHA256))
	}
}

func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
