package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEndToEndScreen looks at a terminal on which sandboxes are launched.
func TestEndToEndScreen(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	before := s.quiet()
	// A podman that takes its time over images, where it is told to.
	slow := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(slow, 0o755); err != nil {
		t.Fatal(err)
	}
	const podman = "#!/bin/sh\ncase \"$*\" in *'image inspect'*) exec sleep 60;; esac\nexec /usr/bin/podman \"$@\"\n"
	if err := os.WriteFile(filepath.Join(slow, "podman"), []byte(podman), 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDesktop(t, s)
	d.open("one")

	// What it is given stands above what it prints first, and nothing else does.
	d.line("one", "clear; lazaret launch shell")
	d.wait("one", `^shell  \S+\n`+
		`  ✓ image    builtin:shell [0-9a-f]{12}( +[0-9.]+ s)?\n`+
		`  ✓ network  none\n`+
		`  ✓ git      no repository here\n`+
		`  ✓ state    /etc /root( +[0-9.]+ s)?\n`+
		`  ✓ sandbox  gVisor \S+  ready in [0-9.]+ s\n`+
		`\n/workspace #$`)

	// What came of it follows on a line of its own.
	d.line("one", "echo x >.envrc; printf 'no end'; exit 3")
	end := d.wait("one", `no end\n(.*\n)*`+
		`shell  ended after [0-9.]+ s with status 3\n`+
		`  ! guard    danger: file .envrc \(new\): .*\n(             .*\n)*`+
		`    state    kept: /etc /root  → lazaret state diff shell\nhost\$$`)
	if strings.Contains(end, "taking the sandbox down") {
		t.Errorf("the wheel is left:\n%s", end)
	}
	os.Remove(filepath.Join(s.ws, ".envrc"))

	// What must not be missed is all that --quiet says.
	d.line("one", "clear; lazaret launch --quiet shell -- echo hello")
	d.wait("one", `^hello\nhost\$$`)

	// A screen that becomes narrower is drawn again, and Ctrl-C ends it all.
	// Where nothing is remembered of images, podman is asked.
	d.line("one", "clear; XDG_CACHE_HOME="+filepath.Join(slow, "cache")+" PATH="+slow+":$PATH lazaret launch shell; echo status $?")
	d.wait("one", `[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] image`)
	d.tmux("resize-window", "-t", "one", "-x", "44")
	d.wait("one", `^shell  ….*ws\n  [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] image    builtin:shell\s+[0-9a-f]{12}.*\n(  . .*\n)+  . sandbox  gVisor \S+( +[0-9.]+ s)?$`)
	d.keys("one", "C-c")
	d.wait("one", `  – image (.*\n)*  – interrupted; nothing of it is left\nstatus 130\nhost\$$`)

	// A terminal on which nothing can be taken back gets lines.
	d.line("one", "clear; TERM=dumb lazaret launch shell -- echo hello >shown 2>&1; TERM=dumb lazaret launch shell -- true")
	dumb := d.wait("one", `shell  \S+(.*\n)*  ✓ sandbox  gVisor \S+\n\n?(shell  ended after .*\n)(.*\n)*host\$$`)
	if strings.Contains(dumb, "[K") {
		t.Errorf("%s", dumb)
	}
	if b, err := os.ReadFile(filepath.Join(s.ws, "shown")); err != nil || string(b) != "hello\n" {
		t.Errorf("without a terminal, %q is said: %v", b, err)
	}
	os.Remove(filepath.Join(s.ws, "shown"))
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndInterrupt: while the network starts, the sandbox waits for it, and
// Ctrl-C is for lazaret and not for a program that has not begun.
func TestEndToEndInterrupt(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, func(data string) string {
		return fmt.Sprintf("[storage]\ndata_root = %q\n[network]\ndefault_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n"+
			"[escalation]\nenabled = false\nsocket_dir = \"{runtime_dir}/lazaret\"\n[profiles.shell]\nimage = \"builtin:shell\"\ngit = \"none\"\n", data)
	})
	before := s.quiet()
	slow := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(slow, 0o755); err != nil {
		t.Fatal(err)
	}
	const podman = "#!/bin/sh\ncase \"$*\" in *' --detach '*) exec sleep 60;; esac\nexec /usr/bin/podman \"$@\"\n"
	if err := os.WriteFile(filepath.Join(slow, "podman"), []byte(podman), 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDesktop(t, s)
	d.open("one")
	d.line("one", "PATH="+slow+":$PATH lazaret launch shell; echo status $?")
	ids := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lazaret", "*", "sandbox.id")
	for deadline := time.Now().Add(longEnough); ; time.Sleep(50 * time.Millisecond) {
		if made, _ := filepath.Glob(ids); len(made) > 0 {
			if b, err := os.ReadFile(made[0]); err == nil && len(b) > 0 {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sandbox is not made:\n%s", d.screen("one"))
		}
	}
	d.keys("one", "C-c")
	d.wait("one", `  – network .*\n(.*\n)*  – interrupted; nothing of it is left\nstatus 130\nhost\$$`)
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}
