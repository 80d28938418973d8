package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lazaret/internal/step"
)

// board is what the screen of a launch shows: a title, and one row for each
// thing that a person knows by name. It is changed by events and drawn by
// frame, and touches nothing.
type board struct {
	title, place string // the profile, and where it is launched
	rows         []row
	ending       string // what is being done in place of going on, or ""
	last         string // what is said of it in the end, or ""
}

// row is one thing of a launch: what it will be, and how far it is.
type row struct {
	name, fact string
	todo       int // steps that are not done
	busy       int // steps under way
	since      time.Time
	spent      time.Duration // with a step under way, without what runs since since
	failed     bool
	broken     bool // ended because something else did
	bytes      [2]int64
	took       string // in place of spent
}

// Steps are parts of these; what is none of them makes the sandbox itself.
const (
	rowImage   = "image"
	rowNetwork = "network"
	rowGit     = "git"
	rowState   = "state"
	rowSetup   = "setup"
	rowAsks    = "asks"
	rowSandbox = "sandbox"
)

var rowOrder = []string{rowImage, rowNetwork, rowGit, rowState, rowSetup, rowAsks, rowSandbox}

// rowOf says which row a step belongs to, by the noun that its name begins with.
func rowOf(name string) string {
	noun, _, _ := strings.Cut(name, " ")
	noun, _, _ = strings.Cut(noun, ".")
	switch noun {
	case rowImage, rowNetwork, rowGit, rowState, rowSetup:
		return noun
	case "overlay":
		return rowState
	case "escalate", "client":
		return rowAsks
	}
	return rowSandbox
}

// newBoard has a row for each fact, and for each row that a step belongs to.
func newBoard(title, place string, steps []step.Step, facts map[string]string) *board {
	todo := map[string]int{}
	for _, s := range steps {
		todo[rowOf(s.Name)]++
	}
	b := &board{title: title, place: place}
	for _, name := range rowOrder {
		if fact := facts[name]; todo[name] > 0 || fact != "" && name != rowSetup {
			b.rows = append(b.rows, row{name: name, fact: fact, todo: todo[name]})
		}
	}
	return b
}

func (b *board) row(name string) *row {
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return &row{}
	}
	return &b.rows[i]
}

// event takes one event of the launch.
func (b *board) event(e step.Event, now time.Time) {
	r := b.row(rowOf(e.Step))
	switch e.Kind {
	case step.Begin:
		if r.busy++; r.busy == 1 {
			r.since = now
		}
	case step.Done, step.Failed:
		if r.busy > 0 {
			if r.busy--; r.busy == 0 {
				r.spent += now.Sub(r.since)
			}
		}
		if e.Kind == step.Done {
			if r.todo--; e.Step == rowSandbox && r.took == "" {
				r.spent = 0 // nobody knows how much of it was starting
			}
			return
		}
		// What fails after something else did was ended because of that.
		if b.ending == "" {
			r.failed, b.ending = true, undoingText
		}
		r.broken = !r.failed
	case step.Progress:
		fmt.Sscan(e.Attr["done"], &r.bytes[0])
		fmt.Sscan(e.Attr["total"], &r.bytes[1])
	}
}

const (
	undoingText     = "undoing what was done"
	interruptedText = "interrupted, " + undoingText
)

// interrupt is told that a person wants it to end.
func (b *board) interrupt() {
	b.ending = interruptedText
	for i := range b.rows { // podman may have heard of it first
		r := &b.rows[i]
		r.failed, r.broken = false, r.failed || r.broken
	}
}

// calm is how long something takes before it is seen to move.
const calm = 150 * time.Millisecond

// elapsed is how long a row has been at work.
func (r row) elapsed(now time.Time) time.Duration {
	if r.busy > 0 {
		return r.spent + now.Sub(r.since)
	}
	return r.spent
}

// brief is the longest time that is not worth telling.
const brief = 500 * time.Millisecond

// note is what is said after a row's fact.
func (r row) note(now time.Time) string {
	t := r.elapsed(now)
	switch {
	case r.took != "":
		return r.took
	case r.busy > 0 && r.bytes[1] > 0:
		return bytesText(r.bytes[0], r.bytes[1])
	case r.busy > 0 && t < time.Second, t < brief:
		return ""
	}
	return tookText(t)
}

// bytesText says how much of something is here, in the unit of the whole.
func bytesText(done, total int64) string {
	if done >= total {
		return "unpacking"
	}
	if total < 1<<20 {
		return fmt.Sprintf("%d of %d kB", done/1000, total/1000)
	}
	return fmt.Sprintf("%d of %d MB", done/1_000_000, total/1_000_000)
}

// tookText is a time as people read it.
func tookText(t time.Duration) string {
	switch {
	case t < time.Minute:
		return fmt.Sprintf("%.1f s", t.Seconds())
	case t < time.Hour:
		return fmt.Sprintf("%d min %d s", int(t.Minutes()), int(t.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(t.Hours()), int(t.Minutes())%60)
}

// waits tells whether something of the network is yet to begin. The last of it
// lets the sandbox's command start.
func (b *board) waits() bool {
	r := b.row(rowNetwork)
	return r.todo > r.busy
}

// ready is told that the sandbox has begun, how long after the launch, where
// that is known.
func (b *board) ready(after time.Duration) {
	r := b.row(rowSandbox)
	r.todo, r.spent, r.busy = 0, 0, 0
	if after > 0 {
		r.took = "ready in " + tookText(after)
	}
}

// rest is what is still to be shown once the set-up has run, below what that
// printed.
func (b *board) rest() *board {
	return &board{ending: b.ending, rows: slices.DeleteFunc(slices.Clone(b.rows), func(r row) bool { return r.todo == 0 && r.name != rowSetup })}
}

// end is told that all is over. clean says that all is undone.
func (b *board) end(clean bool) {
	if b.ending == interruptedText && clean {
		b.last = "interrupted; nothing of it is left"
	}
}

// frame draws the board at one moment. Where it moves, what is under way does.
func (b *board) frame(now time.Time, s style, moves bool) (out []drawn) {
	if b.title != "" {
		out = append(out, s.title(b.title, b.place)...)
	}
	for _, r := range b.rows {
		mark := markWaiting
		switch {
		case r.failed:
			mark = markFailed
		case r.broken:
			mark = markBroken
		case r.todo == 0:
			mark = markDone
		case r.busy > 0 && b.ending != "":
			mark = markBroken
		case moves && r.busy > 0 && r.elapsed(now) >= calm:
			mark = markBusy
		}
		note := r.note(now)
		if !moves && mark == markWaiting {
			note = ""
		}
		out = append(out, s.row(line{mark: mark, name: r.name, text: r.fact, note: note}, now)...)
	}
	switch {
	case moves && b.ending != "":
		out = append(out, s.say(markBusy, b.ending, now)...)
	case !moves && b.last != "":
		out = append(out, s.say(markBroken, b.last, now)...)
	}
	return out
}
