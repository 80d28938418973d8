package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock/config"
)

// pickRun finds the one run that a person means: by its id or the beginning of
// it, by its profile, or with nothing given the only one there is here. Of
// several, the one of this workspace is meant.
func (d *deps) pickRun(runs []launch.Known, name string) (launch.Known, error) {
	var found, here []launch.Known
	for _, r := range runs {
		if name != "" && r.Profile != name && !strings.HasPrefix(r.ID, name) || name == "" && r.Workspace != d.cwd {
			continue
		}
		if r.ID == name {
			return r, nil
		}
		found = append(found, r)
		if r.Workspace == d.cwd {
			here = append(here, r)
		}
	}
	if len(found) > 1 && len(here) == 1 {
		found = here
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && name == "":
		return launch.Known{}, hinted{fmt.Errorf("no sandbox runs in this directory"), `"lazaret ps" lists those that run`}
	case len(found) == 0:
		return launch.Known{}, hinted{fmt.Errorf("no sandbox runs that is called %s", config.Show(name)), `"lazaret ps" lists those that run`}
	}
	var ids []string
	for _, r := range found {
		ids = append(ids, fmt.Sprintf("%s (%s in %s)", r.ID, r.Profile, config.Show(d.tilde(r.Workspace))))
	}
	return launch.Known{}, hinted{fmt.Errorf("several sandboxes could be meant: %s", strings.Join(ids, ", ")), "give an id"}
}

// completeRuns offers the ids and the profiles of what runs.
func (d *deps) completeRuns(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return d.completeKnown(args, begun, func(launch.Known) bool { return true })
}

func (d *deps) completeKnown(args []string, begun string, wanted func(launch.Known) bool) ([]string, cobra.ShellCompDirective) {
	env, err := d.launchEnv()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, err := launch.KnownRuns(env)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	seen := map[string]bool{}
	for _, r := range runs {
		if !wanted(r) {
			continue
		}
		for _, word := range []string{r.Profile, r.ID + "\t" + r.Profile + " in " + config.Show(d.tilde(r.Workspace))} {
			if strings.HasPrefix(word, begun) && !seen[word] {
				seen[word] = true
				out = append(out, word)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
