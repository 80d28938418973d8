package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// widest is how wide the prompt gets: longer lines are hard to read.
const widest = 96

func (m model) inner() int { return max(min(m.w-4, widest), 12) }

// room is how many lines of the request are shown.
func (m model) room() int { return max(m.h-len(m.head())-len(m.foot()), 0) }

// drawn is how wide a line can be that is drawn whole.
func (m model) drawn() int { return m.w - 2 }

// hides tells whether the window keeps something from being read, however one
// scrolls. What the foot says never does.
func (m model) hides() bool {
	return m.room() == 0 || slices.ContainsFunc(m.lines[:m.need], func(l line) bool { return columns(l) > m.drawn() })
}

// View shows the prompt.
func (m model) View() tea.View {
	text := m.content()
	if m.sym == simple {
		text = strings.Map(func(r rune) rune {
			if r >= 0x80 {
				return '?'
			}
			return r
		}, text)
	}
	v := tea.NewView(text)
	v.AltScreen = true
	v.ReportFocus = true
	return v
}

func (m model) content() string {
	if m.w == 0 || m.stage == done {
		return ""
	}
	var out []line
	out = append(out, m.head()...)
	switch m.stage {
	case asking:
		out = append(out, m.lines[min(m.top, len(m.lines)):min(m.top+m.room(), len(m.lines))]...)
	default:
		out = append(out, m.stageLines()...)
	}
	foot := m.foot()
	out = out[:min(len(out), max(m.h-len(foot), 0))]
	for len(out)+len(foot) < m.h {
		out = append(out, nil)
	}
	out = append(out, foot...)
	text := make([]string, 0, m.h)
	for _, l := range out[:min(len(out), m.h)] {
		text = append(text, "  "+l.cut(m.drawn()).render())
	}
	return strings.Join(text, "\n")
}

// head names lazaret, the profile, and how many wait.
func (m model) head() []line {
	name := say(badge, " lazaret ")
	profile := m.sym.legible(cells(m.ask.Profile, bold))
	l := join2(name, spaces(1), profile, say(plain, " asks to run a command on this machine"))
	switch m.stage {
	case leaving:
		l = join2(name, say(plain, " nothing waits any more"))
	case aborting, aborted:
		l = join2(name, say(plain, " the channel is shut"))
	case editing:
		l = join2(name, say(plain, " what to run instead"))
	}
	right := []cell(nil)
	if n := m.waiting(); n > 0 && m.stage == asking {
		right = say(warn, fmt.Sprintf("%d more", n))
	}
	w := m.inner()
	if columns(l)+1+columns(right) > w {
		l = join2(name, spaces(1), profile, say(plain, " asks"))
	}
	l = line(l).cut(w - columns(right))
	out := []line{nil, join2(l, spaces(w-columns(l)-columns(right)), right), nil}
	if m.h < 14 {
		return out[1:2]
	}
	return out
}

// waiting is how many requests wait beside the one that is shown.
func (m model) waiting() (n int) {
	for _, a := range m.asks {
		if a.Seq != m.ask.Seq && a.Seq != m.sent {
			n++
		}
	}
	return n
}

// foot says what can be pressed, and what stands in the way.
func (m model) foot() []line {
	var note, out []line
	if m.h >= 14 {
		note = append(note, nil)
	}
	if m.note != "" {
		for _, l := range wrap(m.sym.legible(cells(m.note, warn)), m.inner(), true) {
			note = append(note, l)
		}
	}
	switch m.stage {
	case asking:
		out = append(out, m.status())
		out = append(out, m.buttons(
			button{"A", "approve and run", m.obstacle() == "", key},
			button{"D", "deny", true, key},
			button{"E", "edit", true, key},
			button{"Q", "abort", true, danger},
		)...)
	case editing:
		out = append(out, m.buttons(
			button{"enter", "look at it again", true, key},
			button{"esc", "leave it as it was", true, key},
		)...)
	case aborted:
		bs := []button{{"R", "resume, without escalation", true, key}, {"E", "end the sandbox", true, danger}}
		if m.ended {
			bs = bs[1:]
		}
		out = append(out, m.buttons(bs...)...)
	}
	if m.h >= 14 {
		out = append(out, nil)
	}
	// The request goes before what is said about it.
	if m.stage == asking {
		note = note[:max(min(len(note), m.h-len(m.head())-len(out)-1), 0)]
	}
	return append(note, out...)
}

// status is the line above the keys: how much there is to read, and how long
// the request waits.
func (m model) status() line {
	var l []cell
	switch {
	case m.small:
		l = say(warn, m.sym.warn+" "+tooSmall)
	case m.seen < m.need:
		l = say(warn, fmt.Sprintf("%s %s to read before you can approve: space or %s", m.sym.down, lines(m.need-m.seen), m.sym.down))
		if columns(l)+1+columns(m.left()) > m.inner() {
			l = say(warn, fmt.Sprintf("%s %s to read", m.sym.down, lines(m.need-m.seen)))
		}
	case m.obstacle() != "":
		l = say(warn, m.sym.warn+" "+m.obstacle())
	case m.long:
		l = say(dim, m.sym.up+m.sym.down+" scroll")
	}
	right := m.left()
	w := m.inner()
	l = line(l).cut(w - columns(right) - 1)
	return join2(l, spaces(w-columns(l)-columns(right)), right)
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// left says when the request is denied by itself.
func (m model) left() []cell {
	if m.ask.Deadline.IsZero() {
		return nil
	}
	d := max(m.ask.Deadline.Sub(m.now()), 0).Round(time.Second)
	as := dim
	if d < 30*time.Second {
		as = warn
	}
	return say(as, fmt.Sprintf("times out in %d:%02d", int(d.Minutes()), int(d.Seconds())%60))
}

// button is a key with what it does.
type button struct {
	key, text string
	on        bool
	as        look
}

// buttons lays keys out, over as many lines as they take.
func (m model) buttons(bs ...button) []line {
	ready := m.armed()
	var out []line
	var l line
	for _, b := range bs {
		k, t := b.as, bold
		if !b.on || !ready {
			k, t = keyOff, keyOff
		}
		c := join2(say(k, "["+b.key+"]"), spaces(1), say(t, b.text))
		if columns(l) > 0 && columns(l)+3+columns(c) > m.inner() {
			out = append(out, l)
			l = nil
		}
		if len(l) > 0 {
			l = append(l, spaces(3)...)
		}
		l = append(l, c...)
	}
	return append(out, l)
}

// stageLines is the screen of the other stages.
func (m model) stageLines() (out []line) {
	w := m.inner()
	text := func(as look, s string) {
		for _, l := range wrap(say(as, s), w, true) {
			out = append(out, l)
		}
	}
	switch m.stage {
	case editing:
		text(dim, "Quotes are a shell's, but no shell reads it: no variables, no pipes, no globs. What it runs is shown again before it does.")
		out = append(out, nil)
		ls, row := m.editor.lines(w-2, m.sym)
		room := max(m.h-len(m.head())-len(m.foot())-len(out), 1)
		for _, l := range ls[max(min(row-room/2, len(ls)-room), 0):] {
			out = append(out, join2(say(frame, m.sym.bar), spaces(1), l))
		}
	case leaving:
		text(plain, "The request was withdrawn, timed out, or was answered elsewhere. Nothing was run.")
	case aborting:
		text(plain, "Everything that waits is being denied, and the sandbox stopped.")
	case aborted:
		text(bold, "Everything that waited is denied, and so is everything to come.")
		out = append(out, nil)
		text(plain, "The sandbox stands still. It can go on without asking this machine for anything until it is launched again, or end now.")
	}
	return out
}
