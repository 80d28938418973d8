package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHooksWithoutGit: a sandbox without git cannot write hooks that git on the
// host runs, where they lie in the workspace, nor make any that are not there.
func TestHooksWithoutGit(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", ws}, args...)...)
		c.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	if err := os.MkdirAll(filepath.Join(ws, "tools/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := Env{Getenv: func(k string) string { return map[string]string{"PATH": "/usr/bin:/bin"}[k] }}
	f := locked(t, base+"git = \"none\"\n")
	mounts := func() (text string, notices []string) {
		t.Helper()
		h := fixedHost()
		h.Git = GitHost{}
		h.Workspace, h.UID, h.Home = ws, os.Getuid(), "/nonexistent"
		for _, name := range []string{"/workspace", "/workspace/lazaret.lock", "/workspace/lazaret.toml"} {
			s := h.Sources[name]
			s.Path = strings.Replace(name, "/workspace", ws, 1)
			h.Sources[name] = s
		}
		if err := h.probeGit("none", env); err != nil {
			t.Fatal(err)
		}
		plan, err := Resolve(f, "my_agent", h, options())
		if err != nil {
			t.Fatal(err)
		}
		return plan.Text(), plan.Notices
	}
	if text, notices := mounts(); strings.Contains(text, "/workspace/tools") || len(notices) > 0 {
		t.Fatalf("without a setting: %q\n%s", notices, text)
	}
	git("config", "core.hooksPath", "tools/hooks")
	text, _ := mounts()
	for _, want := range []string{"dst=/workspace/tools ", "dst=/workspace/tools/hooks,ro=true"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	git("config", "core.hooksPath", "later")
	if text, _ := mounts(); !strings.Contains(text, "dst=/workspace/later,ro=true") {
		t.Errorf("hooks that are not there yet can be made:\n%s", text)
	}
	// What cannot be kept from the agent is said, and no reason not to launch.
	git("config", "core.hooksPath", ".")
	if _, notices := mounts(); !slices.ContainsFunc(notices, func(n string) bool { return strings.Contains(n, "hooks") }) {
		t.Errorf("%q", notices)
	}
}
