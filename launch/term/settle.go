package term

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// What a terminal answers is read by whoever has it. An answer that comes when a
// sandbox is gone would stand as typed in the person's shell, and one that comes
// while lazaret has the screen would be keys to it. So lazaret asks something
// itself, last, and waits: a terminal answers in order. A sandbox may ask the
// same thing, as often as it likes; the answer that counts is the one after
// those that are due to it.

// statusQuestion asks a terminal "how are you"; statusReport is what it answers.
var (
	statusQuestion = []byte("\x1b[5n")
	statusReport   = regexp.MustCompile(`\x1b\[\??[03]n`)
)

// reportMax is the length of a report, in bytes.
const reportMax = len("\x1b[?0n")

// reports counts the reports in what a terminal says.
type reports struct {
	n    int
	last []byte // of what was read: a report may come in two parts
}

func (r *reports) feed(b []byte) {
	if len(r.last) == 0 && bytes.IndexByte(b, 0x1b) < 0 {
		return
	}
	r.last = append(r.last, b...)
	for at := statusReport.FindIndex(r.last); at != nil; at = statusReport.FindIndex(r.last) {
		r.n++
		r.last = r.last[at[1]:]
	}
	r.last = bytes.Clone(r.last[max(len(r.last)-reportMax, 0):])
}

// questions counts what a Filter let through that asks for a report.
type questions struct {
	n    int
	last []byte // of what was shown: it comes in parts, cut anywhere
}

func (q *questions) feed(b []byte) {
	edge := append(q.last, b[:min(len(b), len(statusQuestion)-1)]...)
	q.n += bytes.Count(edge, statusQuestion) + bytes.Count(b, statusQuestion)
	if len(b) >= len(statusQuestion)-1 {
		edge = b
	}
	q.last = bytes.Clone(edge[max(len(edge)-len(statusQuestion)+1, 0):])
}

// counted copies what a terminal says, and counts the reports in it.
func (r *reports) counted(dst, src []byte) []byte {
	r.feed(src)
	return append(dst, src...)
}

// pendingMax bounds what is read while waiting for an answer, in bytes.
const pendingMax = 1 << 20

// settle asks the terminal something, waits for the answer, and returns what
// came before it: by then, every earlier question is answered too.
func (s *Session) settle(d time.Duration) (before []byte, ok bool) {
	if s.write(statusQuestion) != nil {
		return nil, false
	}
	s.tty.SetReadDeadline(time.Now().Add(d))
	defer s.tty.SetReadDeadline(time.Time{})
	due, from := max(s.filter.status-s.said.n, 0), 0
	buf := make([]byte, 4096)
	for len(before) < pendingMax {
		n, err := s.tty.Read(buf)
		before = append(before, buf[:n]...)
		for at := statusReport.FindIndex(before[from:]); at != nil; at = statusReport.FindIndex(before[from:]) {
			if due == 0 {
				s.filter.status, s.said = 0, reports{}
				// What came after was typed by somebody who saw nothing new yet.
				return bytes.Join([][]byte{before[:from+at[0]], before[from+at[1]:]}, nil), true
			}
			due, from = due-1, from+at[1]
		}
		if err != nil {
			break
		}
	}
	// Its answer may still come, and is due before that to the next question;
	// or whoever has the terminal next reads it, and nobody knows: then the next
	// question waits for nothing, and the one after that must not.
	s.said.feed(before)
	s.filter.status++
	if s.late {
		s.filter.status, s.said = 0, reports{}
	}
	s.late = true
	return before, false
}

// drain throws away what the terminal says until it has been silent for d, or
// a few times that: a key that is held down never ends.
func (s *Session) drain(d time.Duration) {
	defer s.tty.SetReadDeadline(time.Time{})
	buf := make([]byte, 4096)
	for most := time.Now().Add(4 * d); time.Now().Before(most); {
		s.tty.SetReadDeadline(time.Now().Add(d))
		if _, err := s.tty.Read(buf); err != nil {
			return
		}
	}
}

// Drain throws away what the terminal at path still has to say to a program
// that is done: it would stand as typed in the person's shell.
func Drain(path string) error {
	tty, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("opening the terminal: %w", err)
	}
	defer tty.Close()
	was, err := raw(tty)
	if err != nil {
		return fmt.Errorf("setting the terminal: %w", err)
	}
	s := Session{tty: tty}
	s.settle(askFor)
	return restore(tty, was)
}
