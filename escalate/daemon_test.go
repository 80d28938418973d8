package escalate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/escalate/wire"
)

// TestOutcomes: the six ways a request can end, as the sandbox is told and as
// they are written down.
func TestOutcomes(t *testing.T) {
	t.Run("auto", func(t *testing.T) {
		h := newHost(t, nil)
		r := h.ask(t, "show", "--query", "Account")
		if r.Status != wire.Approved || !r.Approved || *r.ExitCode != 0 {
			t.Fatalf("%+v", r)
		}
		// Nothing of the sandbox's around it, and nothing of the person's but
		// what was spelled out.
		want := "dir=" + filepath.Join(h.dir, "empty") + "\nargs=--query Account\nHOME=/nowhere\nLC_ALL=C.UTF-8\nPATH=/usr/bin:/bin\n"
		if got := strings.ReplaceAll(r.Stdout, "PWD="+filepath.Join(h.dir, "empty")+"\n", ""); got != want {
			t.Errorf("printed\n%s\nwant\n%s", r.Stdout, want)
		}
		if got := h.kinds(); got != "decided:approved ended:approved" {
			t.Error(got)
		}
		if e := h.entries()[1]; e.By != "auto_approve" || e.Program != filepath.Join(h.bin, "show") || e.Duration <= 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("approved", func(t *testing.T) {
		h := newHost(t, nil)
		h.answering(t, seen)
		r := h.ask(t, "sh", "-c", "pwd; echo oops >&2; exit 7")
		if r.Status != wire.Approved || *r.ExitCode != 7 || r.Stdout != h.ws+"\n" || r.Stderr != "oops\n" {
			t.Errorf("%+v", r)
		}
		if got := h.kinds(); got != "asked decided:approved ended:approved" {
			t.Error(got)
		}
	})
	t.Run("edited", func(t *testing.T) {
		h := newHost(t, nil)
		h.answering(t, func(a Ask) Verdict {
			argv := []string{"echo", "it's mine"}
			r, _ := h.Queue().Resolve(t.Context(), argv)
			return Verdict{Kind: Approve, Argv: argv, Program: r.Program, Marks: r.Marks, By: "test"}
		})
		r := h.ask(t, "echo", "yours")
		if r.Status != wire.Edited || !r.Approved || r.Stdout != "it's mine\n" || r.Command != `echo 'it'"'"'s mine'` {
			t.Errorf("%+v", r)
		}
	})
	t.Run("denied", func(t *testing.T) {
		h := newHost(t, nil)
		h.answering(t, func(Ask) Verdict { return Verdict{By: "test"} })
		r := h.ask(t, "touch", filepath.Join(h.dir, "mark"))
		if r.Status != wire.Denied || r.Approved || r.ExitCode != nil {
			t.Errorf("%+v", r)
		}
		if _, err := os.Stat(filepath.Join(h.dir, "mark")); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("timeout", func(t *testing.T) {
		h := newHost(t, func(_ *host, c *Config) { c.Timeout = 50 * time.Millisecond })
		if r := h.ask(t, "echo"); r.Status != wire.Timeout || r.Approved {
			t.Errorf("%+v", r)
		}
		if got := h.kinds(); got != "asked decided:timeout" {
			t.Error(got)
		}
	})
	t.Run("aborted", func(t *testing.T) {
		h := newHost(t, nil)
		tried := make(chan struct{})
		go func() {
			defer close(tried)
			h.waits(t)
			h.Queue().Abort(context.Background())
			// From then on nobody is there.
			if c, err := net.Dial("unix", h.socket); err == nil {
				t.Error("the channel is open after an abort")
				c.Close()
			}
		}()
		if r := h.ask(t, "echo"); r.Status != wire.Aborted || r.Approved {
			t.Errorf("%+v", r)
		}
		// Also for what would run unasked.
		var none *wire.NoChannelError
		if r, err := h.send(t.Context(), wire.Request{Command: "true"}); !errors.As(err, &none) {
			t.Errorf("the channel is open after an abort: %+v, %v", r, err)
		}
		<-tried
	})
	t.Run("no channel", func(t *testing.T) {
		h := newHost(t, nil)
		h.Close()
		var none *wire.NoChannelError
		if _, err := h.send(t.Context(), wire.Request{Command: "true"}); !errors.As(err, &none) {
			t.Error(err)
		}
	})
}

// TestWithdrawn: a request whose sender goes away is nobody's to answer.
func TestWithdrawn(t *testing.T) {
	h := newHost(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := h.send(ctx, wire.Request{Command: "touch " + filepath.Join(h.dir, "mark")})
		done <- err
	}()
	a := h.waits(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	await(t, func() bool { p, _ := h.Queue().Pending(t.Context()); return len(p) == 0 })
	if err := h.Queue().Answer(t.Context(), a.Seq, Verdict{Kind: Approve}); !errors.Is(err, ErrGone) {
		t.Errorf("answering gives %v", err)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "mark")); err == nil {
		t.Error("it ran")
	}
}

// TestKilled: what a command starts ends with it, with its time, with its sender
// and with the sandbox, also where it has left its parent, group and session.
func TestKilled(t *testing.T) {
	const daemon = `setsid sh -c 'setsid sh -c "echo \$\$ > $0; exec sleep 300" "$0" & exit' "$0"; while [ ! -s "$0" ]; do sleep 0.01; done; `
	for _, tt := range []struct {
		name, after string
		auto        bool
		end         func(h *host, cancel func())
	}{
		{"time", "sleep 300", false, nil},
		{"sender", "sleep 300", false, func(_ *host, cancel func()) { cancel() }},
		{"sandbox", "sleep 300", false, func(h *host, _ func()) { h.Close() }},
		{"sandbox, in the background", "exit 0", false, func(h *host, _ func()) {
			time.Sleep(300 * time.Millisecond)
			h.Close()
		}},
		{"its own end, unasked", "exit 0", true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, func(h *host, c *Config) {
				if tt.name == "time" {
					c.CommandTime = 3 * time.Second // which is plenty to begin in
				}
				h.program(t, h.bin, "daemonize", "exec sh -c '"+strings.ReplaceAll(daemon+tt.after, "'", `'"'"'`)+"' "+filepath.Join(h.dir, "pid"))
				if tt.auto {
					c.Policy.AutoApprove = append(c.Policy.AutoApprove, []string{"daemonize"})
				}
			})
			h.answering(t, seen)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan wire.Response, 1)
			go func() {
				r, _ := h.send(ctx, wire.Request{Command: "daemonize"})
				done <- r
			}()
			pid := awaitPid(t, filepath.Join(h.dir, "pid"))
			if tt.end != nil {
				tt.end(h, cancel)
			}
			r := <-done
			if tt.name == "time" && (!strings.HasPrefix(r.Error, "stopped after 3s") || *r.ExitCode != 137) {
				t.Errorf("%+v", r)
			}
			defer syscall.Kill(pid, syscall.SIGKILL)
			await(t, func() bool { return syscall.Kill(pid, 0) != nil })
		})
	}
}

func awaitPid(t *testing.T, path string) (pid int) {
	t.Helper()
	await(t, func() bool {
		b, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(b), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

// TestNoTerminal: a command has a session of its own and no terminal, no input
// but what was shown, and no descriptor of lazaret's.
func TestNoTerminal(t *testing.T) {
	h := newHost(t, nil)
	h.answering(t, seen)
	r := h.ask(t, "sh", "-c", `cat; readlink /proc/$$/fd/0; ls /proc/$$/fd; read -r p c s pp g sid tty rest < /proc/$$/stat; echo "$tty" $((sid == p)); (echo >/dev/tty) 2>/dev/null || echo none`)
	if want := "/dev/null\n0\n1\n2\n0 1\nnone\n"; r.Stdout != want {
		t.Errorf("%q %s", r.Stdout, r.Stderr)
	}
	// Input is shown, hashed and handed over, and keeps even a whitelisted
	// command from running unasked.
	var shown Ask
	h2 := newHost(t, nil)
	h2.answering(t, func(a Ask) Verdict { shown = a; return seen(a) })
	r, err := h2.send(t.Context(), wire.Request{Command: "show", Stdin: []byte("kind: Secret\n")})
	if err != nil || !strings.HasSuffix(r.Stdout, "kind: Secret\n") {
		t.Errorf("%v %q", err, r.Stdout)
	}
	sum := sha256.Sum256([]byte("kind: Secret\n"))
	if string(shown.Stdin) != "kind: Secret\n" || shown.StdinSize != 13 || shown.StdinSHA256 != hex.EncodeToString(sum[:]) || !strings.Contains(shown.Why, "input") {
		t.Errorf("%+v", shown)
	}
}

// TestOutput: what is kept is bounded, and that is said; what is no text arrives
// as it was.
func TestOutput(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) { c.MaxOutput = 1000 })
	h.answering(t, seen)
	r := h.ask(t, "sh", "-c", "head -c 100000000 /dev/zero; echo end >&2")
	out, errs, err := r.Output()
	if err != nil || len(out) != 1000 || string(errs) != "end\n" || !r.Truncated || *r.ExitCode != 0 {
		t.Errorf("%d bytes, %q, truncated %v, %v", len(out), errs, r.Truncated, err)
	}
	r = h.ask(t, "printf", `a\377b`)
	if out, _, _ := r.Output(); string(out) != "a\xffb" || r.Truncated {
		t.Errorf("%q %v", out, r.Truncated)
	}
	r = h.ask(t, "sh", "-c", "kill -9 $$")
	if *r.ExitCode != 137 {
		t.Errorf("status %d", *r.ExitCode)
	}
	// One that cannot be started says so.
	h.program(t, h.bin, "broken", "")
	os.WriteFile(filepath.Join(h.bin, "broken"), []byte("#!/nowhere/interpreter\n"), 0o755)
	if r = h.ask(t, "broken"); *r.ExitCode != 127 || !strings.Contains(r.Error, "no such file") {
		t.Errorf("%+v", r)
	}
}

// TestUnwritten: what cannot be written down does not happen.
func TestUnwritten(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) { c.Log = func(Entry) error { return errors.New("disk full") } })
	h.answering(t, seen)
	for _, argv := range [][]string{{"true"}, {"touch", filepath.Join(h.dir, "mark")}} {
		if r := h.ask(t, argv...); r.Status != wire.Denied || r.Approved || !strings.Contains(r.Error, "audit log") {
			t.Errorf("%q: %+v", argv, r)
		}
	}
	if _, err := os.Stat(filepath.Join(h.dir, "mark")); err == nil {
		t.Error("it ran")
	}
}

