package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/testdata/attacks"
)

// attackOptions say what is tried against a profile.
type attackOptions struct {
	launchOptions
	only  []string // ids or areas; empty: all
	plain bool
	json  bool
}

// chosen are the attacks that are asked for.
func (o attackOptions) chosen() ([]attacks.Attack, error) {
	all, err := attacks.Load()
	if err != nil || len(o.only) == 0 {
		return all, err
	}
	var list []attacks.Attack
	for _, name := range o.only {
		n := len(list)
		for _, a := range all {
			if (a.ID == name || a.Area == name) && !slices.ContainsFunc(list, func(b attacks.Attack) bool { return b.ID == a.ID }) {
				list = append(list, a)
			}
		}
		if len(list) == n {
			return nil, usage("there is no attack and no area called %q: without --only, the table has them all", name)
		}
	}
	return list, nil
}

// runAttacks tries the catalogue on a profile's sandbox: with its image, network
// and rules, in a workspace made for it, of which nothing is left.
func runAttacks(cmd *cobra.Command, d *deps, o attackOptions) (err error) {
	list, err := o.chosen()
	if err != nil {
		return err
	}
	locked, err := d.openLock(trustOptions{lock: o.lock, user: o.user})
	if err != nil {
		return err
	}
	on, err := d.ground(cmd.Context(), locked, o.profile, looking{}, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	host := on.host
	sweepArenas(cmd.Context(), os.TempDir(), host.Podman.Path, d.env)
	if err := d.agreed(cmd, locked, o.profile, host); err != nil {
		return err
	}
	plan, err := launch.Resolve(locked.file, o.profile, host, launch.Options{ID: launch.NewID(), Started: time.Now(), Helpers: on.helpers, SkipSetup: true})
	if err != nil {
		return err
	}
	if err := d.agreedHelpers(cmd, plan); err != nil {
		return err
	}
	// The arena's sandboxes find it where it is.
	if err := d.pull(cmd, locked, o.profile); err != nil {
		return fmt.Errorf("getting the image: %w", err)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	out := attackReport{attacks: list}
	bar := d.newProgress(cmd.ErrOrStderr())
	defer bar.clear()
	for _, plain := range []bool{false, true} {
		if plain && !o.plain {
			continue
		}
		trials, how, err := d.attackSide(ctx, locked, plan, plain, list, bar)
		if err != nil {
			return unlessSignalled(ctx, err)
		}
		if plain {
			out.plain, out.plainHow = trials, how
		} else {
			out.lazaret = trials
		}
	}
	bar.clear()
	return out.tell(cmd.OutOrStdout(), o.json)
}

// attackSide makes an arena, has one kind of sandbox attacked in it, and removes
// it.
func (d *deps) attackSide(ctx context.Context, l lockFile, of *launch.Plan, plain bool, list []attacks.Attack, bar *progress) (_ map[string]trial, how string, err error) {
	profile, host := of.Record.Profile, of.Host
	a, err := newArena(d, l.file, profile, host)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, a.remove()) }()
	for _, x := range of.Foreign {
		a.foreign = append(a.foreign, x.Digest)
	}
	f := &fight{arena: a, bar: bar, trials: map[string]trial{}}
	if plain {
		p, err := newPlainEngine(ctx, a, host, l.file.Profiles[profile])
		if err != nil {
			return nil, "", err
		}
		f.engine, how = p, p.how
		list = slices.DeleteFunc(slices.Clone(list), func(k attacks.Attack) bool { return k.Plain == attacks.Untried })
	} else {
		e := lazaretEngine{a}
		a.keep.patience = 10 * time.Second // for lazaret's own git, and its guard
		if err := e.prepare(ctx); err != nil {
			return nil, "", err
		}
		f.engine = e
	}
	return f.trials, how, f.run(ctx, slices.DeleteFunc(slices.Clone(list), func(k attacks.Attack) bool { return !k.Runnable() }))
}

// trial is what became of one attack.
type trial struct {
	output string   // what its scripts printed
	later  string   // what the next sandbox's script printed
	found  []string // what the harness saw of it
	shared bool     // the repository is the person's own, as the profile has it
	took   time.Duration
	lost   string // why it could not be tried, or ""
}

// Verdicts on an attack.
const (
	verdictHeld  = "PASS" // tried, and withstood
	verdictLost  = "FAIL" // it succeeded
	verdictKnown = "KNOWN"
	verdictNone  = "skipped"
)

// judge gives the verdict and what it rests on.
func (t trial) judge(a attacks.Attack) (verdict, why string) {
	succeeded := verdictLost
	if a.Known != "" || a.Writeback && t.shared {
		succeeded = verdictKnown
	}
	if len(t.found) > 0 {
		return succeeded, strings.Join(t.found, "; ")
	}
	var outputs []string
	if a.Trap == nil {
		outputs = append(outputs, t.output)
	}
	if a.Later != "" {
		outputs = append(outputs, t.later)
	}
	held := ""
	for _, o := range outputs {
		kind, text := outcome(o)
		switch {
		case kind == "won":
			return succeeded, text
		case t.lost != "":
			return verdictNone, t.lost
		case kind == "cannot":
			return verdictNone, text
		case kind == "":
			return verdictNone, "could not be tried: it ended without a result: " + lastOf(o)
		}
		held = text
	}
	return verdictHeld, held
}

// outcome finds what a script ended with. Won counts wherever it stands.
func outcome(output string) (kind, text string) {
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		for _, k := range []string{"won", "held", "cannot"} {
			if rest, ok := strings.CutPrefix(line, k+": "); ok && kind != "won" {
				kind, text = k, rest
			}
		}
	}
	return kind, text
}

func lastOf(output string) string {
	output = strings.TrimRight(output, "\r\n")
	if len(output) > 300 {
		output = output[len(output)-300:]
	}
	return fmt.Sprintf("%q", output[strings.LastIndexByte(output, '\n')+1:])
}
