package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"lazaret/internal/proc"
	"lazaret/launch"
	"lazaret/launch/term"
	"lazaret/lock/config"
)

// up is what a detached lazaret tells the one that started it.
type up struct {
	ID      string `json:"id"`
	Profile string `json:"profile"`
	Ended   bool   `json:"ended"` // its command has ended already
}

// backgroundFlag is the hidden flag of a launch that another one detached, with
// the size of the terminal. Descriptor 3 is where it says that it is up.
const backgroundFlag = "background"

// detach starts this launch again, in a session of its own, and waits until its
// sandbox is up. Until then that is the foreground: it says what is wrong on
// this terminal, and goes with this process.
func (d *deps) detach(cmd *cobra.Command, o launchOptions) (int, error) {
	if d.stateDir() == "" {
		return 0, noHome("what a detached sandbox's lazaret says")
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program: %w", err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("making a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "up"), os.NewFile(uintptr(fds[1]), "up")
	defer ours.Close()
	_, stdout, stderr := files(cmd)
	cols, rows := 80, 24
	for _, f := range []*os.File{stdout, stderr, os.Stdin} {
		if w, h, err := xterm.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			cols, rows = w, h
			break
		}
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	pid, wait, err := proc.Start(context.WithoutCancel(ctx), proc.Cmd{
		Argv:       d.backgroundArgv(cmd, o, exe, fmt.Sprintf("%dx%d", cols, rows)),
		Env:        backgroundEnv(d.environ),
		Dir:        d.cwd,
		Stderr:     stderr,
		ExtraFiles: []*os.File{theirs},
		Session:    true,
	})
	theirs.Close()
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() {
		if s, ok := context.Cause(ctx).(signalled); ok {
			unix.Kill(pid, s.Signal) // nobody waits for it before we do
		}
	})()
	var u up
	if json.NewDecoder(ours).Decode(&u) != nil {
		return max(proc.ExitStatus(wait()), 0), nil // it has said why
	}
	fmt.Fprintln(cmd.OutOrStdout(), u.ID)
	if u.Ended {
		fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: its command has ended already; \"lazaret attach %s\" says how\n", u.ID)
		return 0, nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: %s runs detached; \"lazaret attach %s\" shows it until %s, \"lazaret stop %s\" ends it\n", config.Show(u.Profile), u.ID, term.LeaveKeys, u.ID)
	if fix := launch.EndsAtLogout(userName()); fix != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "lazaret: note: systemd ends it when you log out; \"%s\" changes that\n", fix)
	}
	return 0, nil
}

// backgroundArgv is the command line of the launch that goes on without this
// terminal.
func (d *deps) backgroundArgv(cmd *cobra.Command, o launchOptions, exe, size string) []string {
	argv := []string{exe, "launch", "--" + backgroundFlag + "=" + size}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "detach" {
			argv = append(argv, "--"+f.Name+"="+f.Value.String())
		}
	})
	argv = append(argv, o.profile)
	if len(o.command) > 0 {
		argv = append(append(argv, "--"), o.command...)
	}
	return argv
}

// backgroundEnv is its environment: the terminal it will have can do what
// terminals usually can, where nobody says what it will be.
func backgroundEnv(environ []string) []string {
	out := slices.Clone(environ)
	value := func(name string) (v string) {
		for _, kv := range out {
			if k, w, _ := strings.Cut(kv, "="); k == name {
				v = w
			}
		}
		return v
	}
	if t := value("TERM"); t == "" || t == "dumb" {
		out = append(out, "TERM=xterm-256color")
	}
	if value("LC_ALL") == "" {
		out = append(out, "LC_ALL=") // as it is, and no other
	}
	return out
}

// hangUp tells this process what its terminal would tell it.
func hangUp() { unix.Kill(os.Getpid(), syscall.SIGHUP) }
