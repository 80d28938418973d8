package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"lazaret/launch"
	"lazaret/lock"
)

// ending is how a launch says what became of it: on a terminal in rows, each
// with the word that it is about, else in lines that begin with "lazaret: ".
type ending struct {
	w    io.Writer
	look *style // nil: no terminal
	now  time.Time
	last string // the row's word that stands above

	quiet bool // only what waits for the person, and what is wrong
}

// newEnding sums up on what a launch is shown on.
func (l *live) newEnding(w io.Writer) *ending {
	e := &ending{w: w}
	if l.tty != nil {
		s := l.look()
		e.look, e.now = &s, l.now()
	}
	return e
}

// item is one thing that a list tells.
type item struct {
	text string
	how  string // what next is for, or ""
	next string // what can be done about it, or ""
}

func (i item) String() string {
	switch {
	case i.next == "":
		return i.text
	case i.how == "":
		return i.text + ": " + i.next
	}
	return i.text + "; " + i.how + ": " + i.next
}

// list tells several things under a title, which on a terminal a word stands for.
func (e *ending) list(m mark, word, title string, items []item) {
	if len(items) == 0 || e.quiet && m != markWaiting && m != markAlarm {
		return
	}
	if e.look == nil {
		fmt.Fprintf(e.w, "lazaret: %s\n", title)
		for _, i := range items {
			fmt.Fprintf(e.w, "  %s\n", i)
		}
		return
	}
	for _, i := range items {
		e.row(line{mark: m, name: word, text: i.text, next: i.next})
	}
}

// row writes one row. The word stands only where it is another than above.
func (e *ending) row(l line) {
	if l.name == e.last {
		l.name = ""
	} else {
		e.last = l.name
	}
	for _, d := range e.look.row(l, e.now) {
		fmt.Fprintln(e.w, d.text)
	}
}

// ended is the head of it, on a terminal only: how the command of a profile
// ended, and after which time.
func (e *ending) ended(profile string, status int, took time.Duration) {
	if e.look == nil {
		return
	}
	how := "ended after " + tookText(took)
	if status != 0 {
		how += fmt.Sprintf(" with status %d", status)
	}
	for _, d := range e.look.title(profile, how) {
		fmt.Fprintln(e.w, d.text)
	}
}

// state says what of the sandbox is kept.
func (e *ending) state(p *launch.Plan, prof lock.Profile, ephemeral bool) {
	dirs := kept(prof.Mounts)
	if e.look == nil || len(dirs) == 0 || e.quiet {
		return
	}
	if ephemeral {
		e.row(line{name: rowState, text: "nothing is kept"})
		return
	}
	e.row(line{name: rowState, text: "kept: " + strings.Join(dirs, " "), next: "lazaret state diff " + p.Record.Profile})
}