// TestFlood: a person is shown a bounded number of requests, and the sandbox is
// told that nobody was asked.
func TestFlood(t *testing.T) {
	h := newHost(t, func(_ *host, c *Config) {
		c.Limits = Limits{Waiting: 3, Asks: 5, Per: time.Hour}
		c.Timeout = 5 * time.Minute
	})
	for range 3 {
		go h.send(t.Context(), wire.Request{Command: "echo"})
	}
	await(t, func() bool { p, _ := h.Queue().Pending(t.Context()); return len(p) == 3 })
	if r := h.ask(t, "echo"); r.Status != wire.Denied || !strings.Contains(r.Error, "nobody was asked: 3 wait already") {
		t.Errorf("%+v", r)
	}
	h.answering(t, func(Ask) Verdict { return Verdict{} })
	for range 2 {
		if r := h.ask(t, "echo"); !strings.Contains(r.Error, "by the person") {
			t.Errorf("%+v", r)
		}
	}
	if r := h.ask(t, "echo"); r.Status != wire.Denied || !strings.Contains(r.Error, "5 came within 1h") {
		t.Errorf("%+v", r)
	}
	// Neither has anything to do with what runs unasked.
	if r := h.ask(t, "true"); !r.Approved {
		t.Errorf("%+v", r)
	}
}

