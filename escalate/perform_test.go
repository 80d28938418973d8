package escalate

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lazaret/escalate/wire"
)

// seen is a yes to what a request showed.
func seen(a Ask) Verdict {
	return Verdict{Kind: Approve, Program: a.Program, Marks: a.Marks, By: "test"}
}

// busy is a host where one command runs at a time, and one does.
type busy struct {
	*host
	mark string // a file that the commands below make
	// decided counts how often leave's name was looked at: three times each.
	decided *atomic.Int32
	// then, when set, is called once, at the end of the next look at a command.
	then *atomic.Pointer[func()]
}

func newBusy(t *testing.T, change func(*host, *Config)) busy {
	b := busy{decided: new(atomic.Int32), then: new(atomic.Pointer[func()])}
	b.host = newHost(t, func(h *host, c *Config) {
		b.mark = filepath.Join(h.dir, "mark")
		c.Door.Commands = 1
		c.Policy.AutoApprove = append(c.Policy.AutoApprove, []string{"hold"}, []string{"leave"})
		h.program(t, h.bin, "hold", "echo >'"+h.dir+"/holds'; while [ ! -e '"+h.dir+"/go' ]; do sleep 0.02; done")
		h.program(t, h.bin, "leave", "echo >'"+b.mark+"'; cat \"$@\"")
		c.Policy.Banned = func(argv []string) (string, bool) {
			if strings.HasPrefix(filepath.Base(argv[0]), "leave") {
				b.decided.Add(1)
			}
			if then := b.then.Swap(nil); then != nil {
				(*then)()
			}
			return banned(argv)
		}
		if change != nil {
			change(h, c)
		}
	})
	go b.send(t.Context(), wire.Request{RequestID: "hold", Command: "hold"})
	await(t, func() bool { _, err := os.Stat(filepath.Join(b.dir, "holds")); return err == nil })
	return b
}

func (b busy) release() { os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o644) }

func (b busy) ran() bool { _, err := os.Stat(b.mark); return err == nil }

// begin asks, and gives the answer when there is one.
func (h *host) begin(t *testing.T, command string) <-chan wire.Response {
	got := make(chan wire.Response, 1)
	go func() {
		r, err := h.send(t.Context(), wire.Request{Command: command, Justification: "because"})
		if err != nil {
			r.Error = err.Error()
		}
		got <- r
	}()
	return got
}

