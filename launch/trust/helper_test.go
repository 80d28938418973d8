package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHelpers: a yes is to one digest, is found again, and can be taken back.
func TestHelpers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	s := NewStore(dir)
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	if h, err := s.Helper(a); h != nil || err != nil {
		t.Fatal(h, err)
	}
	for _, h := range []Helper{{Digest: a, Workspace: "/ws"}, {Digest: b, Workspace: "/other"}} {
		if err := s.PutHelper(h); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := s.Helper(a); err != nil || h == nil || h.Workspace != "/ws" {
		t.Errorf("%+v, %v", h, err)
	}
	// A record under another's name vouches for nothing.
	names, _ := s.names(helperPrefix)
	from, err := os.ReadFile(filepath.Join(dir, recordName(helperPrefix, b)))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, recordName(helperPrefix, a)), from, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Helper(a); h != nil || err == nil {
		t.Errorf("another's record: %+v, %v", h, err)
	}
	if list, bad, err := s.Helpers(); len(list) != 1 || bad != 1 || err != nil {
		t.Errorf("%+v, %d, %v", list, bad, err)
	}
	if got, err := s.RevokeHelpers("/other"); err != nil || len(got) == 0 {
		t.Errorf("%q, %v", got, err)
	}
	if h, _ := s.Helper(b); h != nil {
		t.Error("still there")
	}
	if _, err := s.RevokeHelpers(""); err != nil {
		t.Error(err)
	}
	if list, bad, _ := s.Helpers(); len(list)+bad != 0 {
		t.Errorf("left: %+v, %d", list, bad)
	}
}