// TestChangedMeanwhile: what a person saw is what runs, or nothing does.
func TestChangedMeanwhile(t *testing.T) {
	h := newHost(t, nil)
	go h.send(t.Context(), wire.Request{Command: "exact two"})
	a := h.waits(t)
	// Another program comes to be in front of it on the PATH.
	early := filepath.Join(h.dir, "early")
	os.Mkdir(early, 0o755)
	h.program(t, early, "exact", "echo other")
	os.Remove(filepath.Join(h.bin, "exact"))
	os.Symlink(filepath.Join(early, "exact"), filepath.Join(h.bin, "exact"))
	if err := h.Queue().Answer(t.Context(), a.Seq, Verdict{Kind: Approve, Program: a.Program}); !errors.Is(err, ErrProgram) {
		t.Errorf("approving gives %v", err)
	}
	if p, _ := h.Queue().Pending(t.Context()); len(p) != 1 {
		t.Error("and it is gone")
	}
	// Nor does a yes count that does not say what it was shown, edited or not.
	for _, v := range []Verdict{{Kind: Approve}, {Kind: Approve, Argv: []string{"echo"}}, {Kind: Approve, Marks: a.Marks, By: "test"}} {
		if err := h.Queue().Answer(t.Context(), a.Seq, v); !errors.Is(err, ErrProgram) {
			t.Errorf("approving unseen gives %v", err)
		}
	}
	// Editing to nothing that can be run does not run the original either.
	if err := h.Queue().Answer(t.Context(), a.Seq, Verdict{Kind: Approve, Argv: []string{"nothing-of-that-name"}}); err == nil {
		t.Error("approved what is not there")
	}
	if err := h.Queue().Answer(t.Context(), a.Seq, Verdict{Kind: Deny}); err != nil {
		t.Error(err)
	}
}
