package prompt

// What of a request has been read: nothing is approved before all of it was on the
// screen.

// layout lays the request out for the size of the terminal.
func (m model) layout() model {
	if m.w == 0 || m.ask.Seq == 0 {
		return m
	}
	all := m.seen > 0 && m.seen >= m.need
	m.lines, m.need = request(m.subject(), m.own != nil, m.inner(), m.sym)
	m.long, m.small = len(m.lines) > m.room(), m.hides()
	m.top = min(m.top, max(len(m.lines)-m.room(), 0))
	switch {
	case all: // what was read once was read
		m.seen = len(m.lines)
	default:
		m.top, m.seen = 0, 0 // to be read from its beginning, where reading counts
	}
	return m.saw()
}

// saw takes note of what is shown. What lies after a gap was not seen.
func (m model) saw() model {
	if m.stage == asking && m.top <= m.seen {
		m.seen = max(m.seen, min(m.top+m.room(), len(m.lines)))
	}
	return m
}

func (m model) scroll(by int) model {
	if m.stage == asking && by > 0 && m.top > m.seen {
		m.top = m.seen // after a jump, reading goes on where it was left
		return m.saw()
	}
	m.top = max(min(m.top+by, len(m.lines)-m.room()), 0)
	return m.saw()
}

// obstacle is why the request cannot be approved as it is; "" where it can.
func (m model) obstacle() string {
	a := m.subject()
	switch {
	case m.asked:
		return "looking up what it would run"
	case a.Trouble != "":
		return "it cannot be run"
	case a.StdinSize > int64(len(a.Stdin)):
		return "part of its input cannot be shown"
	case m.seen < m.need:
		return "read to the end first"
	case m.small:
		return tooSmall
	}
	return ""
}

const tooSmall = "the window is too small"
