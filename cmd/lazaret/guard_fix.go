package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lazaret/gitshadow/guard"
	"lazaret/lock/config"
)

// fixAll repairs what can be, asking for each, and looks again.
func (d *deps) fixAll(cmd *cobra.Command, l look, o guardOptions) (look, error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if d.live(ctx, d.cwd) {
		return look{}, hinted{errors.New("a sandbox of this workspace is running: it could put back what is taken away, while it is"), `end it first; "lazaret ps" lists what runs`}
	}
	list := guard.Collapse(l.found)
	list = slices.DeleteFunc(list, func(f guard.Finding) bool { return f.Severity == guard.Note || f.Repair == guard.NoRepair })
	guard.Order(list)
	if o.yes {
		// Where nothing is known of before, only the person knows what is theirs.
		n := len(list)
		list = slices.DeleteFunc(list, func(f guard.Finding) bool { return f.State == guard.Present && f.Repair == guard.Aside })
		if n > len(list) {
			fmt.Fprintln(out, "not known to be a sandbox's, so left as it is; without --yes you are asked for each")
		}
	}
	stdin, _, _ := files(cmd)
	ask := !o.yes
	if ask && len(list) > 0 && (stdin == nil || !term.IsTerminal(int(stdin.Fd()))) {
		return look{}, hinted{errors.New("nobody can be asked: standard input is not a terminal"), `"lazaret guard --fix --yes" does not ask`}
	}
	done := map[string]bool{}
	for _, f := range list {
		at := l.path(f.Root, f.Path)
		if done[at] {
			continue // two findings, one file
		}
		if ask {
			fmt.Fprintf(out, "%s: %s\n  %s\n", f.Severity, l.line(f), config.Show(f.Why))
			yes, err := confirm(stdin, out, repairWords[f.Repair])
			if err != nil {
				return look{}, err
			}
			if !yes {
				continue
			}
		}
		did, err := f.Do()
		if err != nil {
			fmt.Fprintf(out, "%s: left as it is: %s\n", config.Show(at), config.Show(err.Error()))
			continue
		}
		done[at] = true
		fmt.Fprintf(out, "%s: %s\n", config.Show(at), config.Show(did))
	}
	again := d.lookAt(ctx, l.record, names(l.now.Roots), o.all)
	again.tell(out, o.all)
	for _, f := range guard.Collapse(again.found) {
		if f.Severity > guard.Note && f.Repair == guard.NoRepair {
			fmt.Fprintln(out, `what is left is for you to settle; "lazaret guard --accept" says that it is yours`)
			break
		}
	}
	return again, nil
}

var repairWords = map[guard.Repair]string{
	guard.Aside: "Move it aside?",
	guard.Strip: "Take the setuid bits off?",
}

func names(in []guard.Name) (out []string) {
	for _, n := range in {
		out = append(out, string(n))
	}
	return out
}

// acceptAll makes what is there what was there before.
func (d *deps) acceptAll(cmd *cobra.Command, l look, o guardOptions) error {
	if !o.yes {
		stdin, _, _ := files(cmd)
		if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
			return hinted{errors.New("nobody can be asked: standard input is not a terminal"), `"lazaret guard --accept --yes" does not ask`}
		}
		switch ok, err := confirm(stdin, cmd.OutOrStdout(), "Is all of this yours?"); {
		case err != nil:
			return err
		case !ok:
			return &exitStatus{exitError, errNothingDone}
		}
	}
	store, err := d.guardStore()
	if err != nil {
		return err
	}
	r := guard.Record{Version: 1, Workspace: guard.Name(d.cwd)}
	if l.record != nil {
		r = *l.record
	}
	// What is accepted is what was shown, not what may be there by now.
	if err := store.Put(r.Accept(l.now)); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "yours from now on")
	return nil
}
