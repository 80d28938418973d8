package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lazaret/lock/config"
)

// tell writes what became of the config. A long line of the agent's must not
// pass for another one below it: it is folded.
func (e *changedConfig) tell(w io.Writer, d *deps, exists bool, text string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", e)
	tellConfig(&b, e.session.Exists, e.session.Config, exists, text)
	io.WriteString(w, d.lines(w, b.String()))
}

// tellConfig says how a config differs from what it was. The order of lines
// matters: the header of a table says whose the lines below it are, and one that
// moves gives them to another profile.
func tellConfig(w io.Writer, existed bool, old string, exists bool, new string) {
	switch {
	case existed && !exists:
		fmt.Fprintln(w, "it is gone, and was")
	case exists && new == "":
		fmt.Fprintln(w, "it is empty now")
	}
	for n, line := range strings.Split(string(diff.Diff("", []byte(old), "", []byte(new))), "\n") {
		switch {
		case n < 3 || line == "": // its own header
		case line[0] == '@':
			var from, lines, to int
			fmt.Sscanf(line, "@@ -%d,%d +%d,", &from, &lines, &to)
			fmt.Fprintf(w, "@@ line %d%s\n", to, inTable(new, to))
		case line[0] == '\\':
			fmt.Fprintln(w, "  (no end of line)")
		default:
			fmt.Fprintf(w, "%c %s\n", line[0], config.Show(line[1:]))
		}
	}
	fmt.Fprintln(w)
}

// inTable says which header of a table is above a line, counted from one. What
// looks like one in a string is none.
func inTable(text string, n int) string {
	headers, known := config.Headers([]byte(text))
	at, _ := slices.BinarySearch(headers, n)
	if at == 0 || n > known {
		return ""
	}
	return ", below " + config.Show(strings.TrimSpace(strings.Split(text, "\n")[headers[at-1]-1]))
}
