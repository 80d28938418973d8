package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
)

// A "podman run" that is killed has perhaps started conmon already, and conmon
// the runtime: both go on. A "podman rm" at that moment forgets the container,
// whose processes then belong to nobody and never end. So after a removal that
// came before a container's own end, its processes are looked for.

// orphanScans is how often nothing must be found in a row: a process that is
// just being started appears a moment later.
const (
	orphanScans = 3
	orphanPause = 30 * time.Millisecond
)

// endOrphans ends what is left of a container by name, and has the runtime
// forget it. enter goes before the runtime's command line: how to get into
// podman's namespaces from where this runs.
func endOrphans(ctx context.Context, engine podman.Engine, name string, env, enter []string) error {
	ids := map[string]bool{}
	for quiet := 0; quiet < orphanScans; {
		found, err := orphans("/proc", name, ids)
		if err != nil {
			return fmt.Errorf("looking for what is left of %s: %w", name, err)
		}
		quiet++
		for _, process := range found {
			quiet = 0
			if err := killProcess(process); err != nil {
				return fmt.Errorf("ending what is left of %s: %w", name, err)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if quiet < orphanScans {
			time.Sleep(orphanPause)
		}
	}
	for id := range ids {
		// It fails where the runtime never knew the container.
		proc.Output(ctx, proc.Cmd{Argv: append(slices.Clone(enter), engine.Delete(id)...), Env: env})
	}
	return nil
}

// orphans finds the processes of a container by name: its conmon, and what of the
// runtime has its id as an argument. ids collects the ids that the name had.
func orphans(root, name string, ids map[string]bool) (processes []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	own, _, err := tasksOf(filepath.Join(root, "self"))
	if err != nil {
		return nil, err
	}
	type process struct {
		pid  int
		argv []string
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, e.Name(), "cmdline"))
		if err != nil || len(b) == 0 {
			continue
		}
		argv := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if !isRuntime(argv[0]) {
			continue // a person may be looking at that container
		}
		// Another person of this machine can start something with any command
		// line, and have it name any container as this one.
		if uid, _, err := tasksOf(filepath.Join(root, e.Name())); err != nil || uid != own {
			continue // it is gone, or not ours
		}
		all = append(all, process{pid, argv})
		if id := conmonOf(argv, name); id != "" {
			ids[id] = true
		}
	}
	for _, p := range all {
		if !slices.ContainsFunc(p.argv, func(a string) bool { return ids[a] }) {
			continue
		}
		if n, err := processName(p.pid); err == nil {
			processes = append(processes, n)
		}
	}
	return processes, nil
}

// isRuntime tells of a program's name that it is conmon's or a runtime's, which
// start themselves again under names of their own.
func isRuntime(argv0 string) bool {
	name := filepath.Base(argv0)
	return slices.Contains([]string{"conmon", "exe", "runc", "crun"}, name) || strings.HasPrefix(name, "runsc")
}

// conmonOf gives the container's id where a command line is that of the conmon
// of the container by name, else "".
func conmonOf(argv []string, name string) (id string) {
	if len(argv) == 0 || filepath.Base(argv[0]) != "conmon" {
		return ""
	}
	named := false
	for i := 1; i < len(argv)-1; i++ {
		switch argv[i] {
		case "-n":
			named = named || argv[i+1] == name
		case "-c":
			if containerID.MatchString(argv[i+1]) {
				id = argv[i+1]
			}
		}
	}
	if !named {
		return ""
	}
	return id
}
