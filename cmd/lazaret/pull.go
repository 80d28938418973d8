package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock/config"
)

func newPullCmd(d *deps) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "pull [flags] [PROFILE...]",
		Short: "Fetch the images of profiles ahead of their launch",
		Long: `Pull brings the images that lazaret.lock pins, of the named profiles or of all,
into podman's storage, verified as launch verifies them, so that a launch needs
no network; another lazaret's sidecar and escalation client too, where the lock
pins those. Nothing else changes, and no container is started. Like launch, it
obeys a lock once you have agreed to it.`,
		Example: `  lazaret pull
  lazaret pull claude`,
		ValidArgsFunction: d.completeProfiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return runPull(cmd, d, o, args) },
	}
	o.flags(cmd)
	return cmd
}

func runPull(cmd *cobra.Command, d *deps, o trustOptions, profiles []string) error {
	l, err := d.openLock(o)
	if err != nil {
		return err
	}
	if len(profiles) == 0 {
		profiles = profileNames(l.file)
	}
	for _, name := range profiles {
		if err := d.pull(cmd, l, name); err != nil {
			return fmt.Errorf("pulling for %s: %w", config.Show(name), err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is here\n", name, config.Show(l.file.Profiles[name].Image.Ref))
	}
	return nil
}

func (d *deps) pull(cmd *cobra.Command, l lockFile, profile string) error {
	on, err := d.ground(cmd.Context(), l, profile, looking{noSecrets: true}, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	host := on.host
	plan, err := launch.Resolve(l.file, profile, host, launch.Options{ID: launch.NewID(), Started: time.Now(), Ephemeral: true, SkipSetup: true, Helpers: on.helpers})
	if err != nil {
		return err
	}
	if err := d.agreed(cmd, l, profile, host); err != nil {
		return err
	}
	plan.OnlyImages()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	screen := d.newLive(cmd.ErrOrStderr(), true)
	defer screen.close(true)
	images := slices.DeleteFunc(slices.Clone(plan.Steps), func(s step.Step) bool { return !slices.Contains([]string{rowImage, rowNetwork}, rowOf(s.Name)) })
	screen.show(newBoard(profile, "", images, map[string]string{rowImage: facts(plan, l.file, true)[rowImage]}))
	defer context.AfterFunc(ctx, screen.interrupt)()
	stdin, stdout, stderr := files(cmd)
	_, err = plan.Run(ctx, launch.IO{Stdin: stdin, Stdout: stdout, Stderr: stderr, Observe: func(e step.Event) error {
		screen.event(e, plan.Occupies)
		if d.observe != nil {
			return d.observe(e)
		}
		return nil
	}})
	return unlessSignalled(ctx, err)
}
