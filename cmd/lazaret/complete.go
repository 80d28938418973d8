package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeProfiles offers the lock's profiles to a shell. Where there is no
// lock that can be read, there is nothing to offer.
func (d *deps) completeProfiles(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	given, _ := cmd.Flags().GetString("lock")
	path, shown, err := lockPath(d, layerOptions{}, given)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, _, err := readLock(path, shown)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, name := range profileNames(file) {
		if strings.HasPrefix(name, begun) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeProfile is completeProfiles for a command that takes only one.
func (d *deps) completeProfile(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return d.completeProfiles(cmd, args, begun)
}
