package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"lazaret/internal/proc"
)

// engine starts sandboxes: lazaret's, or plain podman's.
type engine interface {
	// command runs a command in a sandbox of a profile, with a workspace.
	command(profile, ws string, tty bool, argv ...string) proc.Cmd
	// end takes away what a killed one left.
	end(ctx context.Context)
}

// Times of an attack.
const (
	attackTime  = 15 * time.Second // of one script
	openTime    = 2 * time.Minute  // until a sandbox is ready
	closeTime   = time.Minute      // until it has ended
	outputLimit = 1 << 20          // of one script
)

// driver runs, in a sandbox, the scripts whose names it reads, and says when each
// has ended. $1 is a word that no script knows. It is run by the harness's own
// shell, and so is every script: an image's could say that an attack was
// withstood without having tried it.
const driver = `PATH=` + harnessBin + `:$PATH
if [ -t 0 ]; then stty -echo; fi
echo "$1 ready"
while IFS= read -r name; do
	cd /workspace || exit 1
	timeout -k 1 "$2" ` + harnessShell + ` "` + harnessAt + `/$name" </dev/null 2>&1
	echo "$1 end $?"
done
`

// session is a sandbox that does what it is told.
type session struct {
	engine engine
	mark   string
	in     *os.File
	kill   context.CancelFunc
	wait   func() error
	closed sync.Once

	mu    sync.Mutex
	text  bytes.Buffer // what came since the last script began
	more  chan struct{}
	ended bool
	said  *os.File // a file: what it said besides
}

// open starts a sandbox and waits until it is ready.
func openSession(ctx context.Context, e engine, a *arena, profile string, tty bool) (*session, error) {
	s := &session{engine: e, mark: "attack" + randomHex(), more: make(chan struct{}, 1)}
	if err := writeBelow(a.harness(), "driver", []byte(driver), 0o644); err != nil {
		return nil, err
	}
	if err := a.mend(); err != nil {
		return nil, fmt.Errorf("mending the workspace: %w", err)
	}
	said, err := os.CreateTemp(a.harness(), "said-")
	if err != nil {
		return nil, err
	}
	os.Remove(said.Name())
	s.said = said
	c := e.command(profile, a.ws, tty, harnessShell, harnessAt+"/driver", s.mark, strconv.Itoa(int(attackTime.Seconds())))
	var out *os.File
	var theirs []*os.File
	if tty {
		master, slave, err := pty.Open()
		if err != nil {
			return nil, fmt.Errorf("opening a terminal: %w", err)
		}
		pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80})
		c.Stdin, c.Stdout, c.Stderr, c.Session, c.Terminal = slave, slave, slave, true, true
		s.in, out, theirs = master, master, []*os.File{slave}
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		r2, w2, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		c.Stdin, c.Stdout, c.Stderr = r, w2, said
		s.in, out, theirs = w, r2, []*os.File{r, w2}
	}
	kctx, kill := context.WithCancel(context.WithoutCancel(ctx))
	s.kill = kill
	c.Tidies = true // lazaret undoes what it did
	_, s.wait, err = proc.Start(kctx, c)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	go s.read(out)
	if text, err := s.until(ctx, s.mark+" ready", openTime); err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("starting a sandbox: %w: %s", err, text+"\n"+s.tail())
	}
	return s, nil
}

func (s *session) read(out *os.File) {
	defer out.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := out.Read(b)
		s.mu.Lock()
		if s.text.Len() < outputLimit {
			s.text.Write(b[:n])
		}
		s.ended = s.ended || err != nil
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// What keeps a script from being tried to its end.
var (
	errSandboxEnded = errors.New("the sandbox ended")
	errNoAnswer     = errors.New("no answer in time")
)

// until waits for a line that begins with a mark, and gives what came before and
// the rest of that line.
func (s *session) until(ctx context.Context, mark string, limit time.Duration) (before string, err error) {
	deadline := time.After(limit)
	for {
		s.mu.Lock()
		text, ended := s.text.String(), s.ended
		if i := strings.Index(text, mark); i >= 0 {
			if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
				s.text.Next(i + j + 1)
				s.mu.Unlock()
				return text[:i], nil
			}
		}
		s.mu.Unlock()
		if ended {
			return text, errSandboxEnded
		}
		select {
		case <-s.more:
		case <-deadline:
			return text, errNoAnswer
		case <-ctx.Done():
			return text, context.Cause(ctx)
		}
	}
}

// try runs one script and gives what it printed.
func (s *session) try(ctx context.Context, name string) (string, error) {
	s.mu.Lock()
	s.text.Reset()
	s.mu.Unlock()
	if _, err := io.WriteString(s.in, name+"\n"); err != nil {
		return "", errSandboxEnded
	}
	return s.until(ctx, s.mark+" end ", attackTime+10*time.Second)
}

// close ends the sandbox and gives how.
func (s *session) close(ctx context.Context) (err error) {
	s.closed.Do(func() {
		if s.in != nil {
			s.in.Write([]byte{4}) // the end of input, at a terminal
			s.in.Close()
		}
		done := make(chan error, 1)
		go func() { done <- s.wait() }()
		select {
		case err = <-done:
		case <-ctx.Done():
			s.kill()
			err = <-done
		case <-time.After(closeTime):
			s.kill()
			err = <-done
			s.engine.end(ctx)
		}
		s.kill()
	})
	return err
}

// tail is the end of what was said beside the sandbox's output.
func (s *session) tail() string {
	b := make([]byte, 4<<10)
	n, _ := s.said.ReadAt(b, max(0, s.size()-int64(len(b))))
	return strings.TrimSpace(string(b[:n]))
}

func (s *session) size() int64 {
	fi, err := s.said.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}
