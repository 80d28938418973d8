package prompt

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"lazaret/escalate"
)

// quietFor is how long no key may have been pressed before one counts, for
// each request anew: whoever is typing to the sandbox must not answer.
const quietFor = 700 * time.Millisecond

// aloneFor is how long no other key may follow one that counts: whatever kept
// keys waiting, those of somebody who types come together.
const aloneFor = 150 * time.Millisecond

// stage is what the prompt is doing.
type stage uint8

const (
	asking   stage = iota // a request is shown
	editing               // its command is being edited
	leaving               // nothing waits any more; says so for a moment
	aborting              // the channel is being shut
	aborted               // and the sandbox stands still
	done
)

// model is the prompt as a value: Update gives the next one and does nothing
// else.
type model struct {
	desk escalate.Desk
	box  Box
	ctx  context.Context
	now  func() time.Time
	// after gives the command that delivers a message in a while.
	after func(time.Duration, tea.Msg) tea.Cmd
	by    string
	only  int // the only request to be answered; 0: all
	sym   symbols

	w, h  int
	stage stage
	asks  []escalate.Ask
	ask   escalate.Ask // what is shown; Seq 0: nothing
	sent  int          // the request whose answer is under way

	// What the person wants to run instead, with what it would run.
	own      []string
	resolved escalate.Resolved
	asked    bool // Resolve was asked and has not answered
	editor   editor

	lines []line // the request, laid out for w
	need  int    // how many of them must be seen
	top   int    // the first that is shown
	seen  int    // how many from the first on have been shown
	long  bool   // they are more than fit
	small bool   // the window is too small to read them in

	quiet time.Time // since when no key was pressed
	held  string    // a key that counts, if none follows
	turn  int       // of keys: a key that came later takes back a held one

	note    string // what went wrong, or happened
	ended   bool   // the sandbox is ended
	focused bool
	told    int // the request that was told of outside
	notify  func(escalate.Ask) string
}

// Messages of the commands.
type (
	asksMsg struct {
		asks    []escalate.Ask
		err     error
		changed <-chan struct{}
	}
	changedMsg  struct{}
	tickMsg     struct{}
	aloneMsg    struct{ turn int }
	answeredMsg struct {
		seq int
		err error
	}
	resolvedMsg struct {
		argv []string
		r    escalate.Resolved
		err  error
	}
	abortedMsg struct{ err error }
	boxMsg     struct{ err error }
	endMsg     struct{}
)

func (m model) Init() tea.Cmd { return tea.Batch(m.look(), m.tick()) }

func (m model) tick() tea.Cmd { return m.after(200*time.Millisecond, tickMsg{}) }

// look asks what waits.
func (m model) look() tea.Cmd {
	return func() tea.Msg {
		changed := m.desk.Changed()
		asks, err := m.desk.Pending(m.ctx)
		return asksMsg{asks, err, changed}
	}
}

func (m model) await(changed <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-changed:
		case <-m.ctx.Done():
		}
		return changedMsg{}
	}
}

// Update gives the prompt after a message.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m = m.layout()
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		m = m.touched()
		if m.stage == editing {
			m = m.edited(m.editor.insert(msg.Content))
		}
	case tea.KeyReleaseMsg, tea.PasteStartMsg, tea.PasteEndMsg:
		m = m.touched()
	case tea.FocusMsg:
		m.focused = true
	case tea.BlurMsg:
		m.focused = false
		return m, m.tell()
	case tickMsg:
		if m.stage == leaving && m.now().Sub(m.quiet) > 2*quietFor {
			return m.leave()
		}
		return m, m.tick()
	case aloneMsg:
		if msg.turn == m.turn && m.held != "" {
			return m.act()
		}
	case asksMsg:
		if msg.err != nil || m.ctx.Err() != nil {
			return m.leave() // whoever has them is gone; they are denied
		}
		m = m.pending(msg.asks)
		if m.stage == leaving && m.sent != 0 {
			return m.leave() // answered: there is nothing to say
		}
		ring := m.ring()
		return m, tea.Batch(m.await(msg.changed), ring)
	case changedMsg:
		if m.ctx.Err() != nil {
			return m.leave()
		}
		return m, m.look()
	case answeredMsg:
		m, again := m.answered(msg)
		return m, tea.Batch(m.look(), again)
	case resolvedMsg:
		m = m.told1(msg)
	case abortedMsg, boxMsg:
		return m.stopped(msg)
	case endMsg:
		return m.leave()
	}
	return m, nil
}

