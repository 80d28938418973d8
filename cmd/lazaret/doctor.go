package main

import (
	"time"

	"github.com/spf13/cobra"

	"lazaret/launch"
)

func newDoctorCmd(d *deps) *cobra.Command {
	var o attackOptions
	var asJSON, attack bool
	cmd := &cobra.Command{
		Use:   "doctor [flags] [PROFILE]",
		Short: "Check this machine, or prove what a profile's sandbox withstands",
		Long: `Doctor alone looks at everything that launching needs of this machine, says what
it found and what to do, and starts a sandbox of lazaret's own to see whether one
really runs. It exits with 1 where launching cannot work.

With a profile, it starts a sandbox of that, as launch does but with a probe as
its command, and shows whether what the lock denies is denied there and whether
what it allows works. It connects to the names that the profile allows, and to
one address of each allowed range. It exits with 1 where something is not as the
lock has it.

With --attack, it plays a hostile agent: it starts the profile's sandbox in a
workspace made for it, beside the state it keeps, and tries everything of
lazaret's catalogue of attacks. Nothing of yours is in there, no command of this
machine is run, and no other machine is tried but the addresses where clouds have
their metadata, which every profile denies unless it says otherwise. PASS is an
attack that was tried and withstood, FAIL one that succeeded; what could not be
tried is said so. The image's own shell tries them: a hostile image can lie about
what it tried, but what the harness sees for itself, outside of the sandbox, it
cannot hide. With --plain, the same is tried against "podman run" with the same
mounts. It exits with 1 where an attack succeeded.

Like launch, it undoes everything it did to this machine.`,
		Example: `  lazaret doctor
  lazaret doctor --json
  lazaret doctor shell
  lazaret doctor --attack shell
  lazaret doctor --attack --plain --only network,git shell`,
		ValidArgsFunction: d.completeProfile,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one profile at a time")
			}
			if len(args) == 1 {
				o.profile = args[0]
			}
			switch {
			case len(args) == 1 && asJSON && !attack:
				return usage("--json is for what is said of this machine, without a profile, and for --attack")
			case attack && len(args) == 0:
				return usage("which profile? lazaret doctor --attack PROFILE")
			case !attack && (o.plain || len(o.only) > 0):
				return usage("--plain and --only are for --attack")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return examineHost(cmd, d, asJSON)
			}
			if attack {
				o.json = asJSON
				return runAttacks(cmd, d, o)
			}
			return runDoctor(cmd, d, o.launchOptions)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of what was found")
	cmd.Flags().BoolVar(&attack, "attack", false, "attack the profile's sandbox, in a workspace made for it")
	cmd.Flags().BoolVar(&o.plain, "plain", false, "with --attack: attack plain podman too, with the same mounts")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "with --attack: these `attacks` or areas only")
	cmd.Flags().BoolVar(&o.user, "user", false, "use your own lock although a parent directory has a config")
	cmd.Flags().StringVar(&o.lock, "lock", "", "the lock `file`, in place of lazaret.lock")
	return cmd
}

func runDoctor(cmd *cobra.Command, d *deps, o launchOptions) error {
	locked, err := d.openLock(trustOptions{lock: o.lock, user: o.user})
	if err != nil {
		return err
	}
	on, err := d.ground(cmd.Context(), locked, o.profile, looking{}, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	host := on.host
	opts := launch.Options{ID: launch.NewID(), Started: time.Now(), Command: []string{launch.ProbePath, probeCommand}, Ephemeral: true, SkipSetup: true, Helpers: on.helpers}
	// Resolved twice: what is to be tried depends on what the plan denies.
	plan, err := launch.Resolve(locked.file, o.profile, host, opts)
	if err != nil {
		return err
	}
	own, err := launch.HostAddresses()
	if err != nil {
		return err
	}
	checks := checksOf(locked.file.Profiles[o.profile].Network, plan, own)
	for _, c := range checks {
		opts.Command = append(opts.Command, c.what, c.arg)
	}
	if plan, err = launch.Resolve(locked.file, o.profile, host, opts); err != nil {
		return err
	}
	if err := plan.WithProbe(); err != nil {
		return err
	}
	if err := d.agreed(cmd, locked, o.profile, host); err != nil {
		return err
	}
	if err := d.agreedHelpers(cmd, plan); err != nil {
		return err
	}
	if err := examine(cmd, d, plan, checks); err != nil {
		return err
	}
	return tellChecks(cmd.OutOrStdout(), checks, plan.HasNetwork())
}
