package lock

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible reports whether r shows as itself and as nothing else: no control,
// direction, zero-width or private character, and no blank but the space.
func visible(r rune) bool {
	return r != utf8.RuneError &&
		unicode.IsPrint(r) &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		!unicode.Is(unicode.Variation_Selector, r)
}

// checkText refuses what a person cannot read, or could be misled by, in a
// string of a field with that text tag. The string itself is never quoted.
func checkText(s, text string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	for _, r := range s {
		switch {
		case r == 0:
			return errors.New("holds a NUL character")
		case text == "foreign", visible(r):
		case text == "program" && (r == '\t' || r == '\n'):
		default:
			return fmt.Errorf("holds the character %U, which cannot be seen", r)
		}
	}
	return nil
}

// quote returns s as a TOML basic string on one line, with everything that
// does not show as itself escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case visible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey returns s as a TOML key: bare where it can be.
func quoteKey(s string) string {
	bare := s != ""
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			bare = false
		}
	}
	if bare {
		return s
	}
	return quote(s)
}

// keyPath joins keys as TOML does: profiles.claude.mounts."/root".
func keyPath(keys []string) string {
	quoted := make([]string, len(keys))
	for i, k := range keys {
		quoted[i] = quoteKey(k)
	}
	return strings.Join(quoted, ".")
}

// clip shortens a key for a message: whoever wrote it may have made it of a
// megabyte.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
