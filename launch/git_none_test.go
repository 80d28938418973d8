package launch

import (
	"errors"
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
	// With git, it is one.
	git("config", "--unset", "core.hooksPath")
	if err := errors.Join(os.RemoveAll(filepath.Join(ws, ".git/hooks")), os.Mkdir(filepath.Join(ws, ".git/hooks"), 0o755),
		os.Symlink("../../current/b", filepath.Join(ws, ".git/hooks/pre-push")), os.Symlink("tools", filepath.Join(ws, "current"))); err != nil {
		t.Fatal(err)
	}
	const said = `the hook "pre-push" is a link by way of "current" in the workspace`
	if _, notices := mounts(); len(notices) != 1 || !strings.Contains(notices[0], said) {
		t.Errorf("%q", notices)
	}
	var re *RefusedError
	h := &Host{Workspace: ws, UID: os.Getuid(), Home: "/nonexistent"}
	if err := h.probeGit("quarantine", env); !errors.As(err, &re) || !strings.Contains(re.What, said) || !strings.Contains(re.Do, "a link to the file itself") {
		t.Errorf("%v", err)
	}
}

// TestHooksAbove: nor can it in a directory of a larger repository, or among
// several, whatever git it has; and where nobody can be asked, that is said.
func TestHooksAbove(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh := func(script string) {
		t.Helper()
		c := exec.Command("sh", "-euc", script)
		c.Dir, c.Env = top, []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	sh(`git init -q mono; mkdir -p mono/frontend/app/.husky/_ mono/frontend/.git; git -C mono config core.hooksPath frontend/app/.husky/_
git init -q many/one; git -C many/one config core.hooksPath hooks; mkdir many/one/hooks
git init -q mono/frontend/app/lib; git -C mono/frontend/app/lib config core.hooksPath h; mkdir -p none masked/.git masked/below`)
	const path = "/usr/bin:/bin"
	for _, tt := range []struct {
		name, workspace, path string
		want                  []string
		notice                bool
	}{
		{"below the top", "mono/frontend/app", path, []string{"dst=/workspace/.husky ", "dst=/workspace/.husky/_,ro=true", "dst=/workspace/lib/h,ro=true"}, false},
		{"where another sandbox has a mask", "mono/frontend", path, []string{"dst=/workspace/app/.husky/_,ro=true"}, false},
		{"among several", "many", path, []string{"dst=/workspace/one ", "dst=/workspace/one/hooks,ro=true"}, false},
		{"without git on the host", "mono/frontend/app", "/nonexistent", nil, true},
		{"the hooks themselves", "mono/frontend/app/.husky/_", path, nil, true},
		{"no repository", "none", "/nonexistent", nil, false},
		{"nothing but a mask above", "masked/below", path, nil, false},
	} {
		for _, mode := range []string{"quarantine", "none"} {
			ws := filepath.Join(top, tt.workspace)
			h := fixedHost()
			h.Git = GitHost{}
			h.Workspace, h.UID, h.Home = ws, os.Getuid(), "/nonexistent"
			for _, name := range []string{"/workspace", "/workspace/lazaret.lock", "/workspace/lazaret.toml"} {
				s := h.Sources[name]
				s.Path = strings.Replace(name, "/workspace", ws, 1)
				h.Sources[name] = s
			}
			if err := h.probeGit(mode, Env{Getenv: func(k string) string { return map[string]string{"PATH": tt.path}[k] }}); err != nil {
				t.Fatal(err)
			}
			plan, err := Resolve(locked(t, base+"git = \""+mode+"\"\n"), "my_agent", h, options())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(plan.Text(), want) {
					t.Errorf("%s, git %s: no %s in\n%s", tt.name, mode, want, plan.Text())
				}
			}
			if said := slices.ContainsFunc(plan.Notices, func(n string) bool { return strings.Contains(n, "can be written by the sandbox: ") }); said != tt.notice {
				t.Errorf("%s, git %s: %q", tt.name, mode, plan.Notices)
			}
		}
	}
}
