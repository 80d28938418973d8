package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lazaret/internal/step"
)

// control is the socket on which a running lazaret answers other lazarets of
// the same person: its directory is nobody else's to enter.
type control struct {
	record Record
	l      *net.UnixListener

	mu    sync.Mutex
	verbs map[string]answer
}

// answer answers one question on conn, which is closed after it. A conversation
// that takes longer than controlTimeout moves the deadline of conn.
type answer func(ctx context.Context, conn *net.UnixConn, args json.RawMessage)

// question is what a lazaret asks another: one JSON value, then the answer's
// own conversation.
type question struct {
	Verb string          `json:"verb"`
	Args json.RawMessage `json:"args,omitempty"`
}

// verbRecord asks what is run.
const verbRecord = "record"

// handle says what answers a verb.
func (c *control) handle(verb string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verbs == nil {
		c.verbs = map[string]answer{}
	}
	c.verbs[verb] = a
}

// controlTimeout bounds one conversation.
const controlTimeout = 2 * time.Second

func (c *control) serve() {
	for {
		conn, err := c.l.AcceptUnix()
		if err != nil {
			return // closed
		}
		go func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(controlTimeout))
			c.answer(conn)
		}()
	}
}

// questionMax bounds a question, in bytes.
const questionMax = 64 << 10

func (c *control) answer(conn *net.UnixConn) {
	// A line at a time: what follows is the answer's to read.
	line, err := readLine(conn, questionMax)
	if err != nil {
		return
	}
	var q question
	if json.Unmarshal(line, &q) != nil {
		return
	}
	if q.Verb == verbRecord {
		json.NewEncoder(conn).Encode(c.record)
		return
	}
	c.mu.Lock()
	a := c.verbs[q.Verb]
	c.mu.Unlock()
	if a != nil {
		a(context.Background(), conn, q.Args)
	}
}

// readLine reads to the end of a line and no further.
func readLine(r io.Reader, most int) ([]byte, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < most; {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			return line, nil
		}
		line = append(line, b[0])
	}
	return nil, errors.New("the line is too long")
}

// Listen opens the run's control socket.
type Listen struct {
	Path string

	control *control
}

// Do opens the socket and answers on it until the run ends.
func (o Listen) Do(context.Context, step.Values) (step.Values, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	o.control.l = l
	go o.control.serve()
	return nil, nil
}

// Show names the socket.
func (o Listen) Show() []string { return []string{"listen on " + shown(o.Path)} }

// socketPathMax is the longest path a Unix socket can have, in bytes: the
// size of sun_path in unix(7) less its final zero.
const socketPathMax = 107

// Runs asks every live lazaret of this person what it runs.
func Runs(ctx context.Context, e Env) ([]Record, error) {
	dir, err := runtimeDir(e.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
	if err != nil {
		return nil, err
	}
	runs := filepath.Join(dir, "lazaret")
	ids, err := runIDs(runs)
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, id := range ids {
		var r Record
		err := askRun(ctx, filepath.Join(runs, id, controlSocket), verbRecord, nil, &r)
		if err == nil && r.check(id) == nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// askRun asks one lazaret one thing and reads its answer.
func askRun(ctx context.Context, socket, verb string, args, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := callRun(ctx, socket, verb, args)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(controlTimeout))
	if err := json.NewDecoder(conn).Decode(answer); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// callRun begins a conversation with one lazaret, for the caller to go on with
// and to close.
func callRun(ctx context.Context, socket, verb string, args any) (*net.UnixConn, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	conn.SetWriteDeadline(time.Now().Add(controlTimeout))
	if err := json.NewEncoder(conn).Encode(question{verb, raw}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("asking: %w", err)
	}
	return conn.(*net.UnixConn), nil
}
