// Package proc is the one way lazaret runs a program. It passes an argument
// vector, never a shell string, gives the program an environment that was
// spelled out, and keeps what it said on stderr for the error.
package proc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	shellquote "github.com/kballard/go-shellquote"
	"golang.org/x/sys/unix"
)

// stderrLimit bounds what is kept of a program's stderr, in bytes.
const stderrLimit = 8 << 10

// Cmd is one program to run. The zero value of each field is the safe one:
// no environment but LC_ALL=C, no input, output kept and not shown.
type Cmd struct {
	Argv   []string // Argv[0] is an absolute path, unless Path is
	Path   string   // the program, where Argv[0] shall be another name; "" means Argv[0]
	Env    []string // whole environment; LC_ALL=C is added unless LC_ALL is there
	Dir    string   // working directory; "" means "/"
	Stdin  *os.File // nil: /dev/null
	Stdout *os.File // nil: returned by Output
	Stderr *os.File // nil: kept for the error

	ExtraFiles []*os.File // from descriptor 3 on
	Session    bool       // a session of its own, out of reach of the terminal's signals
	Terminal   bool       // with Session: Stdin becomes its controlling terminal
	Memory     uint64     // bounds what the program may allocate, in bytes; 0 is no bound
	Tidies     bool       // it removes its lock files when told to end: SIGTERM first, SIGKILL killDelay later
}

// killDelay is how long a program whose time is over may take to end.
const killDelay = 2 * time.Second

// Error is a program that could not be started or did not succeed.
type Error struct {
	Argv   []string
	Err    error  // *exec.ExitError when it ran, in a *LateError where its time was over
	Stderr string // what it said, bounded, without the final newline
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("running %s: %v", shellquote.Join(e.Argv...), e.Err)
	if e.Stderr != "" {
		// It may repeat what a registry or an image said, so it is quoted:
		// nothing in it acts on the terminal or passes for lazaret's own words.
		msg += ": it says " + strconv.Quote(lastLine(e.Stderr))
	}
	return msg
}

func (e *Error) Unwrap() error { return e.Err }

// LateError is a program that was stopped because its time was over. What it
// says of itself then, that a signal ended it, would send a person looking for
// who sent that.
type LateError struct {
	Program string        // its name, without the directory
	After   time.Duration // how long it was waited for
	Err     error         // *exec.ExitError
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%s does not answer: stopped after %s", e.Program, e.After.Round(100*time.Millisecond))
}

func (e *LateError) Unwrap() error { return e.Err }

// ended is how a program that began then has ended.
func ended(ctx context.Context, c Cmd, began time.Time, err error) error {
	if Signaled(err) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &LateError{filepath.Base(c.Argv[0]), time.Since(began), err}
	}
	return err
}

// ExitStatus is the status the program ended with, as a shell would give it:
// 128+n for a signal, -1 if it never ran.
func ExitStatus(err error) int {
	if err == nil {
		return 0
	}
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		return -1
	}
	if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ee.ExitCode()
}

// Signaled tells whether a signal ended the program, which ExitStatus does not
// tell from a program that says 128+n itself.
func Signaled(err error) bool {
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		return false
	}
	ws, ok := ee.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled()
}

// Output runs c to its end and returns its stdout. On failure the error is
// an *Error.
func Output(ctx context.Context, c Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd, tail := prepare(ctx, c)
	if c.Stdout == nil {
		cmd.Stdout = &out
	}
	began := time.Now()
	err := start(cmd, c)
	if err == nil {
		err = ended(ctx, c, began, cmd.Wait())
	}
	told(ctx, c.Argv, began, err)
	if err != nil {
		return out.Bytes(), &Error{c.Argv, err, tail.String()}
	}
	return out.Bytes(), nil
}

// start starts a program. Its bound holds from a moment after that: it is for
// what the program reads, not for the program itself.
func start(cmd *exec.Cmd, c Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.Memory != 0 {
		// It may have ended already.
		unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: c.Memory, Max: c.Memory}, nil)
	}
	return nil
}

// Start starts c and returns at once; wait gives its end, as Output would.
func Start(ctx context.Context, c Cmd) (pid int, wait func() error, err error) {
	cmd, tail := prepare(ctx, c)
	began := time.Now()
	if err := start(cmd, c); err != nil {
		told(ctx, c.Argv, began, err)
		return 0, nil, &Error{c.Argv, err, ""}
	}
	return cmd.Process.Pid, func() error {
		err := ended(ctx, c, began, cmd.Wait())
		told(ctx, c.Argv, began, err)
		if err != nil {
			return &Error{c.Argv, err, tail.String()}
		}
		return nil
	}, nil
}

func prepare(ctx context.Context, c Cmd) (*exec.Cmd, *tailBuffer) {
	cmd := exec.CommandContext(ctx, cmp.Or(c.Path, c.Argv[0]))
	cmd.Args = c.Argv
	cmd.Env = withLocale(c.Env)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	// A nil *os.File in an interface would not be nil.
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	tail := &tailBuffer{limit: stderrLimit}
	cmd.Stderr = tail
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.ExtraFiles = c.ExtraFiles
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: c.Session, Setctty: c.Session && c.Terminal}
	// A grandchild that keeps our pipe open must not keep us waiting.
	cmd.WaitDelay = killDelay
	if c.Tidies {
		cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	}
	return cmd, tail
}

func withLocale(env []string) []string {
	for _, kv := range env {
		if strings.HasPrefix(kv, "LC_ALL=") {
			return env
		}
	}
	return append(append([]string{}, env...), "LC_ALL=C")
}

// tailBuffer keeps the last limit bytes written to it.
type tailBuffer struct {
	limit int
	b     []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - t.limit; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string { return strings.TrimRight(string(t.b), "\n") }

// lastLineMax bounds what an error repeats, in bytes.
const lastLineMax = 400

func lastLine(s string) string {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if len(s) > lastLineMax {
		s = s[:lastLineMax] + " …"
	}
	return s
}
