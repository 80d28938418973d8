package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lazaret/internal/step"
	"lazaret/launch"
)

func newDenials(t *testing.T) (*denials, *bytes.Buffer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var talk bytes.Buffer
	record := launch.Record{ID: "0123456789ab", Profile: "shell", Workspace: "/w"}
	return &denials{
		record: record, talk: &talk, live: true, seen: map[auditEntry]uint64{}, lines: allowance{most: deniedMost, over: "was denied"},
		audit: &audit{record: record, file: f, now: func() time.Time { return time.Unix(0, 0) }},
		never: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")},
		own:   func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.7")} },
	}, &talk, path
}

func deniedBy(attr ...string) step.Event {
	e := step.Event{Kind: step.Denied, Attr: map[string]string{"count": "1"}}
	for i := 0; i < len(attr); i += 2 {
		e.Attr[attr[i]] = attr[i+1]
	}
	return e
}

// TestDeniedIsHostileText: names are any bytes that an agent chose, and reach
// the terminal, the log and a line that is meant to be copied.
func TestDeniedIsHostileText(t *testing.T) {
	w, talk, path := newDenials(t)
	evil := "evil\x1b]52;c;Y3VybA==\x07\u202e\n\"]\nallow_egress = [\"0.0.0.0/0\".test"
	w.event(deniedBy("what", "refused", "name", evil))
	w.event(deniedBy("what", "rebound", "name", "x\r\x1b[2K", "address", "10.1.2.3"))
	w.event(deniedBy("what", "denied", "protocol", "tcp", "address", "10.1.2.3", "port", "443", "name", "\x9b\u200b"))
	w.event(deniedBy("what", "denied", "protocol", "tcp", "address", "169.254.169.254", "port", "80"))
	w.event(deniedBy("what", "denied", "protocol", "icmp", "address", "2001:db8::1", "port", "0", "count", "7"))
	w.event(deniedBy("what", "refused", "name", "pypi.org", "count", "2"))
	w.event(step.Event{Kind: step.Notice, Attr: map[string]string{"notice": "gone"}, Err: "\x1b[31m"})
	w.end(&ending{w: w.talk})
	for _, r := range talk.String() {
		if r != '\n' && (r < ' ' || r > '~') {
			t.Errorf("%q reaches the terminal:\n%q", r, talk)
		}
	}
	for _, want := range []string{
		`tcp 10.1.2.3:443`, `; to allow: allow_egress = ["10.1.2.3/32:443/tcp"]`, `icmp 2001:db8::1, 7 times; to allow: allow_egress = ["2001:db8::1/128"]`,
		`the name pypi.org, 2 times; to allow: allow_hosts = ["pypi.org:443"]`, "  tcp 169.254.169.254:80\n",
	} {
		if !strings.Contains(talk.String(), want) {
			t.Errorf("no %q in\n%s", want, talk)
		}
	}
	for line := range strings.Lines(talk.String()) {
		if strings.Contains(line, "evil") && strings.Contains(line, "to allow") {
			t.Errorf("a line to copy: %s", line)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 7 {
		t.Errorf("%d lines in the log", len(lines))
	}
	for _, l := range lines {
		var a auditEntry
		if err := json.Unmarshal([]byte(l), &a); err != nil || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q: %v", l, err)
		}
	}
	var shown bytes.Buffer
	if err := showLog(t.Context(), &shown, path, false, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(shown.String(), func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		t.Errorf("log shows %q", shown.String())
	}
}

// TestDeniedIsBounded: a sandbox cannot fill the disk or the screen.
func TestDeniedIsBounded(t *testing.T) {
	w, talk, path := newDenials(t)
	for i := range deniedMost + 5000 {
		w.event(deniedBy("what", "refused", "name", fmt.Sprintf("n%d.test", i)))
	}
	w.end(&ending{w: w.talk})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n != deniedMost+1 {
		t.Errorf("%d lines in the log", n)
	}
	if n := strings.Count(talk.String(), "\n"); n > 2*summaryMost+5 {
		t.Errorf("%d lines on the screen", n)
	}
	if !strings.Contains(talk.String(), "more: lazaret log") || !strings.Contains(talk.String(), "others that were not told apart") {
		t.Errorf("it does not say that there is more:\n%s", talk)
	}
}

// TestDeniedAfterNoise: a sandbox that was noisy for an hour is written down
// again, and that there is a gap is said.
func TestDeniedAfterNoise(t *testing.T) {
	w, _, path := newDenials(t)
	at := time.Unix(0, 0)
	w.audit.now = func() time.Time { return at }
	for i := range deniedMost + 50 {
		w.event(deniedBy("what", "refused", "name", fmt.Sprintf("n%d.test", i)))
	}
	at = at.Add(time.Minute)
	w.event(deniedBy("what", "refused", "name", "soon.test")) // some room is back, and not enough
	at = at.Add(12 * time.Hour)
	for i := range deniedMost {
		w.event(deniedBy("what", "refused", "name", fmt.Sprintf("later%d.test", i)))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`"later0.test"`: true, "; 51 lines are missing before this": true, "soon.test": false, "later19999.test": false} {
		if bytes.Contains(b, []byte(text)) != want {
			t.Errorf("%s in the log: %v", text, !want)
		}
	}
	if n := bytes.Count(b, []byte("\n")); n > deniedMost*3/2+20 {
		t.Errorf("%d lines in the log", n)
	}
}

func TestLogFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	var out output
	done := make(chan error)
	go func() { done <- showLog(ctx, &out, path, true, false) }()
	entry, err := auditEntry{Kind: "denied", Run: "r", Profile: "p", Protocol: "tcp", Address: "10.1.2.3", Port: 1, Count: 3}.line()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// In pieces, between which it is looked at; and something that is no entry.
	for _, part := range [][]byte{entry[:20], entry[20:], []byte("broken\n"), bytes.Repeat([]byte("x"), 2*logLine), []byte("\n"), entry} {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(logPause + 50*time.Millisecond)
	}
	const line = "p: denied tcp 10.1.2.3:1, 3 times\n"
	eventually(func() bool { return strings.Count(out.String(), line) == 2 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), line); got != 2 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("shown:\n%s", out.String())
	}
	if err := showLog(t.Context(), &out, path+".none", false, false); err != nil {
		t.Errorf("no log yet: %v", err)
	}
}

// TestNoSuggestionOpensTheMachine: an agent could try its addresses, or a name
// of its own that means an inner one, just to have the line suggested.
func TestNoSuggestionOpensTheMachine(t *testing.T) {
	w, _, _ := newDenials(t)
	for _, a := range []auditEntry{
		{Kind: "denied", Protocol: "tcp", Address: "192.0.2.7", Port: 22},
		{Kind: "denied", Protocol: "tcp", Address: "169.254.169.254", Port: 80},
		{Kind: "rebound", Name: "evil.example", Address: "10.0.0.5"},
		{Kind: "refused", Name: "*.com"}, // what is asked for can hold any byte
		{Kind: "refused", Name: "github.com:22/tcp"},
		{Kind: "refused", Name: "https://github.com"},
		{Kind: "refused", Name: "10.0.0.1"},
	} {
		if s := w.suggestion(a); s != "" {
			t.Errorf("%+v: suggests %s", a, s)
		}
	}
	if s := w.suggestion(auditEntry{Kind: "denied", Protocol: "tcp", Address: "192.0.2.8", Port: 22}); s != `allow_egress = ["192.0.2.8/32:22/tcp"]` {
		t.Errorf("suggests %q", s)
	}
}
