package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"lazaret/internal/step"
)

// liveOn gives a live of a terminal of its own, and what stands there in the end.
func liveOn(t *testing.T, shared bool) (l *live, tty *os.File, end func() string) {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ptmx.Close() })
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	screen := vt.NewEmulator(60, 30)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := ptmx.Read(buf)
			screen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go io.Copy(io.Discard, screen) // what it answers
	env := map[string]string{"TERM": "xterm", "LANG": "C.UTF-8", "NO_COLOR": "1"}
	d := &deps{env: func(k string) string { return env[k] }}
	return d.newLive(tty, shared), tty, func() string {
		tty.Close()
		<-read
		var got []string
		for line := range strings.SplitSeq(screen.String(), "\n") {
			got = append(got, strings.TrimRight(line, " "))
		}
		return strings.TrimRight(strings.Join(got, "\n"), "\n")
	}
}

// TestLive draws on a terminal while others write there.
func TestLive(t *testing.T) {
	l, tty, end := liveOn(t, true)
	var steps []step.Step
	for _, name := range []string{"image", "sandbox"} {
		steps = append(steps, step.Step{Name: name})
	}
	occupies := func(name string) bool { return name == "sandbox" }
	see := func(kind, name string) { l.event(step.Event{Kind: kind, Step: name}, occupies) }
	start := time.Unix(1000, 0)
	l.now = func() time.Time { return start }
	l.show(newBoard("box", "~/proj", steps, map[string]string{rowImage: "x:1 0123456789ab", rowSandbox: "gVisor 1"}))
	see(step.Begin, "image")
	fmt.Fprintln(l, "lazaret: note: one that is longer than the sixty columns that there are")
	see(step.Done, "image")
	see(step.Begin, "sandbox")
	fmt.Fprint(l, "lazaret: note: two\n")
	l.mu.Lock()
	start = start.Add(1300 * time.Millisecond)
	l.mu.Unlock()
	l.first()
	io.WriteString(tty, "the sandbox prints\r\nand does not end")
	fmt.Fprint(l, "\r\nlazaret: warning: three\r\n")
	see(step.Done, "sandbox")
	l.event(step.Event{Kind: step.Returned}, occupies)
	l.close(true)
	e := l.newEnding(l)
	e.ended("box", 0, time.Second)
	want := `lazaret: note: one that is longer than the sixty columns
      that there are
lazaret: note: two
box  ~/proj
  ✓ image    x:1 0123456789ab
  ✓ sandbox  gVisor 1  ready in 1.3 s

the sandbox prints
and does not end
lazaret: warning: three

box  ended after 1.0 s`
	if is := end(); is != want {
		t.Errorf("the screen is\n%s", is)
	}
}

// TestLiveInterrupted: that a launch was interrupted is said, also where the
// sandbox is being made already and its command waits for the network.
func TestLiveInterrupted(t *testing.T) {
	for _, shared := range []bool{true, false} {
		l, _, end := liveOn(t, shared)
		var steps []step.Step
		for _, name := range []string{"network.router", "network.gate", "sandbox"} {
			steps = append(steps, step.Step{Name: name})
		}
		see := func(kind, name string) {
			l.event(step.Event{Kind: kind, Step: name}, func(name string) bool { return name == "sandbox" })
		}
		start := time.Unix(1000, 0)
		l.now = func() time.Time { return start }
		l.show(newBoard("box", "~/proj", steps, map[string]string{rowNetwork: "1 host", rowSandbox: "gVisor 1"}))
		see(step.Begin, "network.router")
		see(step.Begin, "sandbox")
		see(step.Failed, "sandbox") // podman has heard of it first
		l.interrupt()
		see(step.Failed, "network.router")
		see(step.Returned, "")
		l.interrupt() // by whoever looks at the end
		l.close(true)
		want := `box  ~/proj
  – network  1 host
  – sandbox  gVisor 1
  – interrupted; nothing of it is left`
		if is := end(); is != want {
			t.Errorf("where the sandbox says when it prints: %v, the screen is\n%s", shared, is)
		}
	}
}

// TestLiveBegins: the board stands still from when the sandbox's command may run,
// and not before.
func TestLiveBegins(t *testing.T) {
	for _, tc := range []struct {
		name string
		see  []string
		held []bool // until then something is yet to begin
	}{
		{"made first", []string{"begin sandbox", "begin network.router", "done network.router", "begin network.gate"}, []bool{true, true, true, false}},
		{"network first", []string{"begin network.router", "done network.router", "begin network.gate", "begin sandbox"}, []bool{false, false, false, false}},
	} {
		l, _, _ := liveOn(t, false)
		steps := []step.Step{{Name: "network.router"}, {Name: "network.gate"}, {Name: "sandbox"}}
		l.show(newBoard("box", "~/proj", steps, nil))
		for i, e := range tc.see {
			kind, name, _ := strings.Cut(e, " ")
			l.event(step.Event{Kind: kind, Step: name}, func(name string) bool { return name == "sandbox" })
			l.mu.Lock()
			if last := i == len(tc.see)-1; l.held != tc.held[i] || l.on == last {
				t.Errorf("%s, after %s: held %v, shown %v", tc.name, e, l.held, l.on)
			}
			l.mu.Unlock()
		}
		l.close(true)
	}
}
