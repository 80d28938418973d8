package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/lock/config"
)

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s: unexpected argument", config.Show(args[0]))
	}
	return nil
}

// words is the check of a command that takes so many arguments, which its Use
// names in their order. Without a most, that is negative.
func words(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			names := strings.Fields(cmd.Use)[1:]
			return usage("%s is missing: %s %s", names[len(args)], cmd.CommandPath(), strings.Join(names, " "))
		case most >= 0 && len(args) > most:
			return noArgs(cmd, args[most:])
		}
		return nil
	}
}

// unknownCommand is the check of a command's arguments where each could only be
// a command of its own.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	path := cmd.CommandPath()
	_, below, _ := strings.Cut(path+" "+config.Show(args[0]), " ")
	hint := fmt.Sprintf("run \"%s --help\"", path)
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		for i, n := range near {
			near[i] = fmt.Sprintf("\"%s %s\"", path, n)
		}
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return &exitStatus{exitUsage, hinted{fmt.Errorf("there is no command %s", below), hint}}
}

// checkHelp has help refuse what is no command: cobra's own shows the commands
// that there are, and succeeds.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			of, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			return unknownCommand(of, rest)
		}
	}
}

// checkCommands has every command that has commands below it say which are
// there, where it is given another.
func checkCommands(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.HasSubCommands() {
			continue
		}
		c.SuggestionsMinimumDistance = 2
		c.Args = unknownCommand
		if c.RunE == nil && c.Run == nil {
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		checkCommands(c)
	}
}
