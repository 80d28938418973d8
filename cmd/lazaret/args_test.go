package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever is typed wrong, at whichever command, is told in two lines, with the
// status of a wrong use.
func TestWrongUse(t *testing.T) {
	two := regexp.MustCompile(`^lazaret: error: [^\n]+\nlazaret: hint: [^\n]+\n$`)
	try := func(args ...string) {
		t.Helper()
		var out, stderr bytes.Buffer
		d := &deps{env: func(string) string { return "" }, cwd: "/nowhere/at/all"}
		if status := d.run(args, strings.NewReader(""), &out, &stderr); status != exitUsage || out.Len() > 0 || !two.MatchString(stderr.String()) {
			t.Errorf("lazaret %s: status %d\n%s%s", strings.Join(args, " "), status, &out, &stderr)
		}
	}
	n := 0
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		n++
		below := func(more ...string) []string { return append(append([]string(nil), path...), more...) }
		try(below("--frobnicate")...)
		if cmd.HasSubCommands() {
			try(below("frobnicate")...)
		}
		if first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(cmd.Use, cmd.Name()), " [flags]")+" ", "["); strings.TrimSpace(first) != "" {
			try(path...) // it needs what Use names
		}
		if !regexp.MustCompile(`\.\.\.`).MatchString(cmd.Use) && !cmd.HasSubCommands() {
			try(below("1", "2", "3", "4", "5")...)
		}
		for _, c := range cmd.Commands() {
			if !c.Hidden && c.Name() != "help" && cmd.Name() != "completion" {
				visit(c, append(append([]string(nil), path...), c.Name()))
			}
		}
	}
	try("help", "frobnicate")
	try("help", "state", "frobnicate")
	visit(newRootCmd(&deps{env: func(string) string { return "" }}), nil)
	if n < 35 {
		t.Errorf("only %d commands were tried", n)
	}
}
