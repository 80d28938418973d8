package main

import (
	"bytes"
	"io"
	"sync"
)

// hush is a writer that keeps what is written while a question is on the
// screen, and writes it after. A line in the middle of a question could be
// taken for part of it.
type hush struct {
	w      io.Writer
	screen *live // nil: there is none

	mu   sync.Mutex
	held bool
	kept bytes.Buffer
}

// keptMost bounds what is kept, in bytes.
const keptMost = 64 << 10

// Write writes, or keeps. What there is no room for is lost; it is in the log.
func (h *hush) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.held {
		return h.w.Write(p)
	}
	if h.kept.Len()+len(p) <= keptMost {
		h.kept.Write(p)
	}
	return len(p), nil
}

// through makes it write by way of a screen, from here on.
func (h *hush) through(l *live) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.w, h.screen = l, l
}

// during calls f while nothing is written, and nothing moves on the screen.
func (h *hush) during(f func() error) error {
	if h.screen != nil {
		h.screen.settle(true)
	}
	h.set(true)
	defer h.set(false)
	return f()
}

func (h *hush) set(held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held = held; !held {
		h.kept.WriteTo(h.w)
	}
}
