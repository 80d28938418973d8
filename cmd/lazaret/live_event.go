package main

import (
	"bytes"
	"io"
	"time"

	"lazaret/internal/step"
)

// first is told that the sandbox is about to print on the terminal.
func (l *live) first() {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	if l.on && l.board.row(rowSandbox).busy > 0 && l.board.row(rowSetup).todo == 0 {
		after := l.now().Sub(l.began)
		if !l.shared {
			after = 0 // it is about to begin
		}
		l.board.ready(after)
	}
	l.mu.Unlock()
	l.settle(true)
	l.mu.Lock()
	l.owed = true
	l.mu.Unlock()
}

// resume shows what is left to do after the set-up. From there on the sandbox
// does not say when it begins to print: the set-up was the first that did.
func (l *live) resume() {
	l.settle(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.tty, "\r\n")
	l.board, l.shared = l.board.rest(), false
	l.begin()
}

// up is told that the sandbox runs, and nothing more is to be shown.
func (l *live) up() {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	if l.over = true; l.on {
		l.board.ready(l.now().Sub(l.began))
	}
	l.mu.Unlock()
	l.settle(false)
}

// silence is how long a sandbox that prints nothing counts as starting. Agents
// on Node or Bun take up to ten seconds to their first word on a busy machine.
const silence = 20 * time.Second

// event takes one event of the launch.
func (l *live) event(e step.Event, occupies func(string) bool) {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	l.board.event(e, l.now())
	begins := l.held || e.Kind == step.Begin && occupies(e.Step)
	l.held = begins && l.board.waits()
	begins = begins && !l.held
	l.mu.Unlock()
	switch {
	case e.Kind == step.Returned:
		l.after()
	case begins && l.shared:
		l.mu.Lock()
		l.later = time.AfterFunc(silence, func() { l.settle(true) })
		l.mu.Unlock()
	case begins:
		l.first()
	case !occupies(e.Step):
	case e.Kind == step.Done && rowOf(e.Step) == rowSetup:
		l.resume()
	case e.Kind == step.Done: // where it failed, what is being undone is shown
		l.settle(false)
	}
}

// leaving is how long a teardown takes before it is seen.
const leaving = 400 * time.Millisecond

// after is told that the sandbox is gone and the terminal the person's.
func (l *live) after() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ours = true
	if l.on || l.over || !l.moves {
		return
	}
	l.later = time.AfterFunc(leaving, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.on || l.over {
			return
		}
		var b bytes.Buffer
		l.pay(&b)
		l.tty.Write(b.Bytes())
		l.board = &board{ending: "taking the sandbox down"}
		l.begin()
	})
}

// interrupt is told, once or more, that a person wants it to end.
func (l *live) interrupt() {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.board != nil && !l.told {
		l.board.interrupt()
	}
	l.told = true
}

// close ends it: nothing moves any more. clean says that all is undone.
func (l *live) close(clean bool) {
	if l.tty == nil {
		return
	}
	l.mu.Lock()
	l.over, l.ours = true, true
	if l.board != nil {
		l.board.end(clean)
	}
	l.mu.Unlock()
	l.settle(false)
	l.stop()
}
