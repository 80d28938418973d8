package prompt

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	shellquote "github.com/kballard/go-shellquote"
)

// editor changes a command, written with a shell's quotes; no shell will see
// it. What is in it may be the sandbox's, so it is shown like the rest.
type editor struct {
	text []rune
	at   int  // before which character the cursor stands
	full bool // there was no room for what came last
}

// edit begins with a command. One that is not text cannot be edited, only
// written anew.
func edit(argv []string) editor {
	s := shellquote.Join(argv...)
	if !utf8.ValidString(s) {
		s = ""
	}
	r := []rune(s)
	return editor{text: r, at: len(r)}
}

// vector is the argument vector that the text stands for.
func (e editor) vector() ([]string, error) { return shellquote.Split(string(e.text)) }

// editMax bounds a command, in characters.
const editMax = 64 << 10

func (e editor) insert(s string) editor {
	r := []rune(strings.ToValidUTF8(s, ""))
	if e.full = len(r) > 0 && len(e.text)+len(r) > editMax; e.full {
		return e
	}
	e.text = slices.Insert(slices.Clone(e.text), e.at, r...)
	e.at += len(r)
	return e
}

func (e editor) remove(from, to int) editor {
	from, to = max(from, 0), min(to, len(e.text))
	e.text = slices.Delete(slices.Clone(e.text), from, to)
	e.at = from
	return e
}

// word is where the word before the cursor begins.
func (e editor) word() int {
	i := e.at
	for i > 0 && e.text[i-1] == ' ' {
		i--
	}
	for i > 0 && e.text[i-1] != ' ' {
		i--
	}
	return i
}

// press is the editor after a key.
func (e editor) press(k tea.KeyPressMsg) editor {
	e.full = false
	switch k.Keystroke() {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "home", "ctrl+a":
		e.at = 0
	case "end", "ctrl+e":
		e.at = len(e.text)
	case "alt+b", "ctrl+left", "alt+left":
		e.at = e.word()
	case "backspace", "ctrl+h", "shift+backspace":
		if e.at > 0 {
			return e.remove(e.at-1, e.at)
		}
	case "delete", "ctrl+d":
		if e.at < len(e.text) {
			return e.remove(e.at, e.at+1)
		}
	case "ctrl+w", "alt+backspace":
		return e.remove(e.word(), e.at)
	case "ctrl+u":
		return e.remove(0, e.at)
	case "ctrl+k":
		return e.remove(e.at, len(e.text))
	default:
		return e.insert(k.Text)
	}
	return e
}

// lines shows the text, and in which line the cursor is.
func (e editor) lines(w int, sym symbols) (out [][]cell, row int) {
	var all []cell
	at := 0
	for i, r := range e.text {
		if i == e.at {
			at = len(all)
		}
		c := sym.legible(cells(string(r), plain))
		if i == e.at {
			for j := range c {
				c[j].look = cursor
			}
		}
		all = append(all, c...)
	}
	if e.at == len(e.text) {
		at = len(all)
		all = append(all, cell{" ", 1, cursor})
	}
	out = wrap(all, w, false)
	for n := 0; row < len(out)-1; row++ {
		if n += len(out[row]); at < n {
			break
		}
	}
	return out, row
}
