package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"lazaret/lock/config"
	"lazaret/testdata/attacks"
)

// attackReport is what became of every attack.
type attackReport struct {
	attacks  []attacks.Attack
	lazaret  map[string]trial
	plain    map[string]trial // nil: not asked for
	plainHow string
}

// attackLine is one line of the table, and one object with --json.
type attackLine struct {
	ID      string `json:"id"`
	Area    string `json:"area"`
	Goal    string `json:"goal"`
	Verdict string `json:"verdict"` // PASS, FAIL, KNOWN, skipped
	Why     string `json:"why"`
	Millis  int64  `json:"ms"`
	Plain   string `json:"plain,omitempty"` // succeeds, holds, not tried
	PlainIs string `json:"plain_why,omitempty"`
	PlainMS int64  `json:"plain_ms,omitempty"`
}

func (r attackReport) lines() (out []attackLine) {
	for _, a := range r.attacks {
		l := attackLine{ID: a.ID, Area: a.Area, Goal: a.Goal}
		if !a.Runnable() {
			l.Verdict, l.Why = verdictNone, "it needs a world of its own: "+a.Test
		} else {
			l.Verdict, l.Why = r.lazaret[a.ID].judge(a)
			l.Millis = r.lazaret[a.ID].took.Milliseconds()
			switch {
			case l.Verdict != verdictKnown:
			case a.Known != "":
				l.Why += ": " + a.Known
			default:
				l.Why += `: git = "writeback" shares the repository itself; "quarantine" does not`
			}
		}
		if r.plain != nil {
			l.Plain, l.PlainIs = attacks.Untried, a.Why
			if t, ok := r.plain[a.ID]; ok && a.Runnable() {
				l.Plain, l.PlainIs = plainly(t, a)
				l.PlainMS = t.took.Milliseconds()
			}
		}
		out = append(out, l)
	}
	return out
}

// plainly says how plain podman did.
func plainly(t trial, a attacks.Attack) (string, string) {
	switch verdict, why := t.judge(a); verdict {
	case verdictHeld:
		return attacks.Holds, why
	case verdictNone:
		return attacks.Untried, why
	default:
		return attacks.Succeeds, why
	}
}

func (r attackReport) tell(out io.Writer, asJSON bool) error {
	lines := r.lines()
	n := map[string]int{}
	for _, l := range lines {
		n[l.Verdict]++
	}
	if asJSON {
		if err := json.NewEncoder(ascii{out}).Encode(lines); err != nil {
			return err
		}
	} else if err := r.table(out, lines, n); err != nil {
		return err
	}
	if n[verdictLost] > 0 {
		return hinted{errors.New(count(n[verdictLost], "attack") + " succeeded against this sandbox"), "it is a flaw: CONTRIBUTING.md says how to report one"}
	}
	if n[verdictHeld] == 0 && n[verdictNone] == len(lines) && r.tried() {
		return hinted{errors.New("no attack could be tried in this sandbox"), "the table says why; the image needs a shell and the usual small programs"}
	}
	return nil
}

// tried tells whether anything was to be.
func (r attackReport) tried() bool {
	for _, a := range r.attacks {
		if a.Runnable() {
			return true
		}
	}
	return false
}

func (r attackReport) table(out io.Writer, lines []attackLine, n map[string]int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "ATTACK\tGOAL\tVERDICT\t"
	if r.plain != nil {
		head += "PLAIN PODMAN\t"
	}
	fmt.Fprintln(w, head+"WHY")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t", l.ID, l.Goal, l.Verdict)
		if r.plain != nil {
			fmt.Fprintf(w, "%s\t", l.Plain)
		}
		why := ""
		if l.Verdict != verdictHeld {
			why = config.Show(l.Why)
		}
		fmt.Fprintln(w, why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d withstood, %d succeeded, %d known to succeed, %d not tried\n", n[verdictHeld], n[verdictLost], n[verdictKnown], n[verdictNone])
	if r.plainHow != "" {
		fmt.Fprintf(out, "plain podman: %s\n", r.plainHow)
	}
	return nil
}
