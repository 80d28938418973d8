package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"lazaret/internal/step"
)

// control is the socket on which a running lazaret answers other lazarets of
// the same person: its directory is nobody else's to enter.
type control struct {
	record Record
	l      *net.UnixListener
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
			json.NewEncoder(conn).Encode(c.record)
		}()
	}
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
		r, err := ask(ctx, filepath.Join(runs, id, controlSocket))
		if err == nil && r.check(id) == nil {
			out = append(out, r)
		}
	}
	return out, nil
}

func ask(ctx context.Context, socket string) (r Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(controlTimeout))
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return r, fmt.Errorf("reading the answer: %w", err)
	}
	return r, nil
}
