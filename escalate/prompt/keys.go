package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lazaret/escalate"
)

// press is the prompt after a key.
func (m model) press(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	armed := m.armed()
	m = m.touched()
	name := k.Keystroke()
	if k.Text != "" {
		name = strings.ToLower(k.Text) // whatever the keyboard calls it
	}
	switch m.stage {
	case editing:
		return m.pressEditing(k)
	case asking:
		if next, ok := m.pressScroll(name); ok {
			return next, nil
		}
	}
	if !armed || k.IsRepeat || !m.counts(name) {
		return m, nil
	}
	m.held = name
	return m, m.after(aloneFor, aloneMsg{m.turn})
}

// counts tells whether a key means something now.
func (m model) counts(name string) bool {
	switch m.stage {
	case asking:
		return slices.Contains([]string{"a", "d", "e", "q", "esc", "ctrl+c"}, name) && m.sent != m.ask.Seq
	case aborted:
		return name == "r" && !m.ended || name == "e"
	}
	return false
}

func (m model) pressScroll(name string) (model, bool) {
	page := max(m.room()-1, 1)
	switch name {
	case "down", "j", "ctrl+n":
		return m.scroll(1), true
	case "up", "k", "ctrl+p":
		return m.scroll(-1), true
	case "pgdown", "space", " ", "ctrl+v":
		return m.scroll(page), true
	case "pgup", "b":
		return m.scroll(-page), true
	case "home", "g":
		return m.scroll(-len(m.lines)), true
	case "end":
		return m.scroll(len(m.lines)), true
	}
	return m, false
}

func (m model) pressEditing(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k.Keystroke() {
	case "esc", "ctrl+c":
		return m.show(m.ask), nil
	case "enter":
		argv, err := m.editor.vector()
		if err == nil && len(argv) == 0 {
			err = errors.New("there is no command")
		}
		if err != nil {
			m.note = "It cannot be read as a command: " + err.Error()
			return m, nil
		}
		m.note = ""
		if slices.Equal(argv, m.ask.Argv) {
			return m.show(m.ask), nil
		}
		m = m.show(m.ask)
		m.own = argv
		return m.resolve()
	}
	return m.edited(m.editor.press(k)), nil
}

// edited takes what a key or a paste has made of the command.
func (m model) edited(e editor) model {
	m.editor, m.note = e, ""
	if e.full {
		m.note = fmt.Sprintf("That was left out: a command has room for %d characters here.", editMax)
	}
	return m
}

// resolve asks what an edited command would run.
func (m model) resolve() (model, tea.Cmd) {
	m.resolved, m.asked = escalate.Resolved{}, true
	argv := m.own
	return m.layout(), func() tea.Msg {
		r, err := m.desk.Resolve(m.ctx, argv)
		return resolvedMsg{argv, r, err}
	}
}

// told1 takes what an edited command would run.
func (m model) told1(msg resolvedMsg) model {
	if m.own == nil || !slices.Equal(msg.argv, m.own) {
		return m
	}
	m.asked, m.resolved = false, msg.r
	if msg.err != nil {
		m.resolved = escalate.Resolved{Trouble: msg.err.Error()}
	}
	m.top, m.seen = 0, 0 // it is another command: to be read, and answered, anew
	m.quiet = m.now()
	return m.layout()
}

// act does what the held key means.
func (m model) act() (tea.Model, tea.Cmd) {
	k := m.held
	m.held = ""
	if m.stage == aborted {
		return m.endOrResume(k)
	}
	if m.stage != asking {
		return m, nil
	}
	switch k {
	case "a":
		if m.obstacle() != "" {
			return m, nil
		}
		return m.answer(escalate.Verdict{Kind: escalate.Approve, Argv: m.own, Program: m.subject().Program, Marks: m.subject().Marks})
	case "d", "esc", "ctrl+c":
		return m.answer(escalate.Verdict{Kind: escalate.Deny})
	case "e":
		from := m.ask.Argv
		if m.own != nil {
			from = m.own
		}
		m.stage, m.editor, m.note = editing, edit(from), ""
	case "q":
		m.stage, m.note = aborting, ""
		return m, func() tea.Msg {
			// Both, whatever the other does: what was denied stays denied.
			err := m.desk.Abort(m.ctx)
			if m.box != nil {
				err = errors.Join(err, m.box.Suspend(m.ctx))
			}
			return abortedMsg{err}
		}
	}
	return m, nil
}

// stopped goes on after the sandbox was paused, resumed or ended.
func (m model) stopped(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case abortedMsg:
		m = m.touched()
		m.stage = aborted
		if m.box == nil {
			return m.leave()
		}
		if msg.err != nil {
			m.note, m.ended = msg.err.Error(), true
			if errors.Is(msg.err, context.Canceled) {
				return m.leave()
			}
		}
	case boxMsg:
		if msg.err == nil {
			return m.leave()
		}
		m = m.touched()
		m.note = msg.err.Error()
	}
	return m, nil
}

func (m model) endOrResume(k string) (tea.Model, tea.Cmd) {
	do := m.box.End
	if k == "r" {
		do = m.box.Resume
	}
	return m, func() tea.Msg { return boxMsg{do(m.ctx)} }
}
