package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"lazaret/internal/step"
)

// Two runs of one workspace: whoever goes last takes the masks' directories
// away, also when both go at once.
func TestMasksGoWithTheLastRun(t *testing.T) {
	dir, ws := t.TempDir(), t.TempDir()
	mask := filepath.Join(ws, ".git")
	runs := filepath.Join(dir, "lazaret")
	start := func(id string) (*claim, func()) {
		r := testRecord(ws)
		r.ID = id
		c, err := newClaim(dir, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (MaskDir{ws, ".git", runs}).Do(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		u := undoer{record: r, runs: runs}
		return c, func() {
			t.Helper()
			if err := u.undo(t.Context(), step.Undo{Kind: undoRmdir, Base: baseWorkspace, Name: ".git"}); err != nil {
				t.Error(err)
			}
		}
	}
	there := func() bool { _, err := os.Stat(mask); return !errors.Is(err, fs.ErrNotExist) }

	a, aLeaves := start("aaaaaaaaaaaa")
	b, bLeaves := start("bbbbbbbbbbbb")
	aLeaves() // its record is still there and locked
	if !there() {
		t.Error("the second run has lost its mask")
	}
	bLeaves()
	if there() {
		t.Error("both have gone and the mask is still there")
	}
	for _, c := range []*claim{a, b} {
		if err := c.remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(runs); len(left) != 1 || left[0].Name() != masksLock {
		t.Errorf("left %v", left)
	}
}

// A cleaner that comes while a record is removed neither brings it back nor
// trips over it.
func TestCleanerMeetsARecordBeingRemoved(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "lazaret")
	for range 200 {
		c, err := newClaim(dir, testRecord("/ws"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- c.remove() }()
		other, err := openClaim(runs, c.ID)
		if err == nil {
			other.close()
		} else if !errors.Is(err, errHeld) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the cleaner: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatalf("removing: %v", err)
		}
	}
	if left, _ := os.ReadDir(runs); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
