package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock/config"
)

func newPsCmd(d *deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the sandboxes that are running",
		Long: `Ps asks every lazaret of yours that is running what it runs, and how it is going:
since when, on which branch, how much the network has denied, and how many
requests wait for an answer; and for those that were launched with --detach,
whether somebody is attached. It changes nothing.`,
		Example: `  lazaret ps
  lazaret ps --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := d.launchEnv()
			if err != nil {
				return err
			}
			runs, err := launch.Statuses(cmd.Context(), env)
			if err != nil {
				return err
			}
			if asJSON {
				return psJSON(cmd.OutOrStdout(), runs)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tPROFILE\tSINCE\tSTATE\tBRANCH\tDENIED\tPENDING\tWORKSPACE")
			for _, r := range runs {
				branch := r.Branch
				if branch == "" {
					branch = "-"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", r.ID, r.Profile, max(time.Since(r.Started), 0).Round(time.Second), config.Show(state(r)),
					config.Show(branch), r.Denials, r.Pending, config.Show(d.tilde(r.Workspace)))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// state is how a run is going, and for one that runs detached whether somebody is
// attached to it.
func state(s launch.Status) string {
	switch {
	case s.Attached:
		return s.Phase + ", attached"
	case s.Detached:
		return s.Phase + ", detached"
	}
	return s.Phase
}

// psJSON says what programs may rely on, whatever else lazarets tell each other.
func psJSON(out io.Writer, runs []launch.Status) error {
	type entry struct {
		ID        string    `json:"id"`
		Profile   string    `json:"profile"`
		Workspace string    `json:"workspace"`
		Started   time.Time `json:"started"`
		Phase     string    `json:"phase"`
		Branch    string    `json:"branch"`
		Denials   int       `json:"denials"`
		Pending   int       `json:"pending"`
		Detached  bool      `json:"detached"`
		Attached  bool      `json:"attached"`
	}
	list := []entry{}
	for _, r := range runs {
		list = append(list, entry{r.ID, r.Profile, r.Workspace, r.Started, r.Phase, r.Branch, r.Denials, r.Pending, r.Detached, r.Attached})
	}
	return json.NewEncoder(ascii{out}).Encode(list)
}
