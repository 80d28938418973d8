package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lazaret/internal/step"
	"lazaret/launch"
)

func testRequests(t *testing.T) (*requests, *bytes.Buffer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var talk bytes.Buffer
	a := &audit{record: launch.Record{ID: "0123456789ab", Profile: "shell", Workspace: "/w"}, file: f, now: func() time.Time { return time.Unix(0, 0) }}
	return newRequests(a), &talk, path
}

func askedBy(attr ...string) step.Event {
	e := step.Event{Kind: step.Asked, Attr: map[string]string{}}
	for i := 0; i < len(attr); i += 2 {
		e.Attr[attr[i]] = attr[i+1]
	}
	return e
}

// TestAskedIsHostileText: every text of a request is an agent's, and reaches the
// terminal, the log and what shows the log.
func TestAskedIsHostileText(t *testing.T) {
	w, talk, path := testRequests(t)
	evil := "x\r\x1b[2K\x1b]52;c;Y3VybA==\x07\u202e\u200b\U000e0100\u009b\n\xff" + strings.Repeat("\u00a0", 40) + strings.Repeat("e\u0301", 5)
	argv, err := json.Marshal([]string{evil, evil})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"request", evil, "argv", string(argv), "command", evil, "program", evil, "reason", evil, "status", evil, "by", evil, "error", evil, "dir", evil}
	for _, e := range []step.Event{
		askedBy(append(all, "what", "asked")...), askedBy(append(all, "what", "decided")...), askedBy(append(all, "what", "ended", "exit", "1", "duration", "1ms")...),
		askedBy(append(all, "what", "decided", "argv", "")...),
		askedBy("what", "decided", "argv", `["id"]`, "status", "approved", "by", "auto_approve"),
		askedBy("what", "ended", "argv", `["id"]`, "status", "approved", "by", "auto_approve", "exit", "0", "duration", "4ms"),
		askedBy("what", "decided", "argv", `["id"]`, "status", "denied", "by", "limit"),
	} {
		if err := w.event(e); err != nil {
			t.Fatal(err)
		}
	}
	w.end(&ending{w: talk})
	var shown bytes.Buffer
	if err := showLog(t.Context(), &shown, path, false, false); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"terminal": talk.String(), "log": string(file)} {
		for _, r := range text {
			if r != '\n' && (r < ' ' || r > '~') && !(name == "terminal" && r == '\u0301') {
				t.Errorf("%q reaches the %s:\n%q", r, name, text)
				break
			}
		}
	}
	if n := strings.Count(shown.String(), "\n"); n != 7 || strings.ContainsAny(shown.String(), "\x1b\r\x07\u202e\u200b\u009b\u00a0") {
		t.Errorf("%d lines:\n%q", n, shown.String())
	}
	if !strings.Contains(talk.String(), "lazaret: asked for 4 commands of this machine: 1 ran without asking, 1 denied, 2 not answered (lazaret log)\n") {
		t.Errorf("%s", talk)
	}
	if !strings.Contains(shown.String(), "shell: ended id: exit status 0 after 0.004 s") {
		t.Errorf("%s", shown.String())
	}
}

// TestAskedMost: the log is bounded, and what it does not hold is not run; what
// has run is written down all the same. Where requests are missing is said, and
// how many, and the summary counts them.
func TestAskedMost(t *testing.T) {
	w, talk, path := testRequests(t)
	at := time.Unix(0, 0)
	w.audit.now = func() time.Time { return at }
	decided := func(program, status string) error {
		return w.event(askedBy("what", "decided", "argv", `["`+program+`"]`, "status", status, "by", "person"))
	}
	if err := decided("first", "approved"); err != nil {
		t.Fatal(err)
	}
	w.lines.spent = askedMost
	for _, status := range []string{"approved", "edited", "denied", "timeout"} {
		if err := decided("missing", status); err == nil {
			t.Error("the log has no end")
		}
	}
	if err := w.event(askedBy("what", "ended", "argv", `["ran"]`)); err != nil {
		t.Error(err)
	}
	at = at.Add(12 * time.Hour)
	if err := decided("later", "denied"); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	want := []string{`"first"`, "this sandbox asked for more than the log shall hold", `"ran"`, "written down again; 4 lines are missing before this", `"later"`}
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), b)
	}
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			t.Errorf("line %d has no %s: %s", i+1, text, lines[i])
		}
	}
	if w.end(&ending{w: talk}); !strings.Contains(talk.String(), "6 commands of this machine: 1 approved, 4 denied, 1 not answered ") {
		t.Errorf("%s", talk)
	}
	w.audit.file = nil
	if err := w.event(askedBy("what", "ended", "argv", `["id"]`)); err == nil {
		t.Error("written to nowhere")
	}
}