func await(t *testing.T, met func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// TestMarksAreOfNow: a word that becomes a link while the person reads, or while
// what they approved waits for its turn, is not what they approved.
func TestMarksAreOfNow(t *testing.T) {
	h := newHost(t, nil)
	secret := filepath.Join(h.dir, "secret")
	os.WriteFile(secret, []byte("SECRET"), 0o600)
	got := h.begin(t, "cat notes")
	a := h.waits(t)
	if len(a.Marks) != 0 || a.DirIn != "the workspace" {
		t.Errorf("marked before there is anything: %+v, in %q", a.Marks, a.DirIn)
	}
	os.Symlink(secret, filepath.Join(h.ws, "notes"))
	if err := h.Queue().Answer(t.Context(), a.Seq, seen(a)); !errors.Is(err, ErrMarks) {
		t.Errorf("approving gives %v", err)
	}
	a = h.waits(t)
	if len(a.Marks) != 1 || a.Marks[0].Kind != MarkLink {
		t.Errorf("and then there is to see %+v", a.Marks)
	}
	// An edited one is compared with what was shown of that.
	edited := Verdict{Kind: Approve, Argv: []string{"cat", "other"}, Program: a.Program, By: "test"}
	os.Symlink(secret, filepath.Join(h.ws, "other"))
	if err := h.Queue().Answer(t.Context(), a.Seq, edited); !errors.Is(err, ErrMarks) {
		t.Errorf("approving an edited one gives %v", err)
	}
	// Whoever has seen the link may approve it.
	if err := h.Queue().Answer(t.Context(), a.Seq, seen(a)); err != nil {
		t.Error(err)
	}
	if r := <-got; r.Stdout != "SECRET" {
		t.Errorf("the attack does not work: %+v", r)
	}
}

// TestWordsThatComeToLead: what was no path when it was shown, and so had no mark,
// is not run as one, wherever in its life it becomes one.
func TestWordsThatComeToLead(t *testing.T) {
	for _, tt := range []struct {
		word string
		make func(ws, secret string)
	}{
		{"feature/x", func(ws, secret string) { os.Mkdir(ws+"/feature", 0o755); os.Symlink(secret, ws+"/feature/x") }},
		{"feature/x", func(ws, _ string) { os.Mkdir(ws+"/feature", 0o755) }},
		{"https://h/x", func(ws, secret string) { os.Symlink(filepath.Dir(secret), ws+"/https:") }},
		{"--file=a/b", func(ws, secret string) { os.Symlink(filepath.Dir(secret), ws+"/a") }},
	} {
		for _, late := range []bool{false, true} {
			b := newBusy(t, nil)
			secret := filepath.Join(b.dir, "secret")
			os.WriteFile(secret, []byte("SECRET"), 0o600)
			got := b.begin(t, "cat "+tt.word)
			a := b.waits(t)
			if len(a.Marks) != 0 {
				t.Errorf("%s: marked before there is anything: %+v", tt.word, a.Marks)
			}
			become := func() { tt.make(b.ws, secret) }
			if !late {
				become()
			} else {
				b.then.Store(&become) // after the yes has looked, before it is followed
			}
			if err := b.Queue().Answer(t.Context(), a.Seq, seen(a)); late != (err == nil) || !late && !errors.Is(err, ErrMarks) {
				t.Errorf("%s, late %v: approving gives %v", tt.word, late, err)
			}
			if !late {
				if a := b.waits(t); len(a.Marks) != 1 {
					t.Errorf("%s: and then there is to see %+v", tt.word, a.Marks)
				}
				continue
			}
			if r := <-got; r.Status != wire.Denied || !strings.Contains(r.Error, ErrMarks.Error()) {
				t.Errorf("%s: %+v", tt.word, r)
			}
		}
	}
}

// TestChangedBeforeItsTurn: nor does what runs without a question, and had to wait,
// run when it has changed by then.
func TestChangedBeforeItsTurn(t *testing.T) {
	b := newBusy(t, nil)
	auto := b.begin(t, "leave")
	await(t, func() bool { return b.decided.Load() >= 3 })
	os.Rename(filepath.Join(b.bin, "leave"), filepath.Join(b.bin, "left"))
	os.Symlink("left", filepath.Join(b.bin, "leave"))
	b.release()
	if r := <-auto; r.Status != wire.Denied || r.Approved || !strings.Contains(r.Error, "by now") {
		t.Errorf("%+v", r)
	}
	if b.ran() {
		t.Error("another program ran unasked")
	}
}

// TestAbortedBeforeItsTurn: after an abort nothing begins, whoever allowed it.
func TestAbortedBeforeItsTurn(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   func(b busy) // the moment of the abort
	}{
		{"while it waits", func(b busy) { b.Queue().Abort(t.Context()) }},
		{"as its turn comes", func(b busy) {
			b.release()
			b.Queue().Abort(t.Context())
		}},
	} {
		for _, command := range []string{"leave", "sh -c 'exec leave'"} {
			if command != "leave" && tt.name == "while it waits" {
				continue // it begins at once
			}
			b := newBusy(t, func(h *host, c *Config) { c.Env = append(c.Env, "PATH="+h.bin+":/usr/bin:/bin") })
			got := b.begin(t, command)
			if command != "leave" {
				a := b.waits(t)
				if err := b.Queue().Answer(t.Context(), a.Seq, seen(a)); err != nil {
					t.Fatal(err)
				}
			} else {
				await(t, func() bool { return b.decided.Load() >= 3 })
			}
			tt.in(b)
			r := <-got
			if tt.name == "while it waits" && strings.Contains(b.kinds(), "ended") {
				t.Errorf("%s: it was answered once it was its turn", command)
			}
			b.release()
			// It can have begun before; else it has not.
			if began := slices.ContainsFunc(b.entries(), func(e Entry) bool { return e.Kind == "ended" && e.Argv[0] != "hold" }); !began && (r.Status != wire.Aborted || b.ran()) {
				t.Errorf("%s, %s: %+v, ran %v", tt.name, command, r, b.ran())
			} else if began && tt.name == "while it waits" {
				t.Errorf("%s: it ran after the abort: %+v", command, r)
			}
		}
	}
	// While the last thing before it runs is done: writing it down.
	var h *host
	h = newHost(t, func(h2 *host, c *Config) {
		log := c.Log
		c.Log = func(e Entry) error {
			if e.Status == wire.Approved {
				h2.Queue().Abort(t.Context())
			}
			return log(e)
		}
		h2.program(t, h2.bin, "show", "echo >'"+h2.dir+"/mark'")
	})
	if r := <-h.begin(t, "show"); r.Status != wire.Aborted || r.Approved {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "mark")); err == nil {
		t.Error("it ran after the abort")
	}
	if got := h.kinds(); got != "decided:approved ended:aborted" {
		t.Error(got)
	}
}

