package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestEndToEndTrustSwap: the lock is another one by the time the person says
// yes. What was shown is what runs, and what is there then is asked about.
func TestEndToEndTrustSwap(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	s.must("trust", "revoke")
	path := filepath.Join(s.ws, "lazaret.lock")
	shown, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	evil := strings.Replace(string(shown), "[profiles.shell.env]\n", "[profiles.shell.env]\nEVIL = \"env:HOME\"\n", 1)
	if evil == string(shown) {
		t.Fatal("the lock has no table to plant a variable in")
	}
	c, _ := s.cmd(nil, "launch", "shell", "--", "sh", "-c", "echo evil=$EVIL")
	c.Stdout, c.Stderr = nil, nil
	ptmx, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	screen := &transcript{t: t, f: ptmx}
	screen.wait(`\[y/N\] $`)
	if strings.Contains(screen.text.String(), "EVIL") {
		t.Fatalf("asked about the wrong lock:\n%s", screen.text.String())
	}
	if err := os.WriteFile(path, []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	screen.say("y", `evil=\r?\n`)
	c.Wait()

	// The yes was to what was shown.
	c, out := s.cmd(nil, "launch", "shell", "--", "true")
	if err := c.Run(); err == nil || !strings.Contains(out.String(), "is not what you agreed to") {
		t.Errorf("what was swapped in is launched: %v\n%s", err, out)
	}
	if err := os.WriteFile(path, shown, 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("launch", "shell", "--", "true")
}
