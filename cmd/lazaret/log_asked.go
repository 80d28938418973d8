package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"lazaret/escalate/wire"
	"lazaret/internal/step"
)

// requests is what a sandbox asked of the host: written to the audit log, and
// summed up.
type requests struct {
	audit *audit

	mu                           sync.Mutex
	lines                        allowance
	auto, approved, denied, open int
}

func newRequests(a *audit) *requests {
	return &requests{audit: a, lines: allowance{most: askedMost, over: "asked for"}}
}

// askedText is how many bytes of text count as another line of the log.
const askedText = 512

var errAskedMost = errors.New("this sandbox has asked for more than the log shall hold")

// event takes in one event of the run. Its error keeps a command from running.
func (w *requests) event(e step.Event) error {
	if e.Kind != step.Asked {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := askEntry(e)
	n := 1
	for _, text := range e.Attr {
		n += len(text) / askedText
	}
	ok, notice := true, ""
	if entry.Kind == "ended" {
		w.lines.force(float64(n)) // what has run is always written down
	} else {
		ok, notice = w.lines.take(float64(n), w.audit.now())
	}
	var err error
	if notice != "" {
		err = w.audit.write(auditEntry{Kind: "notice", Text: notice})
	}
	switch {
	case err != nil:
	case ok:
		err = w.audit.write(entry)
	default:
		err = errAskedMost
	}
	switch {
	case entry.Kind == "decided":
		w.count(entry.Ask, err == nil)
	case entry.Kind == "ended" && entry.Ask.Status == wire.Aborted:
		w.uncount(entry.Ask)
	}
	return err
}

// uncount takes back a yes after which nothing was run.
func (w *requests) uncount(a *auditAsk) {
	w.denied++
	if a.By == "auto_approve" {
		w.auto--
	} else {
		w.approved--
	}
}

// count takes in a decision. One that is not written down runs nothing.
func (w *requests) count(a *auditAsk, written bool) {
	approved := a.Status == wire.Approved || a.Status == wire.Edited
	switch {
	case approved && !written, a.Status == wire.Denied, a.Status == wire.Aborted:
		w.denied++
	case a.By == "auto_approve":
		w.auto++
	case approved:
		w.approved++
	default:
		w.open++
	}
}

// askEntry makes an entry of an event.
func askEntry(e step.Event) auditEntry {
	a := &auditAsk{
		Request: e.Attr["request"], Command: e.Attr["command"], Program: e.Attr["program"], Reason: e.Attr["reason"],
		ArgvSHA256: e.Attr["argv_sha256"], InputSHA256: e.Attr["input_sha256"],
		Status: e.Attr["status"], By: e.Attr["by"], Error: e.Attr["error"], Dir: e.Attr["dir"],
	}
	json.Unmarshal([]byte(e.Attr["argv"]), &a.Argv)
	a.LeftOut, _ = strconv.Atoi(e.Attr["left_out"])
	a.Input, _ = strconv.ParseInt(e.Attr["input"], 10, 64)
	if n, err := strconv.Atoi(e.Attr["exit"]); err == nil {
		a.Exit = &n
	}
	if t, err := time.ParseDuration(e.Attr["duration"]); err == nil {
		a.Seconds = t.Seconds()
	}
	return auditEntry{Kind: e.Attr["what"], Ask: a}
}

// text tells what was asked for, unescaped.
func (a *auditAsk) text() string {
	if a.Argv == nil {
		return a.Command
	}
	// Quoting is by what the words hold, so that hidden characters are seen.
	return wire.Quote(a.Argv)
}

// outcome tells what became of it, unescaped.
func (a *auditAsk) outcome(kind string) string {
	var s []string
	switch {
	case kind == "asked":
		s = append(s, "because: "+strings.TrimSpace(a.Reason))
	case kind == "ended" && a.Exit != nil:
		s = append(s, fmt.Sprintf("exit status %d after %.3f s", *a.Exit, a.Seconds))
	case a.By != "" && kind != "ended":
		s = append(s, a.Status+" by "+a.By)
	default:
		s = append(s, a.Status)
	}
	if a.Error != "" {
		s = append(s, a.Error)
	}
	return strings.Join(s, ": ")
}

// digests tells of what is not in the log what it was, unescaped. It stands before
// everything that the sandbox chose, which could say the same.
func (a *auditAsk) digests() (s string) {
	if a.LeftOut > 0 {
		s = fmt.Sprintf(" [left out: %s, sha256 of all %s]", plural(a.LeftOut, "argument"), a.ArgvSHA256)
	}
	if a.Input > 0 {
		s += fmt.Sprintf(" [input: %s, sha256 %s]", plural(int(a.Input), "byte"), a.InputSHA256)
	}
	return s
}

// end sums up.
func (w *requests) end(e *ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{w.auto, "ran without asking"}, {w.approved, "approved"}, {w.denied, "denied"}, {w.open, "not answered"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 || e.quiet {
		return
	}
	total := w.auto + w.approved + w.denied + w.open
	text := fmt.Sprintf("%s of this machine: %s", plural(total, "command"), strings.Join(parts, ", "))
	if e.look != nil {
		e.row(line{name: "asked", text: "for " + text, next: "lazaret log"})
		return
	}
	fmt.Fprintf(e.w, "lazaret: asked for %s (lazaret log)\n", text)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
