package escalate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"lazaret/escalate/wire"
)

// Config is what a Daemon needs to know of one sandbox and its host.
type Config struct {
	Profile, Run string
	Policy       Policy
	Lookup       Lookup
	Dir          string   // where approved commands run
	Empty        string   // where the others run: a directory with nothing in it
	Env          []string // what every command gets
	Timeout      time.Duration
	CommandTime  time.Duration // how long a command may take
	MaxOutput    int64         // bytes of stdout and of stderr kept
	Peer         func(uid uint32) bool
	Runners      *Runners
	// Log writes down what happens. A command is not run unless it could be.
	Log    func(Entry) error
	Now    func() time.Time
	Limits Limits
	Door   Door
}

// Door bounds what connections may cost before anybody knows whose they are.
type Door struct {
	Open     int           // connections at the same time
	Rate     int           // connections a second
	Burst    int           // connections at once
	Greet    time.Duration // for the handshake
	Read     time.Duration // for the request
	Write    time.Duration // for the response
	Commands int           // commands that run at the same time; as many again of those that were asked about
}

// DefaultDoor lets a busy sandbox work, and a hostile one cost little.
var DefaultDoor = Door{
	Open: 32, Rate: 50, Burst: 100, Commands: 4,
	Greet: 5 * time.Second, Read: 15 * time.Second, Write: 60 * time.Second,
}

// DefaultCommandTime is how long a command may take.
const DefaultCommandTime = 10 * time.Minute

// Daemon answers one sandbox's requests.
type Daemon struct {
	Config
	authority *authority
	queue     *Queue
	marker    Marker

	ctx      context.Context // ends with the daemon
	end      context.CancelCauseFunc
	open     chan struct{} // holds one for every connection
	commands chan struct{} // and one for every command that runs without a question
	conns    sync.WaitGroup

	mu     sync.Mutex
	l      *net.UnixListener
	closed bool
}

// New makes a Daemon, with a certificate authority of its own.
func New(c Config) (*Daemon, error) {
	a, err := newAuthority(c.Profile, c.Run, c.Now)
	if err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	for _, e := range c.Env {
		if home, ok := strings.CutPrefix(e, "HOME="); ok {
			c.Lookup.Home = home
		}
	}
	d := &Daemon{
		Config: c, authority: a, marker: Marker{c.Lookup, c.Dir, c.Policy.Banned},
		open: make(chan struct{}, c.Door.Open), commands: make(chan struct{}, c.Door.Commands),
	}
	d.queue = NewQueue(c.Limits, c.Door.Commands, c.Now, func(argv []string) Resolved { return c.Lookup.Resolve(argv, d.marker.Marks) })
	d.queue.shut = d.shut
	d.ctx, d.end = context.WithCancelCause(context.Background())
	return d, nil
}

// Queue is where requests wait for a person.
func (d *Daemon) Queue() *Queue { return d.queue }

// Credentials are the files by which the sandbox proves itself, by name. Each
// call makes another key, with a certificate that is good for a day.
func (d *Daemon) Credentials() (map[string]string, error) { return d.authority.client() }

// errEnded is the end of everything that the daemon has begun.
var errEnded = errors.New("the sandbox has ended")

// Serve answers what comes in on l, which is closed with the daemon or by an
// abort of its queue.
func (d *Daemon) Serve(l *net.UnixListener) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		l.Close()
		return
	}
	d.l = l
	d.conns.Add(1)
	d.mu.Unlock()
	go func() {
		select {
		case <-d.queue.Aborted():
		case <-d.ctx.Done():
		}
		l.Close()
	}()
	go func() {
		defer d.conns.Done()
		d.accept(l)
	}()
}

// shut closes the door before anybody is told that it is shut.
func (d *Daemon) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.l != nil {
		d.l.Close()
	}
}

func (d *Daemon) accept(l *net.UnixListener) {
	tokens, last := float64(d.Door.Burst), time.Now()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(100 * time.Millisecond) // out of descriptors, say
			continue
		}
		// Whoever comes too often waits in the kernel's queue, at no cost.
		now := time.Now()
		tokens = min(float64(d.Door.Burst), tokens+now.Sub(last).Seconds()*float64(d.Door.Rate)) - 1
		last = now
		if tokens < 0 {
			time.Sleep(time.Duration(-tokens / float64(d.Door.Rate) * float64(time.Second)))
		}
		select {
		case d.open <- struct{}{}:
		default:
			conn.Close() // to the sandbox, nobody is there
			continue
		}
		d.conns.Add(1)
		go func() {
			defer d.conns.Done()
			defer func() { <-d.open }()
			d.converse(conn)
		}()
	}
}

