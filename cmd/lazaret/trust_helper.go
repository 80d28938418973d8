package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"lazaret/launch"
	"lazaret/launch/trust"
	"lazaret/lock"
	"lazaret/lock/config"
)

// A lock may pin the helper programs of another lazaret. Agreeing to a lock is
// not agreeing to these: what a person reads there is a hash, and the sidecar
// is a program on the host's kernel. So they are asked about by themselves.

// trustedHelpers are the digests that the person's own configuration lists.
func (d *deps) trustedHelpers() ([]string, error) {
	path := d.userConfig()
	if path == "" || !exists(path) {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.tilde(path), err)
	}
	data, err := config.ReadFile(real)
	if err != nil {
		return nil, err
	}
	return config.TrustedHelpers(config.Layer{Kind: config.User, Name: d.tilde(path), Data: data})
}

// agreedHelpers has the plan run the programs of another lazaret that the
// person agreed to, now or before, or is an error.
func (d *deps) agreedHelpers(cmd *cobra.Command, plan *launch.Plan) error {
	if len(plan.Foreign) == 0 {
		return nil
	}
	listed, err := d.trustedHelpers()
	if err != nil {
		return err
	}
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	var open []lock.Foreign
	for _, x := range plan.Foreign {
		yes, err := store.Helper(x.Digest)
		var unsafe *trust.UnsafeError
		if errors.As(err, &unsafe) {
			return err
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: warning: %s, so it counts for nothing\n", config.Show(err.Error()))
			yes = nil
		}
		if yes != nil || slices.Contains(listed, x.Digest) {
			plan.Agree(x.Digest)
			continue
		}
		open = append(open, x)
	}
	if len(open) == 0 {
		return nil
	}
	if err := askHelpers(cmd, open); err != nil {
		return err
	}
	for _, x := range open {
		err := store.PutHelper(trust.Helper{Digest: x.Digest, Kind: x.Kind, Workspace: d.cwd, Since: time.Now().Truncate(time.Second)})
		if err != nil {
			return err
		}
		plan.Agree(x.Digest)
	}
	return nil
}

// notVouched is a program of another lazaret that nobody here agreed to.
type notVouched struct {
	list []lock.Foreign
	said bool
}

func (e *notVouched) Error() string {
	if e.said {
		return "you did not agree, so nothing was done"
	}
	s := ""
	for _, x := range e.list {
		if s != "" {
			s += "\n"
		}
		s += (&lock.HelperError{Name: x.Kind, Platform: x.Platform, Found: x.Digest, Own: x.Own}).Error()
	}
	return s
}

// Hint is the next command.
func (e *notVouched) Hint() string {
	own := `"lazaret lock" with this one pins its own`
	if ref := e.list[0].Ref; ref != "" {
		own = `"lazaret sidecar push" and "lazaret lock --update" with this one pin its own`
	}
	if e.said {
		return own + `; or install the lazaret whose "lazaret version" shows those digests`
	}
	s := `install the lazaret whose "lazaret version" shows these digests; or ` + own + `; or run them all the same: "lazaret trust helper`
	for _, x := range e.list {
		s += " " + x.Digest
	}
	return s + `"`
}

func askHelpers(cmd *cobra.Command, list []lock.Foreign) error {
	stdin, _, _ := files(cmd)
	if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
		return &notVouched{list: list}
	}
	to, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return &notVouched{list: list}
	}
	defer to.Close()
	tellHelpers(to, list)
	switch ok, err := confirm(stdin, to, "Run what another lazaret brings?"); {
	case err != nil:
		return err
	case ok:
		return nil
	}
	return &notVouched{list, true}
}

// meaning says of a kind of program what a yes to it is.
var meaning = map[string]string{
	lock.HelperSidecar: `It runs on this machine's own kernel, not under gVisor, with NET_ADMIN over the
    sandbox's network and a way out of its own. It decides what the sandbox reaches, and
    sees all that goes through.`,
	lock.HelperClient: `It runs inside the sandbox. What it asks of this machine is asked of you, as ever.`,
}

func tellHelpers(w io.Writer, list []lock.Foreign) {
	fmt.Fprintf(w, "the lock was made by another lazaret, and brings programs that this one does not know\n\n")
	for _, x := range list {
		from := "from " + config.Show(x.Ref)
		if x.Ref == "" {
			from = "of which the lock does not say where it comes from"
		}
		fmt.Fprintf(w, "  ! %s for %s, %s\n    %s\n    this lazaret's own is\n    %s\n    %s\n\n", x.Kind, x.Platform, from, x.Digest, x.Own, meaning[x.Kind])
	}
	fmt.Fprintf(w, "Compare the digests with what \"lazaret version\" says where the lock was made.\n\n")
}

func newTrustHelperCmd(d *deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "helper DIGEST...",
		Short: "Agree to run another lazaret's sidecar or escalation client",
		Long: `Helper agrees to run helper programs of another lazaret, by digest: a lock that
another lazaret made pins its network sidecar, which runs on this machine's own
kernel and decides what a sandbox reaches. Launch asks on a terminal, and names
this command elsewhere. "lazaret version" prints a lazaret's own digests.

Digests under [trust] helpers in ~/.config/lazaret/config.toml are agreed to as
well. Nothing else changes, and "lazaret trust revoke" takes it back.`,
		Example: `  lazaret trust helper sha256:0f3a2c4e5d6b7a8990817263545f6e7d8c9bafbecddcebfa0918273645546372`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("which digest? lazaret trust helper DIGEST...")
			}
			for _, a := range args {
				if !digestPattern.MatchString(a) {
					return usage("%s is not sha256: and 64 digits", config.Show(a))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := d.trustStore()
			if err != nil {
				return err
			}
			for _, a := range args {
				if err := store.PutHelper(trust.Helper{Digest: a, Workspace: d.cwd, Since: time.Now().Truncate(time.Second)}); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: agreed to\n", a)
			}
			return nil
		},
	}
	return cmd
}

// foreignTo lists what a lock brings of another lazaret, for any of its
// profiles, each program once.
func foreignTo(f *lock.File, platform string) (list []lock.Foreign) {
	own, err := ownHelpers()
	if err != nil {
		return nil
	}
	for _, name := range profileNames(f) {
		found, err := f.ForeignHelpers(name, platform, own)
		if err != nil {
			continue // launch says what is wrong
		}
		for _, x := range found {
			if !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}
