package proc

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func sh(script string) Cmd { return Cmd{Argv: []string{"/bin/sh", "-c", script}} }

func TestOutput(t *testing.T) {
	out, err := Output(t.Context(), sh(`echo out; echo err >&2`))
	if err != nil || string(out) != "out\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestEnvironmentIsOnlyWhatWasGiven(t *testing.T) {
	t.Setenv("LEAK", "1")
	out, err := Output(t.Context(), Cmd{Argv: []string{"/usr/bin/env"}, Env: []string{"A=b"}})
	if err != nil || string(out) != "A=b\nLC_ALL=C\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestErrorSaysWhatHappened(t *testing.T) {
	_, err := Output(t.Context(), sh(`echo first >&2; echo "the reason" >&2; exit 3`))
	var e *Error
	var ee *exec.ExitError
	if !errors.As(err, &e) || !errors.As(err, &ee) {
		t.Fatalf("got %T, want an *Error around an *exec.ExitError", err)
	}
	if !strings.HasSuffix(err.Error(), `exit status 3: it says "the reason"`) || !strings.HasPrefix(err.Error(), "running /bin/sh -c ") {
		t.Errorf("got %q", err)
	}
	if e.Stderr != "first\nthe reason" {
		t.Errorf("stderr %q", e.Stderr)
	}
}

func TestErrorActsOnNoTerminal(t *testing.T) {
	_, err := Output(t.Context(), sh(`printf 'a\033]0;x\007\rlazaret: hint: "run this"' >&2; exit 1`))
	if want := `it says "a\x1b]0;x\a\rlazaret: hint: \"run this\""`; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, want …%s", err, want)
	}
}

func TestStderrIsBounded(t *testing.T) {
	_, err := Output(t.Context(), sh(`head -c 100000 /dev/zero | tr '\0' x >&2; echo end >&2; exit 1`))
	var e *Error
	if !errors.As(err, &e) || len(e.Stderr) > stderrLimit || !strings.HasSuffix(e.Stderr, "xend") {
		t.Errorf("kept %d bytes, %v", len(e.Stderr), err != nil)
	}
}

func TestExitStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		if _, err := Output(t.Context(), sh(script)); ExitStatus(err) != want {
			t.Errorf("%s: %d, want %d", script, ExitStatus(err), want)
		}
	}
	for script, want := range map[string]bool{"exit 0": false, "exit 137": false, "kill -KILL $$": true} {
		if _, err := Output(t.Context(), sh(script)); Signaled(err) != want {
			t.Errorf("%s: ended by a signal: %v", script, !want)
		}
	}
	if _, err := Output(t.Context(), Cmd{Argv: []string{"/nonexistent"}}); ExitStatus(err) != -1 {
		t.Errorf("a program that is not there: %d, want -1", ExitStatus(err))
	}
}

func TestContextEndsTheProgram(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	// The grandchild keeps stdout open.
	_, err := Output(ctx, sh("sleep 60 & sleep 60"))
	var ee *exec.ExitError
	if err == nil || !strings.Contains(err.Error(), ": sh does not answer: stopped after ") || !errors.As(err, &ee) || !Signaled(err) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > 40*time.Second {
		t.Errorf("took %v", d)
	}
}

// A program that is killed by somebody else, or because nobody wants it any more,
// was not late.
func TestKilledIsNotLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	gone, leave := context.WithCancel(ctx)
	time.AfterFunc(50*time.Millisecond, leave)
	for ctx, script := range map[context.Context]string{ctx: "kill -KILL $$", gone: "exec sleep 60"} {
		_, err := Output(ctx, sh(script))
		var late *LateError
		if err == nil || errors.As(err, &late) { // it may not even have started
			t.Errorf("%s: %v", script, err)
		}
	}
}
