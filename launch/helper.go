package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// HelperCommand is the hidden command that starts this program as a helper.
const HelperCommand = "namespace-helper"

// helper is lazaret's end of the conversation with its helper: this program
// started again in podman's user namespace, with a mount namespace of its own.
// Mounts made there cannot vanish under a running sandbox when podman's pause
// process does, and are gone with the helper.
type helper struct {
	conn *os.File
	pid  int
	end  chan error    // how the helper ended; read once, by close
	gone chan struct{} // closed when the helper's end of conn is
	hung atomic.Bool   // it did not answer in time
	ran  func(proc.Ran)
	over func() // nothing runs in the sandbox any more

	mu      sync.Mutex
	enc     *json.Encoder
	next    int
	pending map[int]chan reply
}

// startHelper starts the helper of a run, with stdio as what the sandbox will
// get. The helper holds the run's helper lock until it ends, and the state's,
// where there is one. It puts the terminal back, where there is one, if this
// lazaret ends without a word.
func startHelper(ctx context.Context, h Host, c *claim, conf string, stdio [3]*os.File, terminal, held *os.File, ran func(proc.Ran), over func()) (*helper, error) {
	env := append(append([]string(nil), h.Environ...), "CONTAINERS_CONF="+conf)
	pid, err := pauseProcess(ctx, h, env)
	if err != nil {
		return nil, err
	}
	nsenter, err := lookPath("nsenter", podman.SearchPath, h.Workspace)
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	// Non-blocking, so that reading ends when the file is closed.
	unix.SetNonblock(fds[0], true)
	conn, theirs := os.NewFile(uintptr(fds[0]), "helper"), os.NewFile(uintptr(fds[1]), "helper")
	lock, err := lockFile(filepath.Join(c.dir, helperLock))
	if err != nil {
		conn.Close()
		theirs.Close()
		return nil, fmt.Errorf("locking the run for its helper: %w", err)
	}
	extra := []*os.File{theirs, lock}
	if held != nil {
		extra = append(extra, held)
	}
	if terminal != nil {
		extra = append(extra, terminal)
	}
	child, wait, err := proc.Start(context.WithoutCancel(ctx), proc.Cmd{
		Argv: []string{
			nsenter, "--target", strconv.Itoa(pid), "--user", "--mount", "--preserve-credentials", "--",
			// rslave: what is mounted on the host still arrives, nothing goes back.
			"unshare", "--mount", "--propagation", "slave", "--",
			h.Lazaret, HelperCommand,
		},
		Env:        podman.InNamespace(env, h.UID, h.GID),
		Stdin:      stdio[0],
		Stdout:     stdio[1],
		Stderr:     stdio[2],
		ExtraFiles: extra,
		Session:    true,
		Terminal:   terminal != nil,
	})
	// The helper's copies are the only ones from here on: the lock is held,
	// and the conversation goes on, as long as it lives.
	theirs.Close()
	lock.Close()
	if err != nil {
		conn.Close()
		return nil, err
	}
	p := &helper{conn: conn, pid: child, end: make(chan error, 1), gone: make(chan struct{}), enc: json.NewEncoder(conn), pending: map[int]chan reply{}, ran: ran, over: over}
	hello := make(chan reply, 1)
	p.pending[0] = hello
	go func() { p.end <- wait() }()
	go p.read()
	select {
	case <-hello:
		return p, nil
	case <-p.gone:
		return nil, fmt.Errorf("starting the helper in podman's namespace: %w (%v)", errEndedAtOnce, p.close())
	case <-ctx.Done():
		p.close()
		return nil, ctx.Err()
	}
}

var errEndedAtOnce = errors.New("it ended at once")

func (p *helper) read() {
	defer close(p.gone)
	d := json.NewDecoder(p.conn)
	for {
		var r reply
		if err := d.Decode(&r); err != nil {
			return
		}
		if r.Ran != nil {
			p.ran(*r.Ran)
			continue
		}
		if r.Over {
			p.over()
			continue
		}
		p.mu.Lock()
		ch := p.pending[r.ID]
		delete(p.pending, r.ID)
		p.mu.Unlock()
		if ch != nil {
			ch <- r
		}
	}
}

