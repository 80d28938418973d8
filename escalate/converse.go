package escalate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/escalate/wire"
)

// errLeft is the end of a request whose sender did not wait for the answer.
var errLeft = errors.New("the sandbox withdrew the request")

// converse takes one request from a connection and answers it.
func (d *Daemon) converse(raw *net.UnixConn) {
	defer raw.Close()
	if uid, err := peer(raw); err != nil || !d.Peer(uid) {
		return
	}
	d.Runners.ready() // while the two greet
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { raw.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw.SetDeadline(time.Now().Add(d.Door.Greet))
	conn := tls.Server(raw, d.authority.config())
	if err := conn.HandshakeContext(ctx); err != nil {
		return
	}
	raw.SetDeadline(time.Now().Add(d.Door.Read))
	in := bufio.NewReader(io.LimitReader(conn, wire.MaxRequest+2))
	line, err := in.ReadBytes('\n')
	if err != nil && (!errors.Is(err, io.EOF) || len(line) <= wire.MaxRequest) {
		return // half a request
	}
	r, err := wire.ParseRequest(line)
	if err != nil {
		// What it asked for is not known, so it was denied.
		d.respond(raw, conn, d.refuse(wire.Request{RequestID: r.RequestID}, nil, err.Error()))
		return
	}
	raw.SetDeadline(time.Time{})
	if d.ctx.Err() != nil {
		return
	}
	// Whoever goes away takes the request along: nobody is asked for nothing,
	// and nothing runs for nobody.
	go func() {
		conn.Read(make([]byte, 1))
		cancel(errLeft)
	}()
	t := new(turn)
	defer t.leave()
	d.respond(raw, conn, d.answer(ctx, t, r))
}

func (d *Daemon) respond(raw *net.UnixConn, conn *tls.Conn, r wire.Response) {
	raw.SetWriteDeadline(time.Now().Add(d.Door.Write))
	if json.NewEncoder(conn).Encode(r) == nil {
		conn.CloseWrite()
	}
}

// peer is the user at the other end of a connection.
func peer(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

func (a *Ask) setStdin(b []byte) {
	a.StdinSize, a.StdinSHA256 = digest(b)
	if len(b) > 0 {
		a.Stdin = b[:min(len(b), ShownStdin)]
	}
}

// digest tells an input from any other; nothing where there is none.
func digest(b []byte) (size int64, sum string) {
	if len(b) == 0 {
		return 0, ""
	}
	return int64(len(b)), fmt.Sprintf("%x", sha256.Sum256(b))
}

// all marks a whole request.
func (m Marker) all(r wire.Request, argv []string) []Mark {
	out := m.Marks(argv)
	out = append(out, textMarks(MarkReason, r.Justification)...)
	out = append(out, textMarks(MarkRaw, r.Command)...)
	if len(r.Stdin) > 0 {
		out = append(out, textMarks(MarkStdin, string(r.Stdin[:min(len(r.Stdin), ShownStdin)]))...)
	}
	return out
}
