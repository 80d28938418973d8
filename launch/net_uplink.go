package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/lock/config"
	"lazaret/sidecar"
)

// Names below the run directory. The router sees the directory, read-only,
// and nothing else of the host.
const (
	netDir       = "net"
	routerSocket = "sidecar.sock"
)

// Patience with the router.
const (
	helloTime = 15 * time.Second
	readyTime = 15 * time.Second
	flushTime = 2 * time.Second
)

// uplink is lazaret's end of the conversation with a sandbox's router. What
// the router says is hostile text: it is parsed, bounded, and shown escaped.
type uplink struct {
	policy     sidecar.Policy
	kind       string
	endWithout bool
	workspace  string

	// emit tells what was denied, and that the router is gone.
	emit func(step.Event)
	// end ends the sandbox.
	end func(error)

	listener *net.UnixListener
	conn     *net.UnixConn
	lines    *bufio.Reader
	flushed  chan struct{}
	gone     chan struct{} // closed when nothing more will be heard
	writeMu  sync.Mutex
	last     sync.Once

	mu      sync.Mutex
	closing bool
	denials uint64
	self    []netip.Addr // the host's, as the router was told
}

// ErrNetworkLost is the end of a sandbox that was to end with its network.
var ErrNetworkLost = errors.New("the network sidecar ended, and the sandbox with it")

// ListenRouter opens the socket on which the router will call.
type ListenRouter struct {
	Path string

	uplink *uplink
}

