package escalate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// Runners starts the processes that run approved commands: one a command.
type Runners struct {
	Lazaret string // this program

	mu     sync.Mutex
	spare  chan *runner // holds at most one, made before it is needed
	making bool         // one
	live   map[*runner]bool
	ended  bool
	all    sync.WaitGroup
}

// runner is lazaret's end of one.
type runner struct {
	conn        *os.File
	out, errout *os.File // what the command prints
	exited      chan struct{}
	// users are who still needs conn: whoever reads how the command ended, which
	// is there to read after the runner has gone, and the runner itself.
	users atomic.Int32
}

// leave is called once by each user.
func (r *runner) leave() {
	if r.users.Add(-1) == 0 {
		r.conn.Close()
	}
}

// Result is how a command ended.
type Result struct {
	Status         int // as a shell gives it; -1: it never ran
	Stdout, Stderr []byte
	Truncated      bool
	Err            error // it could not be run, or not to its end
}

// start starts a runner. Its command will read stdin; nil is /dev/null.
func (x *Runners) start(stdin *os.File) (*runner, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.SetNonblock(fds[0], true) // so that a read ends with the file
	ours, theirs := os.NewFile(uintptr(fds[0]), "runner"), os.NewFile(uintptr(fds[1]), "runner")
	defer theirs.Close()
	out, outw, err := os.Pipe()
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer outw.Close()
	errout, errw, err := os.Pipe()
	if err != nil {
		ours.Close()
		out.Close()
		return nil, err
	}
	defer errw.Close()
	r := &runner{conn: ours, out: out, errout: errout, exited: make(chan struct{})}
	r.users.Store(2)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		r.close()
		return nil, errors.New("the sandbox has ended")
	}
	_, wait, err := proc.Start(context.Background(), proc.Cmd{
		Argv: []string{x.Lazaret, RunnerCommand}, Stdin: stdin, Stdout: outw, Stderr: errw,
		ExtraFiles: []*os.File{theirs}, Session: true,
	})
	if err != nil {
		r.close()
		return nil, err
	}
	if x.live == nil {
		x.live = map[*runner]bool{}
	}
	x.live[r] = true
	x.all.Go(func() {
		wait()
		close(r.exited)
		r.leave()
		x.mu.Lock()
		delete(x.live, r)
		x.mu.Unlock()
	})
	return r, nil
}

func (r *runner) close() {
	r.conn.Close()
	r.out.Close()
	r.errout.Close()
}

// ready has a runner wait for the next command, where none does.
func (x *Runners) ready() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spare == nil {
		x.spare = make(chan *runner, 1)
	}
	if x.ended || x.making || len(x.spare) > 0 {
		return
	}
	x.making = true
	x.all.Go(func() {
		r, err := x.start(nil)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.making = false
		if err == nil { // else the next command starts its own, and tells
			x.spare <- r
		}
	})
}

// waiting is the runner that waits; a channel that gives none before ready.
func (x *Runners) waiting() chan *runner {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spare
}

// give gives a job to a runner: the one that waits if it will do.
func (x *Runners) give(j job, stdin *os.File) (*runner, error) {
	if stdin == nil {
		select {
		case r := <-x.waiting():
			x.ready()
			if json.NewEncoder(r.conn).Encode(j) == nil {
				return r, nil
			}
			r.close() // killed while it waited
		default:
		}
	}
	r, err := x.start(stdin)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(r.conn).Encode(j); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// drainTime is how long output may still come after a command's end: what it
// left in the background may keep the pipe.
const drainTime = 200 * time.Millisecond

// run runs a job to its end, and keeps at most most bytes of each output. When
// ctx ends, everything that came of the command is killed.
func (x *Runners) run(ctx context.Context, j job, stdin []byte, most int64) Result {
	in, err := inMemory(stdin)
	if err != nil {
		return Result{Status: -1, Err: fmt.Errorf("handing over the input: %w", err)}
	}
	if in != nil {
		defer in.Close()
	}
	r, err := x.give(j, in)
	if err != nil {
		return Result{Status: -1, Err: fmt.Errorf("starting the command: %w", err)}
	}
	defer r.out.Close()
	defer r.errout.Close()
	stop := context.AfterFunc(ctx, func() { r.conn.Close() })
	defer stop()
	var out, errs capped
	var reading sync.WaitGroup
	reading.Go(func() { out.read(r.out, most) })
	reading.Go(func() { errs.read(r.errout, most) })
	var e end
	derr := json.NewDecoder(r.conn).Decode(&e)
	r.leave()
	res := Result{Status: e.Status}
	switch {
	case derr != nil && ctx.Err() != nil:
		<-r.exited // nothing is left of it
		res.Status, res.Err = 128+int(unix.SIGKILL), context.Cause(ctx)
	case derr != nil:
		res.Status, res.Err = -1, errors.New("what ran the command was killed")
	case e.Error != "":
		res.Status, res.Err = -1, errors.New(e.Error)
	}
	late := time.Now().Add(drainTime)
	r.out.SetReadDeadline(late)
	r.errout.SetReadDeadline(late)
	reading.Wait()
	res.Stdout, res.Stderr, res.Truncated = out.b.Bytes(), errs.b.Bytes(), out.more || errs.more
	return res
}

// Close kills what still runs, and returns when nothing does.
func (x *Runners) Close() {
	x.mu.Lock()
	x.ended = true
	for r := range x.live {
		r.conn.Close()
	}
	x.mu.Unlock()
	x.all.Wait()
	select {
	case r := <-x.waiting():
		r.close()
	default:
	}
}

// capped keeps the beginning of what it reads, and reads on.
type capped struct {
	b    bytes.Buffer
	more bool
}

func (c *capped) read(r io.Reader, most int64) {
	io.Copy(&c.b, io.LimitReader(r, most))
	n, _ := io.Copy(io.Discard, r)
	c.more = n > 0
}

// inMemory makes a file of a command's input that has no name; nil for none.
func inMemory(b []byte) (*os.File, error) {
	if len(b) == 0 {
		return nil, nil
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
