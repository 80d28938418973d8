package prompt

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"lazaret/escalate"
)

// ring tells of a request that was not told of yet: the bell at once, since
// whoever sits there may look elsewhere, more when the window is known not to
// have the focus.
func (m *model) ring() tea.Cmd {
	if m.ask.Seq == 0 || m.told == m.ask.Seq {
		return nil
	}
	m.told = m.ask.Seq
	s := "\a"
	if !m.focused {
		s += m.notify(m.ask)
	}
	return tea.Raw(s)
}

// tell is what is sent when the window loses the focus while a request waits.
func (m model) tell() tea.Cmd {
	if m.stage != asking || m.ask.Seq == 0 {
		return nil
	}
	return tea.Raw(m.notify(m.ask))
}

// notification gives what makes the terminal show a notification of the
// desktop. None of it is the sandbox's.
func notification(environ []string) func(escalate.Ask) string {
	const title, text = "lazaret", "a sandbox asks to run a command on this machine"
	term := lookup(environ, "TERM")
	seq := "\x1b]9;" + title + ": " + text + "\x1b\\" // iTerm, WezTerm, Ghostty, kitty, Windows Terminal
	switch {
	case term == "" || term == "dumb" || term == "linux":
		seq = ""
	case strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "rxvt") || lookup(environ, "VTE_VERSION") != "":
		seq = "\x1b]777;notify;" + title + ";" + text + "\x1b\\"
	}
	return func(escalate.Ask) string { return seq }
}
