package main

import (
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
)

// TestExamples: what --help shows is a command line that lazaret takes.
func TestExamples(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Runnable() && cmd.HasParent() && !cmd.Hidden && cmd.Example == "" && cmd.Name() != "help" {
			t.Errorf("%s shows no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " # ")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			argv, err := shellquote.Split(line)
			for err == nil && len(argv) > 0 && strings.Contains(argv[0], "=") {
				argv = argv[1:] // NAME=value before the command
			}
			if err != nil || len(argv) == 0 || argv[0] != "lazaret" {
				t.Errorf("%s: %q is not a lazaret command: %v", cmd.CommandPath(), line, err)
				continue
			}
			// A fresh tree each time: flags keep what was parsed into them.
			found, rest, err := newRootCmd(&deps{}).Find(argv[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			} else if found.Name() != cmd.Name() {
				t.Errorf("%s: %q runs %s", cmd.CommandPath(), line, found.Name())
			}
		}
	}
	visit(newRootCmd(&deps{}))
}
