package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/term"
	"lazaret/overlay"
)

// server is the helper's end of the conversation.
type server struct {
	stdio [3]*os.File

	encMu sync.Mutex
	enc   *json.Encoder

	mu         sync.Mutex
	cancels    map[int]context.CancelFunc
	containers []container // started, and perhaps still there, oldest first
	requests   sync.WaitGroup

	mounts overlay.Mounts
	gate   *os.File // of the sandbox, which waits; nil: it does not
}

// ServeHelper is the helper: it performs what conn asks for until conn ends,
// then removes what is left of the sandbox. lock is the run's helper lock,
// already held. It returns when nothing is left.
func ServeHelper(conn, lock *os.File, stdio [3]*os.File) error {
	// The descriptors came through exec; what we start must not keep them.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping descriptors: %w", err)
	}
	// A hang-up of the terminal or a Ctrl-C is for lazaret to act upon, which
	// tells us by ending conn. Caught, not ignored: podman would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	// So that "lazaret clean" can end a helper that hangs.
	name, err := processName(os.Getpid())
	if err != nil {
		return fmt.Errorf("naming the helper: %w", err)
	}
	if _, err := lock.WriteAt([]byte(name), 0); err != nil {
		return fmt.Errorf("naming the helper: %w", err)
	}
	s := &server{stdio: stdio, enc: json.NewEncoder(conn), cancels: map[int]context.CancelFunc{}}
	// Behind the lock of the state, which not every run has.
	keeper := term.Keep(5, 6)
	s.reply(reply{})
	d := json.NewDecoder(conn)
	for {
		var r request
		if err := d.Decode(&r); err != nil {
			// io.EOF is how it ends; on anything else there is nobody to tell.
			keeper.Restore()
			break
		}
		if r.Kind == kindBye {
			keeper = nil // lazaret does it itself
			continue
		}
		if r.Kind == kindCancel {
			s.cancel(r.Cancel)
			continue
		}
		s.start(r)
	}
	return s.end()
}

func (s *server) start(r request) {
	ctx, cancel := context.WithCancel(context.Background())
	ctx = proc.Telling(ctx, func(r proc.Ran) { s.reply(reply{Ran: &r}) })
	s.mu.Lock()
	s.cancels[r.ID] = cancel
	s.mu.Unlock()
	s.requests.Add(1)
	go func() {
		defer s.requests.Done()
		out, err := s.perform(ctx, r)
		cancel()
		s.mu.Lock()
		delete(s.cancels, r.ID)
		s.mu.Unlock()
		s.reply(reply{ID: r.ID, Out: out, Err: toWire(err)})
	}()
}

func (s *server) perform(ctx context.Context, r request) (step.Values, error) {
	if r.Kind == kindRemove {
		return nil, s.remove(ctx, r.Name)
	}
	if r.Kind == kindUnmount {
		return nil, s.mounts.Down(r.Name)
	}
	op, err := decodeOp(r.Kind, r.Op)
	if err != nil {
		return nil, err
	}
	if c, ok := op.(interface{ container() container }); ok {
		s.mu.Lock()
		s.containers = append(s.containers, c.container())
		s.mu.Unlock()
	}
	switch o := op.(type) {
	case Sandbox:
		o.stdio = s.stdio
		o.over = func() { s.reply(reply{Over: true}) }
		op = s.attached(o)
		// It must not wait for ever, and not go on without its network.
		defer context.AfterFunc(ctx, s.closeGate)()
	case Netns:
		o.keep = s.keepGate
		op = o
	case Gate:
		o.open = s.openGate
		if o.Shut {
			o.open = func() error { s.closeGate(); return nil }
		}
		op = o
	case Router:
		o.started = s.started
		op = o
	case Setup:
		o.Sandbox = s.attached(o.Sandbox)
		o.talk = s.stdio[2]
		op = o
	case Overlay:
		o.mounts = &s.mounts
		op = o
	case KeepSetup:
		o.mounts = &s.mounts
		op = o
	case Still:
		o.mark = s.suspended
		op = o
	}
	out, err := op.Do(ctx, r.In)
	if o, ok := op.(Router); ok && ctx.Err() == nil && !proc.Signaled(err) {
		s.whole(o.Run.Name)
	}
	return out, err
}

func (s *server) cancel(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.cancels[id]; cancel != nil {
		cancel()
	}
}

func (s *server) reply(r reply) {
	s.encMu.Lock()
	defer s.encMu.Unlock()
	s.enc.Encode(r) // lazaret may be gone; end() is next then
}

// end takes down what is left once lazaret is gone or done: first the
// requests under way, then the containers, newest first: the sandbox before
// its router. Mounts go with the process, but those that another process
// serves, which would keep the namespace.
func (s *server) end() error {
	s.mu.Lock()
	for _, cancel := range s.cancels {
		cancel()
	}
	var names []string
	s.mu.Unlock()
	s.requests.Wait()
	for _, c := range slices.Backward(s.containers) {
		names = append(names, c.name)
	}
	var errs []error
	for _, name := range names {
		var err error
		for range 5 {
			// After the death of its conmon the first removal fails.
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			err = s.remove(ctx, name)
			cancel()
			if err == nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.mounts.Close())...)
}
