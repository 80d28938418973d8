package launch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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
	// remove removes the container; alone keeps in mind that podman ended by
	// itself.
	remove func(context.Context) error
	alone  func()
	watch  func() (stop func()) // looks, until stop, where podman keeps the container
	// over is called when nothing runs in the sandbox any more, which is before
	// podman has removed it; not where podman is quicker.
	over func()
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
	err = o.run(ctx, cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	status := proc.ExitStatus(err)
	if status < 0 {
		return nil, err
	}
	return step.Values{exitValue: fmt.Sprint(status)}, nil
}

// removeTime is how long podman may take to remove a sandbox that runs.
const removeTime = 4 * time.Second

// run runs podman to its end. A sandbox whose time is over is removed, upon which
// podman ends by itself and leaves nothing. Only before the sandbox is there, or
// if podman does not end then, is it killed: what it had started by that time
// has to be looked for.
func (o Sandbox) run(ctx context.Context, cmd proc.Cmd) error {
	inner, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		if o.remove == nil || !exists(o.Run.PIDFile) {
			kill()
			return
		}
		rm, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		if o.remove(rm) != nil {
			kill()
		}
		time.AfterFunc(endTime, kill)
	})
	if o.watch != nil {
		defer o.watch()()
	}
	if o.over != nil && o.Run.InitFile != "" {
		defer whenEnded(o.Run.InitFile, o.over)()
	}
	_, err := proc.Output(inner, cmd)
	if inner.Err() == nil && !proc.Signaled(err) && o.alone != nil {
		o.alone()
	}
	if !stop() {
		<-over // a removal is not cut short either
	}
	return err
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