func (m model) leave() (tea.Model, tea.Cmd) {
	m.stage = done
	return m, tea.Quit
}

// touched takes note of a key: none counts until there was silence, and one
// that was held does not count any more.
func (m model) touched() model {
	m.quiet, m.held = m.now(), ""
	m.turn++
	return m
}

// pending takes what waits, and shows the next request where the one that is
// shown does not wait any more.
func (m model) pending(asks []escalate.Ask) model {
	if m.only != 0 {
		asks = slices.DeleteFunc(slices.Clone(asks), func(a escalate.Ask) bool { return a.Seq != m.only })
	}
	m.asks = asks
	if m.stage == aborting || m.stage == aborted || m.stage == done {
		return m
	}
	waits := func(a escalate.Ask) bool { return a.Seq == m.ask.Seq }
	if i := slices.IndexFunc(asks, waits); m.ask.Seq != 0 && i >= 0 {
		return m.renewed(asks[i])
	}
	if m.ask.Seq != 0 && m.sent != m.ask.Seq {
		m.note = "The request before was withdrawn, timed out, or was answered elsewhere."
	}
	i := slices.IndexFunc(asks, func(a escalate.Ask) bool { return a.Seq != m.sent })
	if i < 0 {
		if m.sent != m.ask.Seq {
			m.sent = 0
		}
		m = m.touched()
		m.stage, m.ask = leaving, escalate.Ask{}
		return m
	}
	return m.show(asks[i])
}

// renewed shows a request anew where it would do something else by now.
func (m model) renewed(a escalate.Ask) model {
	old := m.ask
	if a.Program == old.Program && a.Trouble == old.Trouble && slices.Equal(a.Marks, old.Marks) {
		return m
	}
	if m.stage != asking || m.own != nil {
		m.ask = a // what is shown is another command
		return m
	}
	if m.note == "" { // before anything counts as shown beside it
		m.note = "What it names has changed since it was shown: look at it again."
	}
	return m.show(a)
}

// show shows a request, as if nothing had been seen or pressed before.
func (m model) show(a escalate.Ask) model {
	m = m.touched()
	m.stage, m.ask, m.own, m.asked = asking, a, nil, false
	m.top, m.seen = 0, 0
	return m.layout()
}

// subject is the request as it stands to be approved.
func (m model) subject() escalate.Ask {
	a := m.ask
	if m.own == nil {
		return a
	}
	a.Argv, a.Program, a.Trouble = m.own, m.resolved.Program, m.resolved.Trouble
	a.Marks = slices.DeleteFunc(slices.Clone(a.Marks), func(k escalate.Mark) bool { return k.Arg >= 0 })
	a.Marks = append(a.Marks, m.resolved.Marks...)
	return a
}

func (m model) armed() bool { return m.now().Sub(m.quiet) >= quietFor }

func (m model) answer(v escalate.Verdict) (tea.Model, tea.Cmd) {
	v.By = m.by
	seq := m.ask.Seq
	m.sent, m.note = seq, ""
	return m, func() tea.Msg { return answeredMsg{seq, m.desk.Answer(m.ctx, seq, v)} }
}

func (m model) answered(msg answeredMsg) (model, tea.Cmd) {
	if msg.err == nil {
		return m, nil
	}
	m.sent = 0
	if errors.Is(msg.err, escalate.ErrGone) {
		return m, nil
	}
	m = m.touched()
	m.note = "It was not run: " + msg.err.Error()
	changed := errors.Is(msg.err, escalate.ErrProgram) || errors.Is(msg.err, escalate.ErrMarks)
	if m.own != nil && changed && msg.seq == m.ask.Seq {
		return m.resolve()
	}
	return m, nil
}
