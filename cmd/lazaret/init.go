package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"lazaret/lock"
	"lazaret/lock/config"
)

type initOptions struct {
	profiles []string
	image    string
}

func newInitCmd(d *deps) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Write a lazaret.toml to begin with",
		Long: `Init looks which agents are installed on this machine, asks which of them shall
have a profile, and writes a lazaret.toml with comments, in the current
directory. A file that is there is never changed, and nothing else is written.

It knows profiles for ` + strings.Join(starterNames(), ", ") + `;
shell needs no registry. With --profile it asks nothing: a name of these takes
the profile that it stands for, any other one needs --image.`,
		Example: `  lazaret init
  lazaret init --profile shell
  lazaret init --profile claude --profile codex
  lazaret init --profile agent --image docker.io/library/node:24-trixie`,
		Args: func(_ *cobra.Command, args []string) error {
			if err := noArgs(nil, args); err != nil {
				return err
			}
			if o.image != "" && len(o.profiles) != 1 {
				return usage("--image goes with one --profile")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runInit(cmd, d, o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.profiles, "profile", nil, "write this profile, without asking; may be repeated")
	f.StringVar(&o.image, "image", "", "the profile's image: a registry `reference`, oci:DIR or builtin:shell")
	cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(starterNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runInit(cmd *cobra.Command, d *deps, o initOptions) error {
	if d.noProject() {
		return hinted{
			fmt.Errorf("%s is not the directory of a project, and nothing is launched in it", config.Show(d.cwd)),
			"change to the directory of one project",
		}
	}
	path := filepath.Join(d.cwd, lock.WorkspacePath)
	if exists(path) {
		return alreadyThere()
	}
	if len(o.profiles) == 0 {
		var err error
		if o.profiles, err = d.askProfiles(cmd); err != nil {
			return err
		}
	}
	text, err := starter(o.profiles, o.image)
	if err != nil {
		return err
	}
	if err := createWhole(path, text); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s: %s\n", lock.WorkspacePath, profilesText(o.profiles))
	launch := "lazaret launch"
	if len(o.profiles) > 1 {
		launch += " " + o.profiles[0]
	}
	fmt.Fprintf(out, "next: look it through, then run \"lazaret lock\" and \"%s\"\n", launch)
	return nil
}

// noProject reports whether this is a directory that nothing is launched in.
func (d *deps) noProject() bool { return d.cwd == d.home || d.cwd == "/" }

// toBegin is what to do where there is nothing of lazaret's yet.
func (d *deps) toBegin(here string) string {
	if d.noProject() {
		return "change to the directory of one project"
	}
	return here
}

func alreadyThere() error {
	return hinted{
		fmt.Errorf("there is a %s here, and it is left as it is", lock.WorkspacePath),
		`run "lazaret lock", or add profiles to it yourself: "lazaret config schema" has all there can be`,
	}
}

func profilesText(names []string) string {
	if len(names) == 1 {
		return "profile " + names[0]
	}
	return "profiles " + strings.Join(names, ", ")
}

// installed lists the agents that a person has on this machine. Nothing is run.
func (d *deps) installed() (found []string) {
	for _, name := range starterNames() {
		if name == plainStarter {
			continue
		}
		if _, err := d.program(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// askProfiles asks which profiles to write, offering those of the agents that
// are here, else the one that needs nothing.
func (d *deps) askProfiles(cmd *cobra.Command) ([]string, error) {
	offered := d.installed()
	stdin, _, _ := files(cmd)
	if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
		return nil, nobodyToAsk(offered)
	}
	to, err := os.OpenFile(terminalPath, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nobodyToAsk(offered)
	}
	defer to.Close()
	if len(offered) > 0 {
		fmt.Fprintf(to, "Installed here: %s.\n", strings.Join(offered, ", "))
	} else {
		fmt.Fprintln(to, "No agent that lazaret knows is installed here.")
		offered = []string{plainStarter}
	}
	fmt.Fprintf(to, "There are profiles for %s.\n", strings.Join(starterNames(), ", "))
	for range 3 {
		said, err := askLine(stdin, to, fmt.Sprintf("Which ones? [%s] ", strings.Join(offered, " ")))
		if err != nil {
			return nil, err
		}
		names := strings.FieldsFunc(said, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
		if len(names) == 0 {
			return offered, nil
		}
		i := slices.IndexFunc(names, func(n string) bool { return !slices.Contains(starterNames(), n) })
		if i < 0 {
			return names, nil
		}
		near := config.Nearest(names[i], starterNames())
		if near != "" {
			near = " Did you mean " + near + "?"
		}
		fmt.Fprintf(to, "There is none for %s.%s\n", config.Show(names[i]), near)
	}
	return nil, hinted{errors.New("no profile was chosen, so nothing was done"), "give --profile NAME and --image REF for one of your own"}
}

func nobodyToAsk(offered []string) error {
	if len(offered) == 0 {
		offered = []string{plainStarter}
	}
	return hinted{
		errors.New("which profiles? nobody can be asked without a terminal"),
		fmt.Sprintf("run \"lazaret init --profile %s\", or another of %s", strings.Join(offered, " --profile "), strings.Join(starterNames(), ", ")),
	}
}

// askLine asks and reads one line from the terminal.
func askLine(stdin *os.File, to io.Writer, question string) (string, error) {
	fmt.Fprint(to, question)
	answer := make([]byte, 1024)
	n, err := stdin.Read(answer)
	if n == 0 && err == io.EOF {
		return "", hinted{errors.New("there was no answer, so nothing was done"), "run it again, or give --profile NAME"}
	}
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(string(answer[:n])), nil
}

// createWhole makes a file with all its text, or none. What is at path, be it
// a link that leads nowhere, stays.
func createWhole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", lock.WorkspacePath, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", lock.WorkspacePath, err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// Not every file system knows how; a link does not replace either.
		err = unix.Link(f.Name(), path)
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return alreadyThere()
	case err != nil:
		return fmt.Errorf("writing %s: %w", lock.WorkspacePath, err)
	}
	return nil
}
