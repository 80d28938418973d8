package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lazaret/escalate"
)

// reads is somebody who scrolls through a request, and keeps every line that
// they ever saw.
func (p *person) reads(t *testing.T, what string, notes ...string) {
	t.Helper()
	seen := map[string]bool{}
	for i := range 3 * (len(p.m.lines) + 1) {
		for l := range strings.SplitSeq(p.screen(), "\n") {
			seen[strings.TrimRight(strings.TrimPrefix(l, "  "), " ")] = true
		}
		if p.m.obstacle() == "" {
			for _, l := range p.m.lines[:p.m.need] {
				if text := strings.TrimRight(ansi.Strip(l.render()), " "); !seen[text] {
					t.Errorf("%s: it can be approved, and %q was never drawn:\n%s", what, text, p.screen())
					return
				}
			}
			return
		}
		if p.m.small && i > len(notes)+4 {
			return // nor will it be approved however one scrolls
		}
		if i < len(notes) {
			p.m.note = notes[i]
		}
		p.send([]tea.Msg{code(tea.KeyDown), code(tea.KeySpace)}[i%2])
	}
}

// TestSmallWindows: whatever the size, what can be approved was drawn whole.
func TestSmallWindows(t *testing.T) {
	long := ask(1, "rm", "-rf", "/home/me/MARKER/abcdefghijklmnopqrstuvwxyz", "x  y", "日本語日本語日本語")
	long.Marks = []escalate.Mark{{Arg: 2, Kind: escalate.MarkWritable, Text: "lies in the workspace: the sandbox can change it, also after your yes"}}
	long.DirIn = "the workspace"
	note := "The request before was withdrawn, timed out, or was answered elsewhere."
	approved := 0
	for _, w := range []int{1, 8, 10, 14, 16, 18, 19, 20, 24, 30, 40, 80, 119} {
		for _, h := range []int{1, 3, 5, 6, 7, 9, 13, 14, 40} {
			for _, notes := range [][]string{nil, {note}, {"", "", note, "", note}} {
				p := sit(t, w, h, long)
				if len(notes) == 1 {
					p.m.note = note
					p.m = p.m.show(p.m.ask)
				}
				p.reads(t, fmt.Sprint(w, "x", h), notes...)
				if h == 6 && w == 30 && p.m.obstacle() != "" {
					t.Errorf("%dx%d: what was said before keeps it from being read: %s\n%s", w, h, p.m.obstacle(), p.screen())
				}
				if p.m.obstacle() == "" {
					approved++
				} else if w >= 40 && h >= 8 {
					t.Fatalf("%dx%d: it cannot be approved: %s\n%s", w, h, p.m.obstacle(), p.screen())
				}
			}
		}
	}
	if approved == 0 {
		t.Error("nothing can be approved")
	}
	// An ordinary request with input can be approved in an ordinary window, also
	// after its size was changed half-way, and after a jump to the end.
	piped := ask(2, "kubectl", "apply", "-f", "-")
	piped.Reason = ""
	piped.Stdin = []byte(strings.Repeat("line\n", 60))
	piped.StdinSize = int64(len(piped.Stdin))
	for _, w := range []int{30, 40, 51, 80} {
		for what, first := range map[string]func(*person){
			"":         func(*person) {},
			"a resize": func(p *person) { p.send(code(tea.KeyDown)); p.send(tea.WindowSizeMsg{Width: w - 2, Height: 24}) },
			"the end":  func(p *person) { p.send(code(tea.KeyEnd)) },
		} {
			p := sit(t, w, 24, piped)
			first(p)
			for range 200 {
				p.send(code(tea.KeyDown))
			}
			if o := p.m.obstacle(); o != "" {
				t.Errorf("%d columns, %s: %s\n%s", w, what, o, p.screen())
			}
		}
	}
	for _, size := range [][2]int{{80, 3}, {80, 2}, {14, 30}, {10, 40}} {
		p := sit(t, size[0], size[1], long)
		for range 200 {
			p.send(code(tea.KeyDown))
		}
		p.wait(quietFor)
		p.press(letters("a")...)
		p.said()
		if size[0] >= 40 {
			p.shows("too small")
		}
	}
	// A window that grows while a command is edited shows no request.
	p := sit(t, 80, 10, long)
	p.wait(quietFor)
	p.press(letters("e")...)
	p.send(tea.WindowSizeMsg{Width: 80, Height: 60})
	if p.m.seen > 6 {
		t.Errorf("%d lines count as seen behind an editor", p.m.seen)
	}
}

