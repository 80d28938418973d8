package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"
)

// groups are the headings of lazaret --help, with the commands below each in
// the order in which a person meets them. A command that is in none comes last.
var groups = []struct {
	title    string
	commands []string
}{
	{"To begin:", []string{"init", "lock", "launch"}},
	{"While a sandbox runs:", []string{"ps", "log", "approve", "attach", "exec", "stop", "resume"}},
	{"What it may touch:", []string{"explain", "diff", "trust", "config"}},
	{"What it did:", []string{"merge", "state", "guard"}},
	{"Checks and repairs:", []string{"doctor", "verify", "pull", "clean", "version"}},
}

// Commands are listed as they were added, not by name.
func init() { cobra.EnableCommandSorting = false }

// group puts the commands under their headings.
func group(root *cobra.Command) {
	place := func(c *cobra.Command) int {
		for i, g := range groups {
			if j := slices.Index(g.commands, c.Name()); j >= 0 {
				return 100*i + j
			}
		}
		return 100 * len(groups)
	}
	all := slices.Clone(root.Commands())
	slices.SortStableFunc(all, func(a, b *cobra.Command) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Name(), b.Name()))
	})
	root.RemoveCommand(all...)
	for _, c := range all {
		if i := place(c) / 100; i < len(groups) {
			c.GroupID = groups[i].title
			if !root.ContainsGroup(c.GroupID) {
				root.AddGroup(&cobra.Group{ID: c.GroupID, Title: c.GroupID})
			}
		}
	}
	root.AddCommand(all...)
}
