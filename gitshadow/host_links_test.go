package gitshadow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostLinks are what an agent can have left in a repository that it made in the
// workspace in an earlier session, by the place git writes or reads through.
var hostLinks = map[string]string{
	"a log":         `mkdir -p .git/logs/refs/heads/lazaret; ln -s ../../../../../../outside .git/logs/refs/heads/lazaret/agent-claude`,
	"a directory":   `ln -s ../../../../outdir .git/refs/heads/lazaret`,
	"a ref":         `ln -s /dev/zero .git/refs/heads/z`,
	"a terminal":    `ln -s /dev/tty .git/refs/heads/z`,
	"a worktree":    `mkdir -p .git/worktrees/x; ln -s /dev/zero .git/worktrees/x/HEAD; ln -s /dev/tty .git/worktrees/x/gitdir`,
	"what is short": `ln -s /dev/tty .git/shallow`,
}

// Git follows links in refs and logs, and writes there: nothing of a repository
// with such links is for git on the host.
func TestLinksOnTheHost(t *testing.T) {
	for name, plant := range hostLinks {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, "", `echo mine >../outside; mkdir ../outdir`)
			w.onHost(plant)
			_, err := Probe(w.host, os.Getuid())
			var re *RefusedError
			if !errors.As(err, &re) {
				t.Errorf("looking at it: %v", err)
			}
			if nested := ProbeNested(w.dir, os.Getuid()); len(nested.Nested) == 0 || nested.Nested[0].Path != "host" || nested.Nested[0].Kind != None {
				t.Errorf("nested, it is not only masked: %+v", nested.Nested)
			}
			w.inside(`echo more >n; git add -A; git commit -qm more`)
			err = w.b.Last(t.Context())
			var unfit *UnfitError
			if !errors.As(err, &unfit) {
				t.Errorf("bringing it home: %v", err)
			}
			if text, _ := os.ReadFile(filepath.Join(w.dir, "outside")); string(text) != "mine\n" {
				t.Errorf("outside, there is now %q", text)
			}
			if got, _ := os.ReadDir(filepath.Join(w.dir, "outdir")); len(got) > 0 {
				t.Errorf("outside, there is now %v", got)
			}
		})
	}
}

// A configuration that includes the terminal, or a link to it, must not have git
// read what the person types.
func TestNoTerminalForGit(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "git")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n(ps -o sid= -p $$; echo $$) | tr -d ' '\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := Git{Program: program}.Output(t.Context(), "version")
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(string(out)); len(f) != 2 || f[0] != f[1] {
		t.Errorf("git is in the session of its caller, with its terminal: %q", out)
	}
}

// What a repository that an agent made has git copy at each launch has a bound.
func TestNestedIsSmall(t *testing.T) {
	for name, grow := range map[string]string{
		"shared indexes": `for i in 1 2 3; do truncate -s 300M .git/sharedindex.$i; done`,
		"an index":       `truncate -s 900M .git/index`,
		"what is short":  `truncate -s 900M .git/shallow`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, "", "")
			w.onHost(grow)
			if r := ProbeNested(w.dir, os.Getuid()); len(r.Nested) == 0 || r.Nested[0].Path != "host" || r.Nested[0].Kind != None {
				t.Errorf("it is copied: %+v", r.Nested)
			}
		})
	}
}

// More refs than lazaret reads, or some that it may not read, do not keep a run
// from being taken down: what is there is put aside.
func TestUnreadableIsUnfit(t *testing.T) {
	for name, plant := range map[string]string{
		"many refs": `id=$(git rev-parse HEAD); mkdir -p $S/refs/heads/lazaret; cd $S/refs/heads/lazaret; seq 20100 | while read i; do echo $id >r$i; done`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, "", "")
			w.inside(plant)
			err := w.b.Last(t.Context())
			var unfit *UnfitError
			if !errors.As(err, &unfit) {
				t.Errorf("it is %v", err)
			}
		})
	}
}

// What takes too long to be read is put aside as well: nothing that a sandbox
// makes has a clean, or the next launch, wait for hours.
func TestTooLongIsUnfit(t *testing.T) {
	w := newBench(t, "", "")
	w.inside(`for i in 1 2 3; do head -c 50000000 /dev/zero >z$i; echo $i >>z$i; done; git add -A; git commit -qm zeros; git branch lazaret/claude/b; git branch lazaret/claude/c`)
	each, all := copyTime, lastTime
	defer func() { copyTime, lastTime = each, all }()
	for _, times := range [][2]time.Duration{{10 * time.Millisecond, all}, {each, -1}} {
		copyTime, lastTime = times[0], times[1]
		var unfit *UnfitError
		if err := w.broker().Last(t.Context()); !errors.As(err, &unfit) || !errors.Is(err, errTooLong) {
			t.Errorf("it is %v", err)
		}
	}
	copyTime, lastTime = each, all
	if err := w.b.Last(t.Context()); err != nil || w.hostRef("lazaret/claude/c") == "" {
		t.Errorf("with time, it is %v", err)
	}
}