// TestTurns: what runs without a question keeps nothing from running that a person
// approved; and what cannot begin at once cannot be approved, so that no yes is
// forgotten, or followed when nobody remembers it.
func TestTurns(t *testing.T) {
	b := newBusy(t, nil) // hold runs
	b.begin(t, "leave")  // and this waits
	await(t, func() bool { return b.decided.Load() >= 3 })
	h := b.host
	first := h.begin(t, "sh -c 'while [ ! -e "+h.dir+"/end ]; do sleep 0.02; done'")
	a := h.waits(t)
	if err := h.Queue().Answer(t.Context(), a.Seq, seen(a)); err != nil {
		t.Fatal(err)
	}
	second := h.begin(t, "touch "+h.dir+"/second")
	a = h.waits(t)
	err := h.Queue().Answer(t.Context(), a.Seq, seen(a))
	if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), "1 command that you approved still runs,") {
		t.Errorf("approving one too many gives %v", err)
	}
	if p, _ := h.Queue().Pending(t.Context()); len(p) != 1 || p[0].Seq != a.Seq {
		t.Errorf("and then there waits %+v", p)
	}
	os.WriteFile(filepath.Join(h.dir, "end"), nil, 0o644)
	if r := <-first; !r.Approved {
		t.Errorf("%+v", r)
	}
	await(t, func() bool { return h.Queue().Answer(t.Context(), a.Seq, seen(a)) == nil })
	if r := <-second; !r.Approved {
		t.Errorf("%+v", r)
	}
	// A no needs no turn, and what was not run after its yes gives its own back.
	for range 3 {
		third := h.begin(t, "cat notes")
		a = h.waits(t)
		lead := func() { os.Symlink("/etc/passwd", filepath.Join(h.ws, "notes")) }
		await(t, func() bool { return len(h.queue.turns) == 0 })
		b.then.Store(&lead)
		if err := h.Queue().Answer(t.Context(), a.Seq, seen(a)); err != nil {
			t.Fatal(err)
		}
		if r := <-third; r.Status != wire.Denied {
			t.Errorf("%+v", r)
		}
		os.Remove(filepath.Join(h.ws, "notes"))
	}
	if b.ran() {
		t.Error("what waits for its turn ran")
	}
	b.release()
}

// TestInputIsLogged: what was approved with input can be told later from what was
// not; what was turned away costs nothing.
func TestInputIsLogged(t *testing.T) {
	h := newHost(t, nil)
	for _, yes := range []bool{true, false} {
		h.log = nil
		got := make(chan wire.Response, 1)
		go func() {
			r, _ := h.send(t.Context(), wire.Request{Command: "cat", Stdin: []byte("kind: Secret\n")})
			got <- r
		}()
		a := h.waits(t)
		v := Verdict{By: "test"}
		if yes {
			v = seen(a)
		}
		if err := h.Queue().Answer(t.Context(), a.Seq, v); err != nil {
			t.Fatal(err)
		}
		<-got
		for _, e := range h.entries() {
			if want := e.Kind != "decided" || yes; want != (e.InputSize == 13 && e.InputSHA256 == a.StdinSHA256) || !want && e.InputSHA256 != "" || e.Request.Stdin != nil {
				t.Errorf("%v: %+v", yes, e)
			}
		}
	}
}