// Do opens the socket, in a directory of its own.
func (o ListenRouter) Do(context.Context, step.Values) (step.Values, error) {
	if len(o.Path) > socketPathMax {
		return nil, refuse("set XDG_RUNTIME_DIR to a shorter path", "the sidecar's socket: its path has %d bytes, more than the %d a socket can have", len(o.Path), socketPathMax)
	}
	if err := os.Mkdir(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	o.uplink.listener = l
	return nil, nil
}

// Show names the socket.
func (o ListenRouter) Show() []string { return []string{"listen on " + shown(o.Path)} }

// Hello waits for the router to call.
type Hello struct{ uplink *uplink }

// Do takes one call, and gives the router's process and its uplink's MTU.
func (o Hello) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	u := o.uplink
	stop := context.AfterFunc(ctx, func() { u.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	u.listener.SetDeadline(time.Now().Add(helloTime))
	conn, err := u.listener.AcceptUnix()
	if ctx.Err() != nil {
		if err == nil {
			conn.Close()
		}
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for the network sidecar to call: %w", err)
	}
	// One call, then nobody else can be the router.
	u.listener.Close()
	pid, err := peer(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("asking who calls as the network sidecar: %w", err)
	}
	u.conn, u.lines = conn, bufio.NewReader(conn)
	conn.SetReadDeadline(time.Now().Add(helloTime))
	e, err := u.next()
	if err != nil {
		return nil, err
	}
	if e.Kind != sidecar.EventHello || e.MTU < 576 {
		return nil, errors.New("the network sidecar does not say hello")
	}
	return step.Values{pidValue: strconv.Itoa(pid), mtuValue: strconv.Itoa(e.MTU)}, nil
}

// Show tells what is waited for.
func (o Hello) Show() []string { return []string{"wait for the sidecar to call"} }

// next reads an event; the router's own failure is an error.
func (u *uplink) next() (sidecar.Event, error) {
	e, err := sidecar.ReadEvent(u.lines)
	if err != nil {
		return e, fmt.Errorf("listening to the network sidecar: %w", err)
	}
	if e.Kind == sidecar.EventFailed {
		do := ""
		if strings.Contains(e.Text, "packet filter") {
			do = `the kernel needs nf_tables with fib, masquerade, reject and ct; "modprobe -a nft_fib_inet nft_masq nft_reject_inet nft_ct" loads them`
		}
		return e, refuse(do, "the network sidecar: %s", config.Show(e.Text))
	}
	return e, nil
}

// peer is the process at the other end, which must be the person's own.
func peer(c *net.UnixConn) (pid int, err error) {
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
	if int(cred.Uid) != os.Getuid() || cred.Pid <= 1 {
		return 0, fmt.Errorf("it is process %d of user %d", cred.Pid, cred.Uid)
	}
	return int(cred.Pid), nil
}

// SendPolicy tells the router the policy and waits until it holds.
type SendPolicy struct{ uplink *uplink }

// Do sends the policy. When it returns without an error, the router has read
// back from its kernel what it was told.
func (o SendPolicy) Do(ctx context.Context, in step.Values) (step.Values, error) {
	u := o.uplink
	p := u.policy
	for s := range strings.FieldsSeq(in[addrsValue]) {
		if a, err := netip.ParseAddr(s); err == nil {
			p.Self = append(p.Self, a)
		}
	}
	u.known(p.Self...)
	if in[sixValue] == "" {
		p.Link.Router6, p.Link.Box6 = netip.Addr{}, netip.Addr{}
	} else if u.kind == slirp {
		// Its own advertisements are not believed by a namespace that forwards.
		p.Uplink6 = sidecar.Uplink6{Address: netip.MustParsePrefix("fd00::100/64"), Gateway: netip.MustParseAddr("fd00::2")}
	}
	stop := context.AfterFunc(ctx, func() { u.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	u.conn.SetDeadline(time.Now().Add(readyTime))
	if _, err := p.WriteTo(u.conn); err != nil {
		return nil, fmt.Errorf("sending the policy to the network sidecar: %w", err)
	}
	e, err := u.next()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case e.Kind != sidecar.EventReady:
		return nil, errors.New("the network sidecar does not say that it is ready")
	}
	u.conn.SetDeadline(time.Time{})
	u.flushed, u.gone = make(chan struct{}, 1), make(chan struct{})
	go u.listen()
	go u.follow(p.Self)
	return nil, nil
}

// Show gives the policy's lines.
func (o SendPolicy) Show() []string {
	var b strings.Builder
	o.uplink.policy.WriteTo(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	return append(lines, "self <"+addrsValue+">", "wait until the sidecar has read it back")
}

// listen passes on what the router reports, until it is gone.
func (u *uplink) listen() {
	defer close(u.gone)
	var err error
	for {
		var e sidecar.Event
		if e, err = u.next(); err != nil {
			break
		}
		switch e.Kind {
		case sidecar.EventFlushed:
			select {
			case u.flushed <- struct{}{}:
			default:
			}
		case sidecar.EventDenied, sidecar.EventRefused, sidecar.EventRebound:
			u.mu.Lock()
			u.denials += e.N
			u.mu.Unlock()
			u.emit(deniedEvent(e))
		}
	}
	u.conn.Close()
	u.mu.Lock()
	closing := u.closing
	u.mu.Unlock()
	if closing {
		return
	}
	if errors.Is(err, io.EOF) {
		err = nil // it was killed, or its kernel is gone; there is nothing to say
	}
	ev := step.Event{Step: "network", Kind: step.Notice, Attr: map[string]string{"notice": "the network sidecar ended: the sandbox has no network any more"}}
	if err != nil {
		ev.Err = err.Error()
	}
	u.emit(ev)
	if u.endWithout {
		u.end(ErrNetworkLost)
	}
}

// report gives how much was denied.
func (u *uplink) report(s *Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.Denials = int(min(u.denials, math.MaxInt32))
}

// deniedEvent is a router's event in the stream of the run's events.
func deniedEvent(e sidecar.Event) step.Event {
	attr := map[string]string{"what": e.Kind, "count": strconv.FormatUint(e.N, 10)}
	if e.Addr.IsValid() {
		attr["address"] = e.Addr.String()
	}
	if e.Kind == sidecar.EventDenied {
		attr["protocol"], attr["port"] = e.Proto, strconv.Itoa(int(e.Port))
	}
	if e.Name != "" {
		attr["name"] = e.Name
	}
	return step.Event{Step: "network", Kind: step.Denied, Attr: attr}
}

func (u *uplink) tell(line string) error {
	u.writeMu.Lock()
	defer u.writeMu.Unlock()
	u.conn.SetWriteDeadline(time.Now().Add(flushTime))
	_, err := io.WriteString(u.conn, line+"\n")
	return err
}

// begin gives the uplink its voice.
func (u *uplink) begin(l live) { u.emit, u.end = l.emit, l.end }

// finish hears what was denied last, and lets the router end. It may be called
// while the sandbox is still being removed; then it has less to wait for later.
func (u *uplink) finish(context.Context) { u.last.Do(u.letGo) }

func (u *uplink) letGo() {
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	if u.listener != nil {
		u.listener.Close()
	}
	if u.conn == nil {
		return
	}
	if u.gone != nil && u.tell(sidecar.Flush) == nil {
		select {
		case <-u.flushed:
		case <-u.gone:
		case <-time.After(flushTime):
		}
	}
	u.conn.Close()
	if u.gone != nil {
		<-u.gone
	}
}
