package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lazaret/internal/step"
)

// TestWatch: each way in which a protected name comes to be another file, and
// none in which it stays what it was.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(dir string) error
		want string // "" for nothing
	}{
		{"rename over it", func(d string) error {
			if err := os.WriteFile(d+"/new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(d+"/new", d+"/lazaret.lock")
		}, "lazaret.lock in the workspace was replaced"},
		{"written in place", func(d string) error { return os.WriteFile(d+"/lazaret.lock", []byte("x"), 0o600) }, ""},
		{"removed", func(d string) error { return os.Remove(d + "/lazaret.lock") }, "lazaret.lock in the workspace went away"},
		{"appears", func(d string) error { return os.WriteFile(d+"/lazaret.toml", nil, 0o600) }, "lazaret.toml in the workspace appeared"},
		{"a link appears", func(d string) error { return os.Symlink("/nowhere", d+"/.idea") }, ".idea in the workspace appeared"},
		{"a branch switch", func(d string) error {
			// The new directory must not get the old one's inode.
			if err := os.Rename(d+"/.vscode", d+"/old"); err != nil {
				return err
			}
			return os.Mkdir(d+"/.vscode", 0o700)
		}, ".vscode in the workspace"},
		{"renamed away and back", func(d string) error {
			return os.WriteFile(d+"/.vscode/tasks.json", nil, 0o600)
		}, ""},
		{"other names", func(d string) error { return os.WriteFile(d+"/lazaret.lock.bak", nil, 0o600) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"lazaret.lock", ".git"} {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, ".vscode"), 0o700); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var said []string
			w := &watch{dir: dir, tell: func(s string) { mu.Lock(); said = append(said, s); mu.Unlock() }}
			w.event(step.Event{Step: "other", Kind: step.Begin})
			w.event(step.Event{Step: "sandbox", Kind: step.Begin})
			if err := tt.do(dir); err != nil {
				t.Fatal(err)
			}
			heard := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, tt.want) })
			}
			if tt.want != "" {
				for end := time.Now().Add(longEnough); !heard() && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				if !heard() {
					t.Errorf("while it runs: said %q", said)
				}
			}
			w.event(step.Event{Step: "sandbox", Kind: step.Done})
			mu.Lock()
			if tt.want == "" && len(said) > 0 || len(said) != len(w.told) {
				t.Errorf("said %q, told %q", said, w.told)
			}
			mu.Unlock()
			// Nothing is said of what happens after.
			mu.Lock()
			n := len(said)
			mu.Unlock()
			os.Remove(dir + "/.git")
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if len(said) != n {
				t.Errorf("said %q after the end", said[n:])
			}
		})
	}
}
