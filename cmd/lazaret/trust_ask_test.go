package main

import (
	"strings"
	"testing"

	"lazaret/lock"
)

// What is to be agreed to is short, but for what grants something.
func TestDigestCutsNoAlarm(t *testing.T) {
	text := "runs rsync " + strings.Repeat("-v ", 400) + "--delete / host: on the host without asking"
	line := func(alarm bool) lock.Change {
		return lock.Change{Op: "+", Alarm: alarm, Risk: "grant", Text: text, Parts: []lock.Part{{Key: "profiles.x.escalation.auto_approve_exact"}}}
	}
	list, _, _ := digest([]lock.Change{line(true), line(false)})
	if len(list) != 2 || list[0].Text != text {
		t.Errorf("an alarm is cut: %v", list)
	}
	if cut := list[1].Text; len(cut) >= len(text) || !strings.Contains(cut, "more characters) …") || !strings.HasSuffix(cut, text[len(text)-200:]) {
		t.Errorf("not cut in the middle: %q", cut)
	}
}
