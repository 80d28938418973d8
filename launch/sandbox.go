package launch

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// Sandbox runs the sandbox to its end.
type Sandbox struct {
	Engine  podman.Engine
	Environ []string
	Run     podman.Run
	// Secrets are the variables that come from the host's environment: name in
	// the sandbox to name on the host. The values come in with the Values of
	// execution, as "env.NAME", and go to podman through a file without a name.
	Secrets map[string]string
	// Tasks bounds how many tasks of the host it may add; see bounded.
	Tasks uint64
	// Store is where podman keeps its containers, "" where that is not known.
	Store string

	stdio [3]*os.File
}

// exitValue is the Value that holds the sandbox's exit status.
const exitValue = "sandbox.exit"

// secretValue is the Value that holds a variable of the host.
func secretValue(name string) string { return "env." + name }

// late stands in a plan for a Value that only execution knows.
func late(value string) string { return "<" + value + ">" }

func (o Sandbox) container() container {
	return container{name: o.Run.Name, engine: o.Engine, env: o.Environ, store: o.Store, idFile: o.Run.IDFile}
}

// secretsFile is where podman finds the secrets: its descriptor 3.
const secretsFile = "/proc/self/fd/3"

// Do starts the sandbox and gives its exit status as a Value.
func (o Sandbox) Do(ctx context.Context, in step.Values) (step.Values, error) {
	run := o.Run
	run.Network = strings.ReplaceAll(run.Network, late(netnsValue), in[netnsValue])
	argv, err := bounded(o.Engine.Run(run), o.Tasks)
	if err != nil {
		return nil, err
	}
	cmd := proc.Cmd{
		Argv:  argv,
		Env:   o.Environ,
		Stdin: o.stdio[0], Stdout: o.stdio[1], Stderr: o.stdio[2],
	}
	if o.Run.EnvFile != "" {
		f, err := o.secretsFile(in)
		if err != nil {
			return nil, fmt.Errorf("handing over the environment: %w", err)
		}
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	_, err = proc.Output(ctx, cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	status := proc.ExitStatus(err)
	if status < 0 {
		return nil, err
	}
	return step.Values{exitValue: fmt.Sprint(status)}, nil
}

// secretsFile writes the secrets to memory that has no name in any directory.
func (o Sandbox) secretsFile(in step.Values) (*os.File, error) {
	fd, err := unix.MemfdCreate("lazaret-env", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "lazaret-env")
	for key, name := range o.Secrets {
		if v, ok := in[secretValue(name)]; ok {
			fmt.Fprintf(f, "%s=%s\n", key, v)
		}
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Show gives the command.
func (o Sandbox) Show() []string {
	lines := []string{shown(o.Engine.Run(o.Run)...), fmt.Sprintf("with RLIMIT_NPROC %d above what runs", o.Tasks)}
	for _, key := range podman.SortedKeys(o.Secrets) {
		lines = append(lines, "with "+key+" from env:"+o.Secrets[key]+" by descriptor 3")
	}
	return lines
}
