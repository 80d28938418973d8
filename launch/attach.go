package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/launch/term"
)

// verbAttach joins the terminal of whoever asks with the sandbox's. It is
// answered with an attachReply; then comes one byte with the terminal as a
// descriptor, and then attachMessages go both ways.
const verbAttach = "attach"

// attachArgs are what comes with the question.
type attachArgs struct {
	Take bool   `json:"take,omitempty"` // whoever is attached makes way
	Name string `json:"name,omitempty"` // the path of the terminal
	// Cols and Rows are its size; 0 where there is no terminal.
	Cols int `json:"cols,omitempty"`
	Rows int `json:"rows,omitempty"`
}

type attachReply struct {
	Busy string `json:"busy,omitempty"` // who is attached
	None bool   `json:"none,omitempty"` // it is on a terminal of its own
}

// attachMessage is what was typed or is to be shown, a size, or an end. Back comes
// after the End: the viewer's terminal is what it was.
type attachMessage struct {
	Data  []byte    `json:"data,omitempty"`
	Cols  int       `json:"cols,omitempty"`
	Rows  int       `json:"rows,omitempty"`
	Leave bool      `json:"leave,omitempty"`
	End   *term.End `json:"end,omitempty"`
	Back  bool      `json:"back,omitempty"`
}

// slowViewer is how long a viewer may take to take what it is shown.
const slowViewer = 10 * time.Second

// attach serves a viewer until it leaves or is told to go.
func (a *attend) attach(_ context.Context, conn *net.UnixConn, raw json.RawMessage) {
	var args attachArgs
	if json.Unmarshal(raw, &args) != nil {
		return
	}
	enc := json.NewEncoder(conn)
	if a.screen == nil {
		enc.Encode(attachReply{None: true})
		return
	}
	// It may be another one in a moment; what counts is Attach, below.
	if busy := a.screen.Busy(); busy != "" && !args.Take {
		enc.Encode(attachReply{Busy: busy})
		return
	}
	if enc.Encode(attachReply{}) != nil {
		return
	}
	tty, err := receiveFile(conn)
	if err != nil {
		return
	}
	defer tty.Close()
	// A viewer that is killed cannot put its terminal back, nor one that hung when
	// it was told to go and is killed later: until it says that it has, we keep it.
	keeper := term.KeepFile(tty)
	conn.SetDeadline(time.Time{})
	v := &term.Viewer{
		Name: viewerName(conn, args.Name), Cols: args.Cols, Rows: args.Rows,
		Show: func(b []byte) error {
			conn.SetWriteDeadline(time.Now().Add(slowViewer))
			return enc.Encode(attachMessage{Data: b})
		},
		Hurry: func() { conn.SetWriteDeadline(time.Now().Add(controlTimeout)) },
		Gone: func(e term.End) {
			conn.SetWriteDeadline(time.Now().Add(controlTimeout))
			enc.Encode(attachMessage{End: &e})
			conn.CloseWrite()
		},
	}
	if err := a.screen.Attach(v, args.Take); err != nil {
		var busy *term.BusyError
		if errors.As(err, &busy) {
			enc.Encode(attachMessage{End: &term.End{Taken: busy.Name}})
		}
		return
	}
	defer keeper.Restore()
	types := newTypist(a.screen, v)
	defer close(types)
	for dec := json.NewDecoder(conn); ; {
		var m attachMessage
		if dec.Decode(&m) != nil {
			types.rest()
			a.screen.Lost(v)
			return
		}
		switch {
		case m.Back:
			keeper.Done()
		case m.Leave:
			types.rest()
			a.screen.Leave(v)
		case m.Cols > 0:
			a.screen.Resize(v, m.Cols, m.Rows)
		default:
			types.add(m.Data)
		}
	}
}

var ttyName = regexp.MustCompile(`^/dev/[a-zA-Z0-9/]{1,32}$`)

// viewerName tells a person which of their programs is attached.
func viewerName(conn *net.UnixConn, tty string) string {
	name := "another lazaret"
	if pid, err := peer(conn); err == nil {
		name = fmt.Sprintf("process %d", pid)
	}
	if ttyName.MatchString(tty) {
		name += " on " + tty
	}
	return name
}

// receiveFile receives a descriptor, with a byte.
func receiveFile(conn *net.UnixConn) (*os.File, error) {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return nil, errors.New("no descriptor came")
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("no descriptor came")
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "viewer"), nil
}

