package prompt

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// What PATH has for "tmux" may be an agent's, with a virtual environment of the
// workspace's active. A prompt runs no program to learn about its terminal.
func TestPromptRunsNothing(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\n: >'"+ran+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	me, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	defer me.Close()
	if err := pty.Setsize(me, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	drawn := sync.OnceFunc(end)
	go func() {
		var all []byte
		for buf := make([]byte, 4096); ; {
			n, err := me.Read(buf)
			if all = append(all, buf[:n]...); bytes.Contains(all, []byte("MARKER")) {
				drawn()
			}
			if err != nil {
				return
			}
		}
	}()
	a := ask(1, "ls", "MARKER")
	d := &desk{ch: make(chan struct{}, 1)}
	d.asks = append(d.asks, a)
	err = Run(ctx, Options{Desk: d, TTY: tty, Environ: []string{"TERM=tmux-256color", "TMUX=/tmp/tmux-1000/default,1,0", "PATH=" + dir}})
	if err != nil || context.Cause(ctx) != context.Canceled {
		t.Fatalf("it was not drawn: %v, %v", err, context.Cause(ctx))
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran what PATH has for tmux")
	}
}