// errHelperGone is what every request gets when the helper has died.
var errHelperGone = errors.New("the helper in podman's namespace is gone")

// do performs an operation in the helper. When ctx ends, the helper is told to
// end the operation too.
func (p *helper) do(ctx context.Context, op step.Op, in step.Values) (step.Values, error) {
	kind, err := opKind(op)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(op)
	if err != nil {
		return nil, err
	}
	return p.call(ctx, request{Kind: kind, Op: raw, In: in})
}

// helperAnswer is how long the helper may take over a removal, or over its own
// end. Then it hangs, and is done without.
const helperAnswer = 10 * time.Second

// remove removes a container from where it was started.
func (p *helper) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, helperAnswer)
	defer cancel()
	_, err := p.call(ctx, request{Kind: kindRemove, Name: name})
	if errors.Is(err, context.DeadlineExceeded) {
		p.hung.Store(true)
	}
	return err
}

func (p *helper) call(ctx context.Context, r request) (step.Values, error) {
	if p.hung.Load() {
		return nil, errHelperGone // it is as good as: close kills it, and its mounts go with it
	}
	ch := make(chan reply, 1)
	id, err := p.send(r, ch)
	if err != nil {
		return nil, err
	}
	select {
	case rep := <-ch:
		return result(rep)
	case <-p.gone:
		return nil, errHelperGone
	case <-ctx.Done():
	}
	p.send(request{Kind: kindCancel, Cancel: id}, nil)
	select {
	case <-ch:
	case <-p.gone:
	case <-time.After(5 * time.Second):
	}
	return nil, ctx.Err()
}

func result(r reply) (step.Values, error) {
	if r.Err != nil {
		return r.Out, r.Err
	}
	return r.Out, nil
}

func (p *helper) send(r request, ch chan reply) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	r.ID = p.next
	if ch != nil {
		p.pending[r.ID] = ch
	}
	if err := p.enc.Encode(r); err != nil {
		return 0, errHelperGone
	}
	return r.ID, nil
}

// close ends the conversation, upon which the helper removes what is left of
// the sandbox and ends, and waits for that. One that hangs is killed.
func (p *helper) close() error {
	p.send(request{Kind: kindBye}, nil)
	p.conn.Close()
	patience := helperAnswer
	if p.hung.Load() {
		patience = 0
	}
	select {
	case err := <-p.end:
		return err
	case <-time.After(patience):
	}
	// It is our child and nobody else waits for it: the pid is still its own.
	unix.Kill(p.pid, unix.SIGKILL)
	return <-p.end
}

// pauseProcess finds the process that keeps podman's user namespace alive, and
// has podman make it where there is none.
func pauseProcess(ctx context.Context, h Host, env []string) (int, error) {
	if pid, ok := findPause(h); ok {
		return pid, nil
	}
	if _, err := proc.Output(ctx, proc.Cmd{Argv: []string{h.Podman.Path, "unshare", "true"}, Env: env}); err != nil {
		return 0, lacks("userns", `try "podman unshare true"; it needs user namespaces and entries for you in /etc/subuid and /etc/subgid`,
			"podman cannot make its user namespace: %v", err)
	}
	if pid, ok := findPause(h); ok {
		return pid, nil
	}
	return 0, errors.New("podman keeps no pause process in XDG_RUNTIME_DIR/libpod/tmp")
}

// findPause reads podman's pid file and checks that the process is what it
// says: the file outlives its process, and the pid goes to somebody else.
func findPause(h Host) (int, bool) {
	b, err := readRegular(filepath.Join(h.RuntimeDir, "libpod", "tmp", "pause.pid"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0, false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	// One that has died but was not reaped still has its name and its map.
	if _, err := os.Readlink(filepath.Join(proc, "ns", "mnt")); err != nil {
		return 0, false
	}
	comm, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil || !strings.HasPrefix(string(comm), "catatonit") && !strings.HasPrefix(string(comm), "podman") {
		return 0, false
	}
	uids, err := os.ReadFile(filepath.Join(proc, "uid_map"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(uids))
	return pid, len(f) > 3 && f[0] == "0" && f[1] == strconv.Itoa(h.UID) && f[2] == "1"
}
