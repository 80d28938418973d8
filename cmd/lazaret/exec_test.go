package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"lazaret/internal/proc"
)

// "lazaret exec ID -- git status | less" has the person's terminal as its input
// and for its errors. What the sandbox writes there is filtered, or goes nowhere.
func TestInsideWithoutTerminal(t *testing.T) {
	me, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	shown := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(me) // until EIO
		shown <- string(b)
	}()
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const evil = `\033]52;c;ZXZpbA==\007`
	status, err := runInside(context.Background(), proc.Cmd{
		Argv:  []string{"/bin/sh", "-c", `printf 'read ` + evil + `' >&0; printf 'errors ` + evil + `' >&2; echo out; exit 3`},
		Stdin: tty, Stdout: out, Stderr: tty, Session: true,
	}, false, true, "p")
	if status != 3 || err != nil {
		t.Errorf("ended with %d, %v", status, err)
	}
	tty.Close()
	select {
	case got := <-shown:
		if strings.Contains(got, "\x1b]52") || strings.Contains(got, "read") || !strings.Contains(got, "errors") {
			t.Errorf("the terminal was sent %q", got)
		}
	case <-time.After(5 * time.Second):
		t.Error("somebody kept the terminal")
	}
	if b, _ := os.ReadFile(out.Name()); string(b) != "out\n" {
		t.Errorf("the output was %q", b)
	}
}
