package gitshadow

import (
	"errors"
	"strings"
)

// settings are the keys of one git config file, as git names them: section and
// key in lower case, what is between as written ("remote.Origin.url"). Of keys
// that are there more than once, the last counts; what is to be included is all
// there, in one value with NULs between. Includes are not followed: git does not
// follow them either where it decides what a repository is.
type settings map[string]string

var errConfig = errors.New("it is not a git config file")

// parseConfig reads a config file's text the way git does.
func parseConfig(text string) (settings, error) {
	out := settings{}
	p := &configParser{rest: strings.TrimPrefix(text, "\ufeff")}
	section := ""
	for {
		switch c := p.peek(); {
		case c == 0:
			return out, nil
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.next()
		case c == '#' || c == ';':
			p.line()
		case c == '[':
			var ok bool
			if section, ok = p.section(); !ok {
				return nil, errConfig
			}
		default:
			key, value, ok := p.entry()
			if !ok || section == "" {
				return nil, errConfig
			}
			key = section + "." + key
			if old, ok := out[key]; ok && included(key) {
				value = old + "\x00" + value
			}
			out[key] = value
		}
	}
}

// included tells whether a key names a file to be read too, on whatever
// condition.
func included(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// on tells whether a boolean key is there and true.
func (s settings) on(key string) bool {
	v, ok := s[key]
	switch strings.ToLower(v) {
	case "", "false", "no", "off", "0":
		return false
	}
	return ok
}

type configParser struct{ rest string }

func (p *configParser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *configParser) next() byte {
	c := p.peek()
	if p.rest != "" {
		p.rest = p.rest[1:]
	}
	return c
}

func (p *configParser) line() {
	_, p.rest, _ = strings.Cut(p.rest, "\n")
}

// section reads [name], [name "sub"] and the old [name.sub].
func (p *configParser) section() (string, bool) {
	p.next()
	i := strings.IndexAny(p.rest, "]\" \t\n")
	if i < 0 {
		return "", false
	}
	name := strings.ToLower(p.rest[:i])
	p.rest = strings.TrimLeft(p.rest[i:], " \t")
	if p.peek() == ']' {
		p.next()
		return name, name != ""
	}
	if p.next() != '"' {
		return "", false
	}
	var sub strings.Builder
	for {
		c := p.next()
		switch c {
		case 0, '\n':
			return "", false
		case '"':
			return name + "." + sub.String(), p.next() == ']'
		case '\\':
			c = p.next()
		}
		sub.WriteByte(c)
	}
}

// entry reads key = value, or a key alone, which means true.
func (p *configParser) entry() (key, value string, ok bool) {
	i := strings.IndexFunc(p.rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
	if i < 0 {
		i = len(p.rest)
	}
	key = strings.ToLower(p.rest[:i])
	p.rest = strings.TrimLeft(p.rest[i:], " \t")
	switch c := p.peek(); {
	case key == "":
		return "", "", false
	case c != '=':
		ok = c == 0 || c == '\n' || c == '\r' || c == '#' || c == ';' || c == '['
		return key, "true", ok
	}
	p.next()
	value, ok = p.value()
	return key, value, ok
}

func (p *configParser) value() (string, bool) {
	var b strings.Builder
	p.rest = strings.TrimLeft(p.rest, " \t")
	quoted, space := false, 0
	for {
		c := p.next()
		switch {
		case c == 0 || c == '\n':
			return b.String(), !quoted
		case c == '\r' && p.peek() == '\n':
			continue
		case c == '"':
			quoted = !quoted
			continue
		case !quoted && (c == '#' || c == ';'):
			p.line()
			return b.String(), true
		case !quoted && (c == ' ' || c == '\t'):
			space++
			continue
		case c == '\\':
			switch e := p.next(); e {
			case '\n':
				continue
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case '\\', '"':
				c = e
			default:
				return "", false
			}
		}
		b.WriteString(strings.Repeat(" ", space))
		space = 0
		b.WriteByte(c)
	}
}
