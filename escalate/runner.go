package escalate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// RunnerCommand is the hidden command of lazaret that runs one approved command.
const RunnerCommand = "escalate-runner"

// job is what a runner is told to run. Its standard streams are the command's.
type job struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// Keep lets what the command left running in the background go on until
	// the sandbox ends.
	Keep bool `json:"keep,omitempty"`
}

// end is how it ended.
type end struct {
	Status int    `json:"status"` // as a shell gives it; -1: it never ran
	Error  string `json:"error,omitempty"`
}

// ServeRunner is the runner: it runs the one command that conn names, and ends
// everything that came of it when conn ends, also where that has left its
// parent, its group and its session. A process group would let a daemon go, and
// lazaret itself cannot adopt orphans, since it has children of other kinds.
func ServeRunner(conn *os.File, stdio [3]*os.File) error {
	unix.CloseOnExec(int(conn.Fd()))
	// Nor shall the command get what a shell once left open for lazaret.
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphans: %w", err)
	}
	d := json.NewDecoder(conn)
	var j job
	if err := d.Decode(&j); err != nil {
		return nil // lazaret has ended, or needs none
	}
	_, wait, err := proc.Start(context.Background(), proc.Cmd{
		Path: j.Path, Argv: j.Argv, Env: j.Env, Dir: j.Dir,
		Stdin: stdio[0], Stdout: stdio[1], Stderr: stdio[2], Session: true,
	})
	if err != nil {
		// Why it could not be started, without its arguments.
		var pe *proc.Error
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return json.NewEncoder(conn).Encode(end{Status: -1, Error: err.Error()})
	}
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, conn)
		close(gone)
	}()
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		json.NewEncoder(conn).Encode(end{Status: proc.ExitStatus(err)})
	case <-gone:
		killDescendants(ended)
		return nil
	}
	// So that whoever reads what the command prints sees the end of it.
	for _, f := range stdio {
		f.Close()
	}
	if !j.Keep {
		killDescendants(nil)
		return nil
	}
	none := make(chan struct{})
	go func() {
		reap(0)
		close(none)
	}()
	select {
	case <-none:
	case <-gone:
		killDescendants(nil)
	}
	return nil
}

// killTime bounds how long descendants may take to be gone.
const killTime = 5 * time.Second

// killDescendants kills this process's children, and their orphans as they
// become its children, until there are none. first, when set, tells of the end
// of a child that somebody else waits for.
func killDescendants(first <-chan error) {
	until := time.Now().Add(killTime)
	for time.Now().Before(until) {
		pids := children()
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
		}
		if first != nil {
			select {
			case <-first: // killed as well
				first = nil
			case <-time.After(time.Until(until)):
				return // another user's by now, as sudo is: nobody here can
			}
		}
		if reap(unix.WNOHANG) && len(pids) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// reap waits for children that have ended, and tells whether there are none left.
func reap(options int) (none bool) {
	for {
		pid, err := unix.Wait4(-1, nil, options, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return true // ECHILD
		case pid == 0:
			return false
		}
	}
}

// children lists this process's children.
func children() (pids []int) {
	self := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything: "a) R 1 (b".
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(f) < 2 || f[1] != self || f[0] == "Z" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// EnvMark is set in the environment of every command that a sandbox asked for:
// lazaret answers no requests where it is.
const EnvMark = "LAZARET_ESCALATED"
