package launch

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipesForDirectories: where a sandbox put a pipe by the time it is looked
// at, nothing waits for somebody to write to it.
func TestPipesForDirectories(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, look := range map[string]func(){
		"its sockets":     func() { socketsIn(pipe) },
		"whether empty":   func() { isEmpty(pipe) },
		"sockets to hide": func() { HideSockets{Dir: pipe}.Do(t.Context(), nil) },
		"a mask":          func() { MaskDir{Workspace: pipe, Name: "x"}.Do(t.Context(), nil) },
		"undoing it":      func() { rmdir(pipe, "x") },
	} {
		done := make(chan bool)
		go func() { defer close(done); look() }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s: it waits", what)
		}
	}
}
