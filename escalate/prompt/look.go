package prompt

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// look is how something is shown. Nothing depends on colour alone: what matters
// is also bold, reversed, or said.
type look uint8

const (
	plain  look = iota
	dim         // labels, what is of less interest
	bold        // what it is about
	agent       // the sandbox's own words
	hidden      // stands for what cannot be seen
	warn        // to be read before approving
	good        // what is in order
	badge       // lazaret's name
	key         // a key that can be pressed
	keyOff      // one that cannot be pressed yet
	danger      // a key that ends things
	frame       // lines
	cursor      // where typing goes
)

var looks = map[look]lipgloss.Style{
	plain:  lipgloss.NewStyle(),
	dim:    lipgloss.NewStyle().Foreground(lipgloss.Color("#8b8b99")),
	bold:   lipgloss.NewStyle().Bold(true),
	agent:  lipgloss.NewStyle(),
	hidden: lipgloss.NewStyle().Foreground(lipgloss.Color("#ff8700")).Reverse(true),
	warn:   lipgloss.NewStyle().Foreground(lipgloss.Color("#ff8700")).Bold(true),
	good:   lipgloss.NewStyle().Foreground(lipgloss.Color("#04b575")).Bold(true),
	badge:  lipgloss.NewStyle().Foreground(lipgloss.Color("#fffdf5")).Background(lipgloss.Color("#6c50ff")).Bold(true),
	key:    lipgloss.NewStyle().Foreground(lipgloss.Color("#fffdf5")).Background(lipgloss.Color("#6c50ff")).Bold(true),
	keyOff: lipgloss.NewStyle().Foreground(lipgloss.Color("#8b8b99")).Faint(true),
	danger: lipgloss.NewStyle().Foreground(lipgloss.Color("#fffdf5")).Background(lipgloss.Color("#d7305f")).Bold(true),
	frame:  lipgloss.NewStyle().Foreground(lipgloss.Color("#6c50ff")),
	cursor: lipgloss.NewStyle().Reverse(true),
}

// line is one line of the screen, as cells.
type line []cell

// say makes cells of a text of lazaret's own.
func say(as look, s string) []cell {
	var out []cell
	for _, r := range s {
		out = append(out, cell{string(r), max(width(r), 0), as})
	}
	return out
}

func columns(c []cell) (n int) {
	for _, c := range c {
		n += c.w
	}
	return n
}

func spaces(n int) []cell { return say(plain, strings.Repeat(" ", max(n, 0))) }

// cut keeps what fits into w columns.
func (l line) cut(w int) line {
	n := 0
	for i, c := range l {
		if n += c.w; n > w {
			return l[:i]
		}
	}
	return l
}

// render gives the line with its looks.
func (l line) render() string {
	var b, run strings.Builder
	var as look
	flush := func() {
		if run.Len() > 0 {
			b.WriteString(looks[as].Render(run.String()))
			run.Reset()
		}
	}
	for _, c := range l {
		if c.look != as {
			flush()
			as = c.look
		}
		run.WriteString(c.text)
	}
	flush()
	return b.String()
}

// symbols are the characters of lazaret's own that not every terminal has.
type symbols struct {
	ascii                                     bool // there are no others
	bar, rule, dot, up, down, warn, arrow, ok string
	box                                       [6]string // corners from the upper left on, then lines across and down
}

var fancy = symbols{false, "┃", "─", "•", "↑", "↓", "▲", "→", "✓", [6]string{"╭", "╮", "╯", "╰", "─", "│"}}

var simple = symbols{true, "|", "-", "*", "^", "v", "!", "->", "+", [6]string{"+", "+", "+", "+", "-", "|"}}
