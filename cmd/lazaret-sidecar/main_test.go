package main

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args     []string
		status   int
		out, err string
	}{
		{[]string{"--help"}, 0, usage, ""},
		{[]string{"--version"}, 0, version, ""},
		{[]string{"--nope"}, 2, "", usage},
	} {
		var out, errs bytes.Buffer
		if status := run(test.args, &out, &errs); status != test.status || out.String() != test.out || errs.String() != test.err {
			t.Errorf("%q: status %d, %q, %q", test.args, status, out.String(), errs.String())
		}
	}
}

// The first line says that a signal will be heard.
func TestEndsWhenTold(t *testing.T) {
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(nil, w, io.Discard) }()
	line := make([]byte, len(version))
	if _, err := io.ReadFull(r, line); err != nil || string(line) != version {
		t.Fatalf("%q, %v", line, err)
	}
	select {
	case status := <-ended:
		t.Fatalf("it ended by itself with %d", status)
	case <-time.After(20 * time.Millisecond):
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {
	case status := <-ended:
		if status != 0 {
			t.Errorf("status %d", status)
		}
	case <-time.After(10 * time.Second):
		t.Error("SIGTERM does not end it")
	}
}
