package escalate

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lazaret/escalate/wire"
)

// TestMain lets this test binary be the runner of a command.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == RunnerCommand {
		if err := ServeRunner(os.NewFile(3, "conversation"), [3]*os.File{os.Stdin, os.Stdout, os.Stderr}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// host is a host with a daemon, a workspace and a PATH.
type host struct {
	*Daemon
	dir     string
	ws      string
	bin     string // on PATH, out of the sandbox's reach
	socket  string
	channel wire.Channel

	mu  sync.Mutex
	log []Entry
}

// program puts a shell script on the PATH.
func (h *host) program(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// banned is the rule for tests: no shells.
func banned(argv []string) (string, bool) {
	name := filepath.Base(argv[0])
	return "is a shell", name == "sh" || name == "bash" || name == "dash"
}

// newHost makes one; change, when set, changes what the daemon is told.
func newHost(t *testing.T, change func(*host, *Config)) *host {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &host{dir: dir, ws: filepath.Join(dir, "ws"), bin: filepath.Join(dir, "bin"), socket: filepath.Join(dir, "s")}
	empty := filepath.Join(dir, "empty")
	for _, d := range []string{h.ws, h.bin, empty} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Profile: "agent", Run: "0123456789ab",
		Policy: Policy{Banned: banned, AutoApprove: [][]string{{"show"}, {"true"}}, AutoApproveExact: [][]string{{"exact", "one"}}},
		Dir:    h.ws, Empty: empty,
		Env:     []string{"PATH=/usr/bin:/bin", "HOME=/nowhere", "LC_ALL=C.UTF-8"},
		Timeout: time.Hour, CommandTime: time.Hour, MaxOutput: 1 << 20,
		Peer:    func(uid uint32) bool { return uid == uint32(os.Getuid()) },
		Runners: &Runners{Lazaret: self},
		Log: func(e Entry) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.log = append(h.log, e)
			return nil
		},
		Now: time.Now, Limits: DefaultLimits, Door: DefaultDoor,
	}
	c.Lookup = NewLookup([]string{h.ws, "relative", "", h.bin, "/usr/bin", "/bin"}, []Place{{h.ws, "the workspace"}}, self)
	h.program(t, h.bin, "show", `echo "dir=$(pwd)"; echo "args=$*"; env | sort; cat`)
	h.program(t, h.bin, "exact", `echo exact "$@"`)
	if change != nil {
		change(h, &c)
	}
	if h.Daemon, err = New(c); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	h.Serve(l)
	t.Cleanup(h.Close)
	h.channel = wire.Channel{Socket: h.socket, Certs: h.certs(t, h.Daemon, "certs")}
	return h
}

// certs writes a daemon's credentials to a directory.
func (h *host) certs(t *testing.T, d *Daemon, name string) string {
	t.Helper()
	files, err := d.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	return h.write(t, name, files)
}

func (h *host) write(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ask asks as the sandbox does.
func (h *host) ask(t *testing.T, argv ...string) wire.Response {
	t.Helper()
	r, err := h.send(t.Context(), wire.Request{Command: wire.Quote(argv), Justification: "because"})
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	return r
}

func (h *host) send(ctx context.Context, r wire.Request) (wire.Response, error) {
	if r.RequestID == "" {
		r.RequestID = "r1"
	}
	return h.channel.Ask(ctx, r)
}

// waits gives the request that waits next.
func (h *host) waits(t *testing.T) Ask {
	t.Helper()
	var p []Ask
	await(t, func() bool { p, _ = h.Queue().Pending(t.Context()); return len(p) > 0 })
	return p[0]
}

// answering answers every request that comes to wait, until the test ends.
func (h *host) answering(t *testing.T, verdict func(Ask) Verdict) {
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			changed := h.Queue().Changed()
			p, _ := h.Queue().Pending(ctx)
			for _, a := range p {
				h.Queue().Answer(ctx, a.Seq, verdict(a))
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
}

func (h *host) entries() []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Entry(nil), h.log...)
}

func (h *host) kinds() string {
	var out []string
	for _, e := range h.entries() {
		s := e.Kind
		if e.Status != "" {
			s += ":" + e.Status
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