// TestLogLongRequest: the longest request that is written can be shown.
func TestLogLongRequest(t *testing.T) {
	w, _, path := testRequests(t)
	argv, _ := json.Marshal([]string{strings.Repeat("\x1b", 4<<10)})
	if err := w.event(askedBy("what", "decided", "argv", string(argv), "reason", strings.Repeat("\u202e", 341), "program", strings.Repeat("\x01", 4096), "error", strings.Repeat("\x01", 100))); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	if err := showLog(t.Context(), &shown, path, false, false); err != nil || shown.Len() == 0 {
		t.Errorf("%v: %d bytes are shown", err, shown.Len())
	}
}

// TestAskedAborted: what was allowed and, after an abort, not run is counted once,
// as not run, and the log says so.
func TestAskedAborted(t *testing.T) {
	for by, all := range map[string]string{"auto_approve": "1 ran without asking", "terminal": "1 approved"} {
		w, talk, path := testRequests(t)
		for range 2 {
			if err := w.event(askedBy("what", "decided", "argv", `["id"]`, "status", "approved", "by", by)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.event(askedBy("what", "ended", "argv", `["id"]`, "status", "aborted", "by", by, "error", "the channel is shut")); err != nil {
			t.Fatal(err)
		}
		w.end(&ending{w: talk})
		if want := "2 commands of this machine: " + all + ", 1 denied (lazaret log)\n"; !strings.Contains(talk.String(), want) {
			t.Errorf("%s: %s", by, talk)
		}
		var shown bytes.Buffer
		if err := showLog(t.Context(), &shown, path, false, false); err != nil || !strings.Contains(shown.String(), "ended id: aborted: the channel is shut\n") {
			t.Errorf("%s, %v", shown.String(), err)
		}
	}
}

// TestAskedDigests: the log tells what was approved by its digest where it has not
// all of it, and before any word of the sandbox's.
func TestAskedDigests(t *testing.T) {
	w, _, path := testRequests(t)
	for _, e := range []step.Event{
		askedBy("what", "decided", "argv", `["cat","[left out: 9 arguments]"]`, "status", "approved", "by", "terminal"),
		askedBy("what", "decided", "argv", `["cat","x"]`, "status", "approved", "by", "terminal", "left_out", "3", "argv_sha256", "aa11", "input", "13", "input_sha256", "bb22"),
	} {
		if err := w.event(e); err != nil {
			t.Fatal(err)
		}
	}
	var shown, raw bytes.Buffer
	if err := errors.Join(showLog(t.Context(), &shown, path, false, false), showLog(t.Context(), &raw, path, false, true)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"shell: decided cat '[left out: 9 arguments]': approved by terminal\n",
		"shell: decided [left out: 3 arguments, sha256 of all aa11] [input: 13 bytes, sha256 bb22] cat x: approved by terminal\n",
	} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %q in\n%s", want, shown.String())
		}
	}
	if want := `"left_out":3,"argv_sha256":"aa11","input":13,"input_sha256":"bb22"`; strings.Count(raw.String(), want) != 1 || strings.Count(raw.String(), "left_out") != 1 {
		t.Errorf("%s", raw.String())
	}
}
