package config

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// bare tells whether c can stand in a key without quotes.
func bare(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// until scans the rest of a string of one line and gives what is between the quotes.
func (l *locator) until(end string, escapes bool) string {
	for i := l.pos; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch {
		case escapes && l.src[i] == '\\':
			i++
		case l.src[i] == end[0]:
			s := l.src[l.pos:i]
			l.pos = i + 1
			return s
		}
	}
	l.fail("a string does not end on its line")
	return ""
}

// multiline scans the rest of a string in triple quotes, which may end in up
// to two quotes of its own before the three that close it.
func (l *locator) multiline(q string, escapes bool) {
	for l.pos < len(l.src) {
		switch {
		case escapes && l.src[l.pos] == '\\':
			l.pos++
			if l.pos < len(l.src) {
				l.step()
			}
		case l.accept(q + q + q):
			for range 2 {
				l.accept(q)
			}
			return
		default:
			l.step()
		}
	}
	l.fail("a string does not end")
}

// step moves over one byte and counts lines.
func (l *locator) step() {
	if l.src[l.pos] == '\n' {
		l.line++
	}
	l.pos++
}

// space moves over spaces and tabs.
func (l *locator) space() {
	for l.pos < len(l.src) && (l.src[l.pos] == ' ' || l.src[l.pos] == '\t') {
		l.pos++
	}
}

// blank moves over white space, line ends and comments.
func (l *locator) blank() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; c {
		case ' ', '\t', '\r', '\n':
			l.step()
		case '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		default:
			return
		}
	}
}

func (l *locator) peek(s string) bool { return strings.HasPrefix(l.src[l.pos:], s) }

func (l *locator) accept(s string) bool {
	if !l.peek(s) {
		return false
	}
	l.pos += len(s)
	return true
}

func (l *locator) expect(s string) {
	l.space()
	if !l.accept(s) {
		l.fail("expected " + s)
	}
}

// unescape decodes a basic string's escapes. Go's own rules differ (\a, \v,
// octal; no \e), hence this.
func unescape(s string) (string, bool) {
	simple := map[byte]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'e': 0x1b, '"': '"', '\\': '\\'}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if c, ok := simple[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		n := digits[s[i]]
		if n == 0 || i+n >= len(s) {
			return "", false
		}
		r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", false
		}
		b.WriteRune(rune(r))
		i += n
	}
	return b.String(), true
}