// Attached is the terminal of a sandbox in another process; a term.Far.
type Attached struct {
	conn *net.UnixConn
	dec  *json.Decoder

	mu  sync.Mutex
	enc *json.Encoder
	end *term.End
}

// AttachTo is what a person attaches with.
type AttachTo struct {
	Take bool
	// Terminal is the person's terminal, and Name its path; without a Window, it
	// is any file, and nothing is typed.
	Terminal *os.File
	Name     string
	Window   *term.Window
}

// NotDetachedError is a sandbox on a terminal of its own.
type NotDetachedError struct{ Record Record }

func (e *NotDetachedError) Error() string {
	return fmt.Sprintf("run %s (%s) is on the terminal it was launched on", e.Record.ID, e.Record.Profile)
}

// Hint is the next command.
func (e *NotDetachedError) Hint() string {
	return fmt.Sprintf(`"lazaret exec %s -- sh" runs a further command in it; "lazaret launch --detach" starts one to attach to`, e.Record.ID)
}

// Attach attaches to a sandbox that runs detached. Where somebody else is, it is
// a *term.BusyError.
func Attach(ctx context.Context, e Env, r Record, to AttachTo) (*Attached, error) {
	args := attachArgs{Take: to.Take, Name: to.Name}
	if to.Window != nil {
		args.Cols, args.Rows = to.Window.Size()
		to.Terminal = to.Window.File()
	}
	conn, err := callRun(ctx, controlPath(e, r.ID), verbAttach, args)
	if err != nil {
		return nil, fmt.Errorf("asking the lazaret of run %s: %w", r.ID, err)
	}
	conn.SetDeadline(time.Now().Add(controlTimeout))
	line, err := readLine(conn, questionMax)
	var reply attachReply
	if err == nil {
		err = json.Unmarshal(line, &reply)
	}
	switch {
	case errors.Is(err, io.EOF): // of a version that does not know the question
		reply.None, err = true, nil
	case err == nil && reply.Busy == "" && !reply.None:
		err = sendFile(conn, to.Terminal)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("asking the lazaret of run %s: %w", r.ID, err)
	}
	if reply.None || reply.Busy != "" {
		conn.Close()
		if reply.None {
			return nil, &NotDetachedError{r}
		}
		return nil, &term.BusyError{Name: reply.Busy}
	}
	conn.SetDeadline(time.Time{})
	return &Attached{conn: conn, dec: json.NewDecoder(conn), enc: json.NewEncoder(conn)}, nil
}

func sendFile(conn *net.UnixConn, f *os.File) (err error) {
	c, err := f.SyscallConn() // Fd would make it blocking
	if err != nil {
		return err
	}
	var werr error
	err = c.Control(func(fd uintptr) {
		_, _, werr = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, werr)
}

func (a *Attached) send(m attachMessage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.enc.Encode(m)
}

// Type types in the sandbox's terminal.
func (a *Attached) Type(b []byte) error { return a.send(attachMessage{Data: b}) }

// Resize says how large the person's terminal is.
func (a *Attached) Resize(cols, rows int) error {
	return a.send(attachMessage{Cols: cols, Rows: rows})
}

// Leave asks to be let go.
func (a *Attached) Leave() error { return a.send(attachMessage{Leave: true}) }

// Back says that the person's terminal is what it was, where it was let go.
func (a *Attached) Back() {
	if a.end != nil {
		a.send(attachMessage{Back: true}) // whose lazaret has ended needs not hear it
	}
}

// Close goes without being let go.
func (a *Attached) Close() error { return a.conn.Close() }

// Next is what is to be shown next, io.EOF after the End.
func (a *Attached) Next() ([]byte, error) {
	for {
		var m attachMessage
		if err := a.dec.Decode(&m); err != nil {
			return nil, fmt.Errorf("the sandbox's lazaret is gone: %w", io.ErrUnexpectedEOF)
		}
		if m.End != nil {
			a.end = m.End
			return nil, io.EOF
		}
		if len(m.Data) > 0 {
			return m.Data, nil
		}
	}
}

// End is how it ended, after Next was io.EOF.
func (a *Attached) End() term.End {
	if a.end == nil {
		return term.End{}
	}
	return *a.end
}
