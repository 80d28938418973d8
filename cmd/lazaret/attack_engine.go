package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/internal/proc"
	"lazaret/launch"
	"lazaret/lock"
)

// lazaretEngine is this program, started as a person would.
type lazaretEngine struct{ a *arena }

func (e lazaretEngine) command(profile, ws string, _ bool, argv ...string) proc.Cmd {
	return e.a.lazaret(ws, append([]string{"launch", profile, "--"}, argv...)...)
}

func (a *arena) lazaret(ws string, args ...string) proc.Cmd {
	return proc.Cmd{Argv: append([]string{a.self}, args...), Env: a.env, Dir: ws}
}

// end has nothing to do: lazaret undoes what it did when it is told to end.
func (e lazaretEngine) end(context.Context) {}

// prepare agrees to the arena's lock, as the person has to theirs.
func (e lazaretEngine) prepare(ctx context.Context) error {
	yes := [][]string{{"trust", "--yes"}}
	if len(e.a.foreign) > 0 {
		yes = append(yes, append([]string{"trust", "helper"}, e.a.foreign...))
	}
	for _, args := range yes {
		if _, err := proc.Output(ctx, e.a.lazaret(e.a.ws, args...)); err != nil {
			return fmt.Errorf("preparing the attacks: %w", err)
		}
	}
	return nil
}

// plainEngine is podman as many people run it: the same image, the same mounts,
// its own defaults for the rest.
type plainEngine struct {
	a       *arena
	podman  string
	runtime []string
	flags   []string // more of them
	image   string
	mounts  []string
	inside  map[string]string // target to where below the workspace
	env     []string
	name    string
	how     string // in words
}

func newPlainEngine(ctx context.Context, a *arena, host launch.Host, p lock.Profile, flags ...string) (*plainEngine, error) {
	e := &plainEngine{a: a, podman: host.Podman.Path, name: "lazaret-attack-" + randomHex(), image: p.Image.Platforms[lock.PlatformKey(host.Platform)].Config,
		how: "podman run, its own defaults", inside: map[string]string{}, flags: flags}
	for k, v := range p.Env {
		if name, ok := strings.CutPrefix(v, "env:"); ok {
			v = a.getenv(strings.TrimSuffix(name, "?"))
		}
		e.env = append(e.env, "-e", k+"="+v)
	}
	slices.Sort(e.env)
	n := 0
	for target, m := range a.mounts {
		opts := ""
		if strings.HasPrefix(m.Mode, "ro") {
			opts = ":ro"
		}
		at := ""
		switch {
		case target == "/workspace" || strings.HasPrefix(target, "/workspace/lazaret."):
			continue
		case m.Kind == lock.KindBind && strings.HasPrefix(m.From, "{workspace_dir}/"):
			e.inside[strings.TrimPrefix(m.From, "{workspace_dir}/")] = target + opts
			continue
		case m.Kind == lock.KindBind && m.From == a.harness():
			at = m.From
		case m.Kind == lock.KindBind, m.Kind == lock.KindOverlay && (strings.HasPrefix(target, "/root") || strings.HasPrefix(target, "/home")):
			at = filepath.Join(a.dir, "plain", fmt.Sprint(n))
			n++
		default:
			continue // a mask, or a directory of the system's, which must not be empty
		}
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, err
		}
		e.mounts = append(e.mounts, "-v", at+":"+target+opts)
	}
	try := func() error {
		c := proc.Cmd{Argv: e.argv("", "none", "", "true"), Env: a.env}
		_, err := proc.Output(ctx, c)
		return err
	}
	err := try()
	if err == nil {
		return e, nil
	}
	runc := host.Runc.Path
	if runc == "" {
		runc = "runc"
	}
	e.runtime, e.how = []string{"--runtime", runc}, "podman run with runc, since its default runtime does not start here"
	if err2 := try(); err2 != nil {
		return nil, fmt.Errorf("starting plain podman: %w", errors.Join(err, err2))
	}
	return e, nil
}

func (e *plainEngine) argv(name, network, ws string, argv ...string) []string {
	out := append([]string{e.podman}, "run", "--rm", "-i", "--pull", "never")
	out = append(out[:1], append(slices.Clone(e.runtime), out[1:]...)...)
	if name != "" {
		out = append(out, "--name", name)
	}
	if network != "" {
		out = append(out, "--network", network)
	}
	if ws != "" {
		out = append(append(out, "-v", ws+":/workspace", "-w", "/workspace"), append(slices.Clone(e.mounts), e.env...)...)
		for rest, target := range e.inside {
			out = append(out, "-v", filepath.Join(ws, rest)+":"+target)
		}
		out = append(out, e.flags...)
	}
	return append(append(out, "--entrypoint=", strings.TrimPrefix(e.image, "sha256:")), argv...)
}

func (e *plainEngine) command(_, ws string, tty bool, argv ...string) proc.Cmd {
	list := e.argv(e.name, "", ws, argv...)
	if tty {
		i := slices.Index(list, "-i")
		list = slices.Insert(list, i, "-t")
	}
	return proc.Cmd{Argv: list, Env: e.a.env}
}

func (e *plainEngine) end(ctx context.Context) {
	proc.Output(context.WithoutCancel(ctx), proc.Cmd{Argv: []string{e.podman, "rm", "-f", "-t", "0", "-i", e.name}, Env: e.a.env})
}
