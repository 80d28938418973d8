package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"lazaret/internal/step"
)

// TestLive draws on a terminal while others write there.
func TestLive(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	screen := vt.NewEmulator(60, 30)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := ptmx.Read(buf)
			mu.Lock()
			screen.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go io.Copy(io.Discard, screen) // what it answers

	env := map[string]string{"TERM": "xterm", "LANG": "C.UTF-8", "NO_COLOR": "1"}
	d := &deps{env: func(k string) string { return env[k] }}
	l := d.newLive(tty, true)
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
	tty.Close()
	<-read
	var got []string
	for _, line := range strings.Split(screen.String(), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
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
	if is := strings.TrimRight(strings.Join(got, "\n"), "\n"); is != want {
		t.Errorf("the screen is\n%s", is)
	}
}
