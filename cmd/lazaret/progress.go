package main

import (
	"fmt"
	"io"
	"sync"

	"lazaret/image"
	"lazaret/lock/config"
)

// progress is one line on a terminal that says what is being waited for.
// Anywhere else it is silent.
type progress struct {
	mu   sync.Mutex
	to   io.Writer // nil where there is no terminal that can take a line back
	look func() style
	last string
}

func (d *deps) newProgress(w io.Writer) *progress {
	if f := terminalOf(w); f != nil && !d.dumb() {
		return &progress{to: f, look: func() style { return d.style(f) }}
	}
	return &progress{}
}

// resolved is told of each image that has been resolved.
func (p *progress) resolved(_ string, done, total int) {
	p.show(fmt.Sprintf("resolving images: %d of %d", done, total))
}

// image is told what happens to each image.
func (p *progress) image(e image.Progress) {
	switch e.Kind {
	case "begin":
		p.show("resolving " + config.Show(e.Ref))
	case "wait":
		p.show(fmt.Sprintf("resolving %s: its registry asks to wait %s", config.Show(e.Ref), e.Wait))
	}
}

func (p *progress) show(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == nil {
		return
	}
	// A line that wraps cannot be taken back.
	if s := p.look(); widths(line) > s.room() {
		line = foldTo(line, s.room()-widths(s.dots()))[0] + s.dots()
	}
	p.last = line
	fmt.Fprintf(p.to, "\r\x1b[K%s", line)
}

// clear takes the line back.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to != nil && p.last != "" {
		fmt.Fprint(p.to, "\r\x1b[K")
		p.last = ""
	}
}
