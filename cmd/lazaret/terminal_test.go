package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestEndToEndTerminal sits at the terminal of a sandbox.
func TestEndToEndTerminal(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	before := s.quiet()
	c, _ := s.cmd([]string{"TERM=xterm-256color"}, "launch", "shell")
	c.Stdout, c.Stderr = nil, nil
	ptmx, err := pty.StartWithSize(c, &pty.Winsize{Rows: 31, Cols: 97})
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	screen := &transcript{t: t, f: ptmx}
	screen.wait(`/workspace # $`)
	screen.say("stty size; echo $TERM", `\n31 97\r?\n[^\n]*xterm-256color`)
	pty.Setsize(ptmx, &pty.Winsize{Rows: 20, Cols: 70})
	// The size comes to the sandbox in its own time.
	screen.say("until stty size | grep '^20 70$'; do sleep 0.1; done", `\n20 70\r?\n`)

	// Ctrl-C ends the command inside and neither the shell nor lazaret.
	screen.say("echo begun; sleep 300", `\nbegun`)
	time.Sleep(300 * time.Millisecond) // most often it sleeps by then
	ptmx.Write([]byte{3})
	screen.wait(`/workspace # $`)
	screen.say("echo still $((40+2))", `still 42`)

	screen.say("exit 5", `exit`)
	if err := c.Wait(); c.ProcessState.ExitCode() != 5 {
		t.Errorf("ended with %v", err)
	}
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// transcript is what a terminal has shown so far.
type transcript struct {
	t    *testing.T
	f    *os.File
	text bytes.Buffer
}

// say types a line and waits for what it brings, which its own echo must not match.
func (x *transcript) say(line, want string) {
	x.t.Helper()
	x.text.Reset()
	x.f.WriteString(line + "\n")
	x.wait(want)
}

// wait reads until the pattern is there. A read that never ends is left behind.
func (x *transcript) wait(pattern string) {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	end := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for !re.Match(x.text.Bytes()) {
			n, err := x.f.Read(buf)
			x.text.Write(buf[:n])
			if err != nil {
				end <- err
				return
			}
		}
		end <- nil
	}()
	select {
	case err := <-end:
		if err != nil {
			x.t.Fatalf("no %s in %q: %v", pattern, x.text.String(), err)
		}
	case <-time.After(longEnough):
		x.t.Fatalf("no %s after %s", pattern, longEnough)
	}
}

// TestEndToEndNoTerminal gives a sandbox its task in a file, on the person's
// terminal all the same.
func TestEndToEndNoTerminal(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	c, _ := s.cmd([]string{"TERM=xterm-256color"}, "launch", "shell", "--", "sh", "-c",
		`printf '\033]52;c;ZXZpbA==\007\033[6n\033]0;title\007shown'; printf '\033]52;c;ZXZpbA==\007errors' >&2`)
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	c.Stdin, c.Stdout, c.Stderr = nil, tty, tty
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	screen := &transcript{t: t, f: ptmx}
	screen.wait(`(?s)shown.*errors|errors.*shown`)
	if err := c.Wait(); err != nil {
		t.Errorf("ended with %v: %q", err, screen.text.String())
	}
	if regexp.MustCompile(`\x1b\]|\x1b\[6n`).Match(screen.text.Bytes()) {
		t.Errorf("the terminal was sent %q", screen.text.String())
	}
}
