package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Entry is one pending undo.
type Entry struct {
	N    int    `json:"n"`    // from 1, in order of journalling
	Step string `json:"step"` // the step it belongs to
	Undo Undo   `json:"undo"`
}

// Journal is the append-only list of what must be undone: JSON lines, one
// {"n":…,"step":…,"undo":…} before a step and one {"popped":n} after its undo.
// It survives the death of its writer at any point.
type Journal struct {
	f       *os.File
	size    int64 // bytes of whole lines in f
	next    int
	pending []Entry
}

type line struct {
	Entry
	Popped int `json:"popped,omitempty"`
}

// journalLimit bounds a journal that is read back, in bytes: a record is
// input from whoever could write to the run directory.
const journalLimit = 1 << 20

// NewJournal reads what f holds and goes on at its end. f is open for
// reading and appending. A last line without its newline was cut off by the
// death of its writer before the step ran; it is dropped.
func NewJournal(f *os.File) (*Journal, error) {
	data, err := io.ReadAll(io.LimitReader(f, journalLimit+1))
	if err != nil {
		return nil, fmt.Errorf("reading journal: %w", err)
	}
	if len(data) > journalLimit {
		return nil, fmt.Errorf("reading journal: larger than %d bytes", journalLimit)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	j := &Journal{f: f, size: int64(len(whole)), next: 1}
	if len(whole) < len(data) {
		if err := f.Truncate(int64(len(whole))); err != nil {
			return nil, fmt.Errorf("reading journal: %w", err)
		}
	}
	for i, raw := range bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")) {
		if len(raw) == 0 {
			continue
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("reading journal, line %d: %w", i+1, err)
		}
		if l.Popped != 0 {
			j.drop(l.Popped)
			continue
		}
		if l.N != j.next {
			return nil, fmt.Errorf("reading journal, line %d: entry %d where %d was due", i+1, l.N, j.next)
		}
		j.next++
		j.pending = append(j.pending, l.Entry)
	}
	return j, nil
}

// Push writes an undo down. It must return before the step runs.
func (j *Journal) Push(step string, u Undo) error {
	e := Entry{N: j.next, Step: step, Undo: u}
	if err := j.append(e); err != nil {
		return err
	}
	j.next++
	j.pending = append(j.pending, e)
	return nil
}

// Pop notes that entry n is undone.
func (j *Journal) Pop(n int) error {
	if err := j.append(struct {
		Popped int `json:"popped"`
	}{n}); err != nil {
		return err
	}
	j.drop(n)
	return nil
}

// Pending returns what is not undone yet, oldest first.
func (j *Journal) Pending() []Entry { return append([]Entry(nil), j.pending...) }

// append writes one line with one write, so that a killed writer leaves a
// whole line or a piece without its newline.
func (j *Journal) append(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n, err := j.f.Write(append(b, '\n'))
	if err != nil {
		// A full disk may have taken a piece, which would spoil the next line.
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(n)
	return nil
}

func (j *Journal) drop(n int) {
	for i, e := range j.pending {
		if e.N == n {
			j.pending = append(j.pending[:i], j.pending[i+1:]...)
			return
		}
	}
}
