package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// longEnough is how long a test waits for what must come: a machine with much
// else to do takes its time, and no test may fail for that. What comes is not
// waited for any longer.
const longEnough = 2 * time.Minute

// eventually waits until something holds, and tells whether it came to that.
func eventually(holds func() bool) bool {
	for end := time.Now().Add(longEnough); ; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// waitForFile waits until there is a file.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	if !eventually(func() bool { return exists(path) }) {
		t.Fatalf("%s does not appear", path)
	}
}

// awaitNumber waits for a file with a line that is a number.
func awaitNumber(t *testing.T, path string) (n int) {
	t.Helper()
	whole := func() bool {
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		_, err = fmt.Sscan(string(b), &n)
		return err == nil
	}
	if !eventually(whole) {
		t.Fatalf("%s does not appear", path)
	}
	return n
}

// cmdWaitfor waits until there is a file, or one with a text in it.
//
//	waitfor PATH [TEXT]
func cmdWaitfor(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "waitfor")
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfor PATH [TEXT]")
	}
	path, text := ts.MkAbs(args[0]), strings.Join(args[1:], "")
	var b []byte
	there := func() (ok bool) {
		var err error
		b, err = os.ReadFile(path)
		return err == nil && bytes.Contains(b, []byte(text))
	}
	if !eventually(there) {
		ts.Fatalf("%s does not appear; in %s there is\n%s", strings.Join(args[1:], args[0]), args[0], b)
	}
}

// output is what a program has printed so far, while it goes on.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// await waits until a text was printed.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	if !eventually(func() bool { return strings.Contains(o.String(), text) }) {
		t.Fatalf("this is not printed: %q\n%s", text, o)
	}
}

// touch makes an empty file in the workspace.
func (s *sandboxed) touch(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.ws, name), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}
