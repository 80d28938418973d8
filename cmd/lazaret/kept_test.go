package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lazaret/launch"
)

func keeping(t *testing.T) *deps {
	t.Helper()
	state := t.TempDir()
	return &deps{cwd: "/ws", env: func(k string) string { return map[string]string{"XDG_STATE_HOME": state}[k] }}
}

func keptRecord(n int) launch.Record {
	return launch.Record{ID: fmt.Sprintf("%012x", n), Profile: "shell", Workspace: "/ws", DataRoot: "/d", Started: time.Unix(int64(n), 0), Detached: true}
}

// TestKeptIsBounded: neither one run nor many fill the disk.
func TestKeptIsBounded(t *testing.T) {
	d := keeping(t)
	k, err := d.keepRun(keptRecord(1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	line := []byte(strings.Repeat("x", 1000) + "\n")
	for range 1000 {
		k.Write(line)
	}
	b, err := os.ReadFile(d.keptLog(keptRecord(1).ID))
	if err != nil || len(b) > keptLogMost+100 || !strings.HasSuffix(string(b), "this is full\n") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for n := 2; n < 2*keptRunsMost; n++ {
		k, err := d.keepRun(keptRecord(n))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(n), 0)
		os.Chtimes(k.log.Name(), at, at)
		k.end(0, nil)
		k.close()
	}
	all := d.keptEnds()
	if len(all) != keptRunsMost || all[len(all)-1].Record.ID != keptRecord(2*keptRunsMost-1).ID {
		t.Errorf("%d runs are kept", len(all))
	}
	if names, _ := filepath.Glob(filepath.Join(d.keptDir(), "*")); len(names) != 2*keptRunsMost {
		t.Errorf("%d files are kept", len(names))
	}
}

// TestKeptOfWhoRuns: what is kept of a run that goes on stays, however old it is
// and however many came after; what is of none goes.
func TestKeptOfWhoRuns(t *testing.T) {
	d := keeping(t)
	k, err := d.keepRun(keptRecord(1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	at := time.Unix(1, 0)
	os.Chtimes(k.log.Name(), at, at)
	for _, name := range []string{"ffffffffffff.json", "ffffffffffff.json.new", ".ffffffffffff.json12345"} {
		if err := os.WriteFile(filepath.Join(d.keptDir(), name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := 2; n < keptRunsMost+5; n++ {
		k, err := d.keepRun(keptRecord(n))
		if err != nil {
			t.Fatal(err)
		}
		k.close()
	}
	if all := d.keptEnds(); len(all) != keptRunsMost+1 || all[0].Record.ID != keptRecord(1).ID {
		t.Errorf("%d runs are kept, the oldest is %s", len(all), all[0].Record.ID)
	}
	if _, err := os.Stat(k.log.Name()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.keptDir(), "*ffffffffffff.*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestKeptTells: how it ended, and what a sandbox wrote acts on no terminal.
func TestKeptTells(t *testing.T) {
	d := keeping(t)
	k, err := d.keepRun(keptRecord(7))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(k, "lazaret: warning: look out\r\n")
	k.end(3, []string{"last\x1b]52;c;eA==\awords"})
	k.close()
	e, ok := d.endedRun(keptRecord(7).ID)
	var out bytes.Buffer
	if err := e.tell(d, &out); !ok || err != nil || e.Status != 3 {
		t.Fatalf("%+v, %v", e, err)
	}
	want := "last\\x1b]52;c;eA==\\x07words\nlazaret: warning: look out\nlazaret: note: run 000000000007 (shell) ended on "
	if !strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), " with status 3\n") {
		t.Errorf("told %q", out.String())
	}

	k, err = d.keepRun(keptRecord(8))
	if err != nil {
		t.Fatal(err)
	}
	k.close() // as by a kill
	e, ok = d.endedRun(keptRecord(8).ID)
	if err := e.tell(d, &out); !ok || err == nil || !strings.Contains(err.Error(), "without a word") {
		t.Errorf("a killed one: %v", err)
	}
	if _, ok := d.endedRun("../7"); ok {
		t.Error("a path is an id")
	}
}

// TestBackgroundEnv: the terminal that a detached sandbox gets can do something.
func TestBackgroundEnv(t *testing.T) {
	for _, tt := range []struct{ env, more []string }{
		{[]string{"TERM=foot", "LC_ALL=C"}, nil},
		{[]string{"A=b"}, []string{"TERM=xterm-256color", "LC_ALL="}},
		{[]string{"TERM=dumb", "LC_ALL=C"}, []string{"TERM=xterm-256color"}},
	} {
		if got := backgroundEnv(tt.env); !slices.Equal(got, slices.Concat(tt.env, tt.more)) {
			t.Errorf("%q became %q", tt.env, got)
		}
	}
}
