package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdAnswer runs a command on a terminal of its own, and types TEXT whenever
// it asks. What it showed goes to FILE. TEXT "-" types nothing: the command must
// not ask.
//
//	[!] answer FILE TEXT COMMAND [ARG...]
func cmdAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: answer FILE TEXT COMMAND [ARG...]")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir)
	for _, k := range []string{"HOME", "PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "LAZARET_TRUST", "TERM", "NO_COLOR", "TESTSCRIPT_COVER_DIR"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	ptmx, err := pty.Start(cmd)
	ts.Check(err)
	defer ptmx.Close()
	kill := time.AfterFunc(longEnough, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()

	var shown bytes.Buffer
	asked := false
	buf := make([]byte, 4096)
	for {
		n, err := ptmx.Read(buf)
		shown.Write(buf[:n])
		if n > 0 && strings.HasSuffix(shown.String(), "] ") {
			asked = true
			if args[1] == "-" {
				syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			} else if _, err := io.WriteString(ptmx, args[1]+"\n"); err != nil {
				ts.Fatalf("answering: %v", err)
			}
		}
		if err != nil { // EIO: the other end is closed
			break
		}
	}
	err = cmd.Wait()
	text := strings.ReplaceAll(shown.String(), "\r\n", "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
	ts.Logf("%s", text)
	if want := args[1] != "-"; asked != want {
		ts.Fatalf("asked: %v", asked)
	}
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		ts.Fatalf("%v", err)
	}
	if (err != nil) != neg {
		ts.Fatalf("ended with %v", err)
	}
}
