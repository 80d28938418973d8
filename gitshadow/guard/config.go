package guard

import (
	"fmt"
	"strings"
)

// setting is one line of a git configuration file.
type setting struct {
	section string // lower case
	sub     string // as written; "" without one
	name    string // lower case
	value   string
	bare    bool // without "=": true
}

func (s setting) key() string {
	if s.section == "" && s.sub == "" {
		return s.name
	}
	if s.sub == "" {
		return s.section + "." + s.name
	}
	return s.section + "." + s.sub + "." + s.name
}

// parseConfig reads a file in the format of git-config(1). Where git would
// give up, it says so and goes on with the next line: what another version of
// git might read must not be missed.
func parseConfig(data []byte) (out []setting, err error) {
	p := &configParser{text: strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"), line: 1}
	var section, sub string
	for !p.end() {
		start := p.at
		switch c := p.peek(); {
		case c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
			p.next()
		case c == '#' || c == ';':
			p.skipLine(start)
		case c == '[':
			s, b, e := p.section()
			if e != nil {
				err = e
				p.skipLine(start)
				continue
			}
			section, sub = s, b
		default:
			s, e := p.setting()
			if e != nil {
				err = e
				p.skipLine(start)
			}
			if s.name != "" {
				s.section, s.sub = section, sub
				s.value, _, _ = strings.Cut(s.value, "\x00") // to git, the end
				out = append(out, s)
			}
		}
	}
	return out, err
}

type configParser struct {
	text string
	at   int
	line int
}

func (p *configParser) end() bool { return p.at >= len(p.text) }

func (p *configParser) peek() byte { return p.text[p.at] }

func (p *configParser) next() byte {
	c := p.text[p.at]
	p.at++
	if c == '\n' {
		p.line++
	}
	return c
}

// skipLine goes to the end of the line, unless what began at start has.
func (p *configParser) skipLine(start int) {
	if p.at > start && p.text[p.at-1] == '\n' {
		return
	}
	for !p.end() && p.next() != '\n' {
	}
}

func (p *configParser) bad(what string) error { return fmt.Errorf("line %d: %s", p.line, what) }

// section reads [name], [name "sub"] or the old [name.sub].
func (p *configParser) section() (name, sub string, err error) {
	p.next()
	var b strings.Builder
	for {
		if p.end() {
			return "", "", p.bad("a section without end")
		}
		switch c := p.next(); {
		case c == ']':
			name, sub, _ = strings.Cut(b.String(), ".")
			return name, sub, nil
		case c == ' ' || c == '\t':
			sub, err = p.subsection()
			return b.String(), sub, err
		case isAlnum(c) || c == '-' || c == '.':
			b.WriteByte(lower(c))
		default:
			return "", "", p.bad("a section's name with other characters")
		}
	}
}

func (p *configParser) subsection() (string, error) {
	for !p.end() && (p.peek() == ' ' || p.peek() == '\t') {
		p.next()
	}
	if p.end() || p.next() != '"' {
		return "", p.bad("a subsection that is not quoted")
	}
	var b strings.Builder
	for {
		if p.end() {
			return "", p.bad("a subsection without end")
		}
		c := p.next()
		switch c {
		case '\n':
			return "", p.bad("a subsection over two lines")
		case '"':
			if p.end() || p.next() != ']' {
				return "", p.bad("a section without end")
			}
			return b.String(), nil
		case '\\':
			if p.end() {
				return "", p.bad("a subsection without end")
			}
			if c = p.next(); c == '\n' {
				return "", p.bad("a subsection over two lines")
			}
		}
		b.WriteByte(c)
	}
}

// setting reads NAME or NAME = VALUE, to the end of the line.
func (p *configParser) setting() (s setting, err error) {
	if !isAlpha(p.peek()) {
		return s, p.bad("a setting's name does not begin with a letter")
	}
	var b strings.Builder
	for !p.end() && (isAlnum(p.peek()) || p.peek() == '-') {
		b.WriteByte(lower(p.next()))
	}
	s.name = b.String()
	for !p.end() && (p.peek() == ' ' || p.peek() == '\t' || p.peek() == '\r') {
		p.next()
	}
	switch {
	case p.end() || p.peek() == '\n':
		s.bare = true
		return s, nil
	case p.peek() == '#' || p.peek() == ';':
		s.bare = true
		p.skipLine(p.at)
		return s, nil
	case p.next() != '=':
		return s, p.bad("no = after the name")
	}
	s.value, err = p.value()
	return s, err
}

// value reads to the end of the line: quotes, escapes, comments, and lines
// that go on after a backslash. Spaces at both ends are not part of it.
func (p *configParser) value() (string, error) {
	var b strings.Builder
	quoted, keep := false, 0 // keep: what trimming must not touch
	for !p.end() {
		c := p.next()
		switch {
		case c == '\n':
			if quoted {
				return b.String(), p.bad("a quote without end")
			}
			return b.String()[:keep], nil
		case quoted && c == '"', !quoted && c == '"':
			quoted = !quoted
			keep = b.Len()
		case !quoted && (c == '#' || c == ';'):
			p.skipLine(p.at - 1)
			return b.String()[:keep], nil
		case !quoted && isSpace(c):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
		case c == '\\':
			if p.end() {
				return b.String(), p.bad("a backslash at the end")
			}
			switch e := p.next(); e {
			case '\n':
				continue
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			case '\\', '"':
				b.WriteByte(e)
			default:
				return b.String(), p.bad("an unknown escape")
			}
			keep = b.Len()
		default:
			b.WriteByte(c)
			keep = b.Len()
		}
	}
	if quoted {
		return b.String(), p.bad("a quote without end")
	}
	return b.String()[:keep], nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isAlnum(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
