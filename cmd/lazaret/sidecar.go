package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lazaret/image"
	"lazaret/lock"
	"lazaret/lock/config"
)

func newSidecarCmd(d *deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sidecar",
		Short: "Publish the network sidecar for other versions of lazaret",
		Long: `A lock pins the network sidecar and the escalation client of the lazaret that
made it. Published, another lazaret can launch that lock too.`,
		Example: `  lazaret sidecar`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSidecarPushCmd(d))
	return cmd
}

func newSidecarPushCmd(d *deps) *cobra.Command {
	return &cobra.Command{
		Use:   "push REF",
		Short: "Push this lazaret's sidecar and escalation client to a registry",
		Long: `Push uploads the network sidecar of this lazaret for every platform, with the
escalation client beside it in the same index, and names it REF, a registry
reference with a tag. The same lazaret pushes the same bytes each time.

[network] sidecar = "REF" in lazaret.toml then has "lazaret lock" write REF into
the lock, so that another lazaret can get what is pinned there, by digest. Give
each version a tag of its own: registries may delete what has none.

It changes nothing on this machine. Credentials are those of podman or docker.`,
		Example: `  lazaret sidecar push registry.example/team/lazaret-sidecar:v1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("push to one reference: lazaret sidecar push REF")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := d.newProgress(cmd.ErrOrStderr())
			bar.show("pushing the sidecar")
			defer bar.clear()
			resolver := image.NewResolver(image.Options{Keychain: image.NewKeychain(d.environ, d.home, d.cwd), Progress: bar.image})
			done, err := resolver.Publish(cmd.Context(), args[0], version)
			bar.clear()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s: %s\n", config.Show(args[0]), done.Index)
			helpers, err := ownHelpers()
			if err != nil {
				return err
			}
			tellOwn(out, helpers)
			if done.Was != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: the tag named %s before: locks that pin that can get it as long as the registry keeps it without a tag\n", done.Was)
			}
			return nil
		},
	}
}

// tellOwn lists what others agree to when they run this build's programs.
func tellOwn(out io.Writer, h lock.Helpers) {
	for _, p := range lock.Platforms() {
		sidecar, client := digestsOf(h, p)
		fmt.Fprintf(out, "  %s %s sidecar image\n", sidecar, p)
		fmt.Fprintf(out, "  %s %s %s\n", client, p, image.EscalateName)
	}
}

// digestsOf is what a person agrees to of each platform's helpers.
func digestsOf(h lock.Helpers, platform string) (sidecar, client string) {
	k := lock.PlatformKey(platform)
	return h.Sidecar[k].Config, h.Escalate[k].Binary
}