// Close ends everything under way, and returns when nothing is.
func (d *Daemon) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end(errEnded)
	d.Runners.Close()
	d.conns.Wait()
}

// answer decides about a request and performs it, with t. ctx ends when whoever
// asked is gone.
func (d *Daemon) answer(ctx context.Context, t *turn, r wire.Request) wire.Response {
	c := Decide(d.Policy, d.Lookup, r.Command, len(r.Stdin) > 0)
	switch {
	case d.queue.isAborted():
		return d.deny(r, decided{status: wire.Aborted, argv: c.Argv, by: "person", reason: errAborted.Error()})
	case r.Profile != d.Profile:
		return d.refuse(r, c.Argv, "the request names another profile")
	case c.Refused != "":
		return d.refuse(r, c.Argv, c.Refused)
	case c.Auto:
		yes := decided{status: wire.Approved, argv: c.Argv, program: c.Program, by: "auto_approve", auto: true}
		t.of = d.commands
		if err := t.take(ctx, d.queue.Aborted()); err != nil {
			return d.deny(r, yes.not(err))
		}
		return d.perform(ctx, r, yes)
	}
	return d.ask(ctx, t, r, c)
}

// ask lets a person decide.
func (d *Daemon) ask(ctx context.Context, t *turn, r wire.Request, c Decision) wire.Response {
	if err := d.queue.place(); err != nil {
		// Before anything is spent on what nobody will look at.
		return d.deny(r, decided{status: wire.Denied, argv: c.Argv, program: c.Program, by: "limit", reason: err.Error()})
	}
	now := d.Now()
	a := Ask{
		ID: r.RequestID, Profile: d.Profile, Run: d.Run, Raw: r.Command, Argv: c.Argv, Reason: r.Justification,
		Program: c.Program, Trouble: c.Trouble, Dir: d.Dir, DirIn: d.dirIn(), Env: d.Env, Why: c.Why,
		Marks: d.marker.all(r, c.Argv), Received: now, Deadline: now.Add(d.Timeout),
	}
	a.setStdin(r.Stdin)
	if err := d.log(Entry{Kind: "asked", Request: r, Argv: c.Argv, Program: c.Program}); err != nil {
		d.queue.giveUp()
		return d.refuse(r, c.Argv, "the host cannot write its audit log")
	}
	v, err := d.queue.wait(ctx, a)
	no := decided{status: wire.Denied, argv: c.Argv, program: c.Program, by: v.By}
	switch {
	case errors.Is(err, errTimeout):
		no.status, no.reason = wire.Timeout, "nobody answered within "+d.Timeout.String()
	case errors.Is(err, errAborted):
		no.status, no.by, no.reason = wire.Aborted, "person", err.Error()
	case err != nil:
		no.status, no.by, no.reason = wire.NoChannel, "", err.Error()
	case v.Kind != Approve:
		no.reason = "by the person at the host"
	default:
		t.of, t.held = d.queue.turns, true // Answer took it
		yes := decided{status: wire.Approved, argv: c.Argv, program: v.Program, marks: v.Marks, by: v.By}
		if v.Argv != nil && wire.Quote(v.Argv) != wire.Quote(c.Argv) {
			yes.status, yes.argv = wire.Edited, v.Argv
		}
		return d.perform(ctx, r, yes)
	}
	return d.deny(r, no)
}

// refuse denies without a question.
func (d *Daemon) refuse(r wire.Request, argv []string, reason string) wire.Response {
	return d.deny(r, decided{status: wire.Denied, argv: argv, by: "lazaret", reason: reason})
}

func (d *Daemon) deny(r wire.Request, c decided) wire.Response {
	d.log(Entry{Kind: "decided", Request: r, Argv: c.argv, Program: c.program, Status: c.status, By: c.by, Reason: c.reason})
	return wire.Response{RequestID: r.RequestID, Status: c.status, Error: c.reason}
}

// dirIn is what the sandbox can write to that approved commands run in.
func (d *Daemon) dirIn() string {
	place, _ := d.Lookup.place(d.Dir)
	return place.What
}
