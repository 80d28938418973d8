package gitshadow

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBegunOrNot: a store whose making was cut short is nobody's, and is
// thrown away; it does not stand in the way of taking a killed run down.
func TestBegunOrNot(t *testing.T) {
	root := t.TempDir()
	s := Store{filepath.Join(root, StoresDir, testRun)}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := Origin{Run: testRun, Profile: "claude", Mode: Quarantine, Branch: "refs/heads/lazaret/agent-claude",
		Repo: Repo{GitDir: "/x/.git", CommonDir: "/x/.git", ObjectFormat: "sha1"}}

	// Killed in the middle of writing, and the next one after it.
	if err := os.WriteFile(filepath.Join(s.Dir, originFile+".new"), []byte(`{"Run`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Stores(root, testRun); err != nil || len(got) != 0 {
		t.Fatalf("half a beginning gives %v, %v", got, err)
	}
	if err := s.Begin(o); err != nil {
		t.Fatal(err)
	}
	if got, err := Stores(root, testRun); err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	if got, err := s.Origin(); err != nil || got.Profile != o.Profile {
		t.Fatalf("got %v, %v", got, err)
	}
	if exists(filepath.Join(s.Dir, originFile+".new")) {
		t.Error("what was written first is still there")
	}
}

// TestIsProfile: no name passes for a flag of the command that it is given to.
func TestIsProfile(t *testing.T) {
	for name, want := range map[string]bool{"claude": true, "0x": true, "a-_": true, "-h": false, "--yes": false, "_x": false, "x": false, "a/b": false, "Ab": false} {
		if IsProfile(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
