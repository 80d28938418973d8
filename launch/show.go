package launch

import (
	"fmt"
	"strings"

	shellquote "github.com/kballard/go-shellquote"

	"lazaret/lock/config"
)

// shown writes an argument vector so that a shell would read it back, on one
// line and without a character that acts on the terminal: paths and values
// come from a repository.
func shown(args ...string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = shellquote.Join(a)
		if strings.ContainsFunc(a, hidden) {
			out[i] = ansiC(a)
		}
	}
	return strings.Join(out, " ")
}

// hidden tells of a character that a person does not see as itself.
func hidden(r rune) bool { return config.Show(string(r)) != string(r) }

// ansiC is the $'…' form of bash and POSIX.1-2024.
func ansiC(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("'")
	return b.String()
}