// TestNothingHides: there is no character that is drawn as nothing, or as more or
// less than it counts for.
func TestNothingHides(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for _, sym := range []symbols{fancy, simple} {
			c := sym.legible(spaced(cells("a"+string(r)+"b", plain)))
			text := ""
			for _, c := range c {
				text += c.text
			}
			for _, shown := range text {
				if escalate.Hidden(shown) && !unicode.Is(unicode.Mn, shown) || sym.ascii && shown >= 0x80 {
					t.Fatalf("%U is drawn as %q", r, text)
				}
				if unicode.Is(unicode.Mn, shown) && (unicode.Is(unicode.Other_Default_Ignorable_Code_Point, shown) || unicode.Is(unicode.Variation_Selector, shown)) {
					t.Fatalf("%U, which has no shape, is drawn as %q", r, text)
				}
			}
		}
	}
	for _, s := range []string{"a\u3164b", "a\u115fb", "\u1160", "x\uffa0", "a\u034fb", "e\ufe0f", "a\U000e0041"} {
		p := sit(t, 80, 24, ask(1, "rm", s))
		for _, r := range s {
			if r >= 0x80 {
				p.shows(fmt.Sprintf(`\u{%x}`, r))
			}
		}
		p.shows("cannot be seen")
	}
}

// TestSimpleTerminal: a terminal that does not read UTF-8 is sent nothing but
// ASCII, since to it a byte of a letter of the sandbox's can be a control; and no
// two arguments are drawn alike there.
func TestSimpleTerminal(t *testing.T) {
	p := sit(t, 80, 24, ask(1, "aws", "\u00db2J"))
	p.shows("\u00db2J")
	p.m.sym = simple
	p.m = p.m.layout()
	text := ansi.Strip(p.m.View().Content)
	if !strings.Contains(text, `\u{db}2J`) || strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e }) {
		t.Errorf("beyond ASCII:\n%s", text)
	}
	drawn := map[string]string{}
	for _, arg := range []string{"a  b", "a??b", "a··b", "aééb", "a\u00a0\u00a0b", "a日b", "a本b", "ae\u0301b", "a b", " a b", "·a b", "?a b", "a b ", "a b·"} {
		p := sit(t, 80, 30, ask(1, "rm", arg))
		p.m.sym = simple
		p.m = p.m.layout()
		_, row, _ := strings.Cut(ansi.Strip(p.m.View().Content), "| 1  ")
		row, _, _ = strings.Cut(row, "|")
		if other, ok := drawn[row]; ok {
			t.Errorf("%q and %q are both drawn as %q", other, arg, row)
		}
		drawn[row] = arg
		p.m.stage, p.m.editor = editing, edit([]string{"rm", arg})
		if text := p.m.content(); strings.ContainsFunc(ansi.Strip(text), func(r rune) bool { return r > 0x7e }) {
			t.Errorf("beyond ASCII while it is edited:\n%s", text)
		}
	}
}

// TestHold: a key counts once no other has followed for a while, by a clock; and
// not before there was silence for one. The times are written out here: nobody
// types with shorter or longer pauses because a constant says so.
func TestHold(t *testing.T) {
	type due struct {
		at  time.Time
		msg tea.Msg
	}
	var dues []due
	p := sit(t, 80, 30, ask(1, "aws"))
	p.m.after = func(d time.Duration, msg tea.Msg) tea.Cmd {
		dues = append(dues, due{p.at.Add(d), msg})
		return nil
	}
	pass := func(d time.Duration) {
		p.at = p.at.Add(d)
		late := slices.DeleteFunc(slices.Clone(dues), func(e due) bool { return e.at.After(p.at) })
		dues = slices.DeleteFunc(dues, func(e due) bool { return !e.at.After(p.at) })
		for _, e := range late {
			p.send(e.msg)
		}
	}
	a := letters("a")[0]
	for _, pauses := range [][]time.Duration{
		{0, 500},                 // soon after it appeared
		{600, 600, 600, 600},     // slow typing
		{2000, 0, 1000},          // two at once
		{2000, 120, 1000},        // typing at eighty words a minute, after a pause
		{2000, 100, 100, 100, 1}, // quicker
	} {
		p.m = p.m.show(p.m.ask)
		for _, d := range pauses[:len(pauses)-1] {
			pass(d * time.Millisecond)
			p.send(a)
		}
		if pass(pauses[len(pauses)-1] * time.Millisecond); len(p.desk.said) > 0 {
			t.Fatalf("pauses of %v ms: %q", pauses, p.desk.said)
		}
	}
	p.m = p.m.show(p.m.ask)
	pass(2 * time.Second)
	p.send(a)
	pass(0)
	p.said()
	pass(time.Second)
	p.said(`1 kind=1 argv=[] program=/usr/bin/aws by=terminal`)
}
