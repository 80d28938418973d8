package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
)

// Statuses asks every live lazaret of this person how its run is going.
func Statuses(ctx context.Context, e Env) ([]Status, error) {
	records, err := Runs(ctx, e)
	if err != nil {
		return nil, err
	}
	out := []Status{}
	for _, r := range records {
		s := Status{Record: r}
		// One of another version may know less.
		var told Status
		if err := askRun(ctx, controlPath(e, r.ID), verbStatus, nil, &told); err == nil && told.ID == r.ID {
			s = told
		}
		out = append(out, s)
	}
	return out, nil
}

func controlPath(e Env, id string) string {
	return filepath.Join(e.Getenv("XDG_RUNTIME_DIR"), "lazaret", id, controlSocket)
}

// stopTime bounds the wait for a teardown: longer than it may take itself.
const stopTime = teardownTime + 30*time.Second

// Stop has the lazaret of a run end it and waits until everything is undone. It
// is ErrLeft where that lazaret is gone, and something of the run is not.
func Stop(ctx context.Context, e Env, r Record) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	dir := filepath.Dir(controlPath(e, r.ID))
	conn, err := callRun(ctx, controlPath(e, r.ID), verbStop, nil)
	for start := time.Now(); err != nil; conn, err = callRun(ctx, controlPath(e, r.ID), verbStop, nil) {
		// It may be about to listen, or to end.
		if end, gone := ended(dir); gone {
			return end
		}
		if ctx.Err() != nil || time.Since(start) > helperAnswer {
			return fmt.Errorf("asking the lazaret of run %s: %w", r.ID, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn.SetReadDeadline(time.Now().Add(controlTimeout))
	if _, err := readLine(conn, 64); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		pid, _ := peer(conn)
		return refuse(fmt.Sprintf("\"kill -9 %d\" and then \"lazaret clean\" take it down", pid),
			"the lazaret of run %s, process %d, does not answer", r.ID, pid)
	} else if err == nil {
		conn.SetReadDeadline(time.Time{})
		if ctx.Err() == nil {
			io.Copy(io.Discard, conn)
		}
	} // else it ended at this moment
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("waiting for the end of run %s: %w", r.ID, err)
	}
	return awaitEnd(ctx, dir)
}

// awaitEnd waits until a run's lazaret has let go of its record: the connection
// ends a moment before the process does.
func awaitEnd(ctx context.Context, dir string) error {
	for {
		if end, gone := ended(dir); gone {
			return end
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ended reports whether the lazaret of a run is gone, and whether it left
// something: ErrLeft.
func ended(dir string) (end error, gone bool) {
	f, err := lockFile(filepath.Join(dir, supervisorLock))
	switch {
	case errors.Is(err, errHeld):
		return nil, false
	case err != nil:
		return nil, true // the record is gone too
	}
	f.Close()
	return ErrLeft, true
}

// ErrLeft is a run whose lazaret is gone and whose record is not.
var ErrLeft = errors.New("it could not undo everything")

// Enter gives the command that runs a program beside a sandbox's own, and its
// environment. Its standard streams are what it is started with.
func Enter(ctx context.Context, e Env, r Record, env map[string]string, command []string) (argv, environ []string, err error) {
	var d door
	if err := askRun(ctx, controlPath(e, r.ID), verbEnter, nil, &d); err != nil {
		return nil, nil, fmt.Errorf("asking the lazaret of run %s: %w", r.ID, err)
	}
	if d.Helper == "" {
		return nil, nil, refuse("wait a moment, or look at \"lazaret ps\"", "run %s: its sandbox is not up", r.ID)
	}
	inside, err := d.inside(r)
	if err != nil {
		return nil, nil, err
	}
	out, err := proc.Output(ctx, proc.Cmd{Argv: append(slices.Clone(inside), d.Engine.ID(r.Container())...), Env: d.Environ})
	id := strings.TrimSpace(string(out))
	if err != nil || !containerID.MatchString(id) {
		return nil, nil, refuse("wait a moment, or look at \"lazaret ps\"", "run %s: its sandbox is not up: %v", r.ID, err)
	}
	return append(inside, d.Engine.Enter(id, env, command)...), d.Environ, nil
}

// Up tells whether the command of a sandbox has started.
func Up(ctx context.Context, e Env, r Record) bool {
	var d door
	if err := askRun(ctx, controlPath(e, r.ID), verbEnter, nil, &d); err != nil || d.Helper == "" {
		return false
	}
	inside, err := d.inside(r)
	if err != nil {
		return false
	}
	out, err := proc.Output(ctx, proc.Cmd{Argv: append(inside, d.Engine.Running(r.Container())...), Env: d.Environ})
	return err == nil && strings.TrimSpace(string(out)) == "true"
}

var containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// inside is what a command line begins with that runs in the helper's namespaces.
func (d door) inside(r Record) ([]string, error) {
	pid, _, _ := strings.Cut(d.Helper, "/")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil, fmt.Errorf("run %s: its lazaret names no process", r.ID)
	}
	// Between this and nsenter the helper may go and its pid be another's: that
	// one is of this person too, or nsenter is refused, and has no such container.
	if now, err := processName(n); err != nil || now != d.Helper {
		return nil, fmt.Errorf("run %s is ending", r.ID)
	}
	nsenter, err := lookPath("nsenter", podman.SearchPath, r.Workspace)
	if err != nil {
		return nil, err
	}
	return []string{nsenter, "--target", pid, "--user", "--mount", "--preserve-credentials", "--"}, nil
}

// Known is a run that there is a record of.
type Known struct {
	Record
	Alive bool // its lazaret is there
}

// KnownRuns lists the runs that there are records of, whether their lazaret
// answers or not. Records that cannot be read are left out: Clean tells of them.
func KnownRuns(e Env) ([]Known, error) {
	dir, err := runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
	if err != nil {
		return nil, err
	}
	runs := filepath.Join(dir, "lazaret")
	ids, err := runIDs(runs)
	if err != nil {
		return nil, err
	}
	var out []Known
	for _, id := range ids {
		k := Known{}
		b, err := readRegular(filepath.Join(runs, id, recordFile))
		if err != nil || json.Unmarshal(b, &k.Record) != nil || k.check(id) != nil {
			continue
		}
		f, err := lockFile(filepath.Join(runs, id, supervisorLock))
		if err == nil {
			f.Close()
		}
		k.Alive = errors.Is(err, errHeld)
		out = append(out, k)
	}
	return out, nil
}
