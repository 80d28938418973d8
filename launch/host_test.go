package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/lock"
)

func TestWorkspace(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "src", "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, filepath.Join(project, "home")); err != nil {
		t.Fatal(err)
	}
	if got, err := workspace(project, home); err != nil || got != project {
		t.Errorf("got %q, %v", got, err)
	}
	for dir, want := range map[string]string{
		"/":                            "the workspace is /",
		home:                           "your home directory",
		filepath.Dir(home):             "contains your home directory",
		filepath.Join(project, "home"): "your home directory", // by another name
		filepath.Join(project, "gone"): "no such file",
	} {
		if _, err := workspace(dir, home); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", dir, err, want)
		}
	}
}

func TestRuntimeDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeDir(dir, os.Getuid()); err != nil {
		t.Error(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "relative", open, dir + "/link", dir + "/gone"} {
		if _, err := runtimeDir(bad, os.Getuid()); err == nil {
			t.Errorf("%q: not refused", bad)
		}
	}
	if _, err := runtimeDir(dir, os.Getuid()+1); err == nil {
		t.Error("somebody else's directory: not refused")
	}
}

func TestSecrets(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "LINES": "a\nINJECTED=1", "LONG": strings.Repeat("x", 64<<10)}
	lookup := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	got, err := secrets("p", []lock.EnvNeed{{Key: "K", Name: "A"}, {Key: "E", Name: "EMPTY"}, {Key: "O", Name: "GONE", Optional: true}}, lookup)
	if err != nil || len(got) != 2 || got["A"] != "1" || got["EMPTY"] != "" {
		t.Errorf("got %v, %v", got, err)
	}
	for name, want := range map[string]string{"GONE": "profiles.p.env.K: GONE is not set", "LINES": "more than one line", "LONG": "longer than"} {
		_, err := secrets("p", []lock.EnvNeed{{Key: "K", Name: name}}, lookup)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "INJECTED") {
			t.Errorf("the error quotes the value: %v", err)
		}
	}
}

// What a sandbox could have turned into a link is not followed; what it could
// not is the person's own business.
func TestSources(t *testing.T) {
	home := t.TempDir()
	ws, data := filepath.Join(home, "ws"), filepath.Join(home, "data")
	for _, d := range []string{ws + "/real", home + "/secret", home + "/elsewhere", data + "/p", home + "/run/lazaret", data + "/.lazaret", data + "/other"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{ws + "/cache": home + "/secret", data + "/p/cache": home + "/secret", home + "/own": home + "/elsewhere", ws + "/dangling": home + "/gone", home + "/dangling": "gone", home + "/detour": "ws/cache", home + "/loop": "loop"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	h := Host{Home: home, Workspace: ws, DataRoot: data, ProfileDir: filepath.Join(data, "p"), RuntimeDir: home + "/run"}
	for _, tc := range []struct{ from, want string }{
		{"{workspace_dir}/real", ""},
		{"~/own", ""},
		{"{profile_dir}/new", ""},
		{"{workspace_dir}/cache", "a sandbox could have made it"},
		{"{workspace_dir}/cache/.ssh", "a sandbox could have made it"},
		{"{profile_dir}/cache", "a sandbox could have made it"},
		{"{workspace_dir}/dangling", "a sandbox could have made it"},
		{"~/dangling", "symlink to nowhere"},
		{"~/ws/cache", "a sandbox could have made it"}, // however it is written
		{"~/detour", "a sandbox could have made it"},
		{"~/loop", "too many symlinks"},
		{"~/data", "contain one another"},
		{"~/data/.lazaret", "contain one another"},
		{"~/data/other", "contain one another"},
		{"~", "contain one another"},
		{"{runtime_dir}/lazaret", "contain one another"},
	} {
		needs := lock.Needs{Paths: []lock.PathNeed{{Target: "/x", Source: tc.from, Create: strings.HasPrefix(tc.from, "{profile_dir}")}}}
		got, err := sources(needs, "p", h)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.from, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, %v; want …%s…", tc.from, got, err, tc.want)
		}
	}
}

func TestDataRoot(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "ws")
	if err := os.MkdirAll(ws+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ws, filepath.Join(home, "alias")); err != nil {
		t.Fatal(err)
	}
	h := Host{Home: home, Workspace: ws}
	if got, err := dataRoot("~/.local/share/lazaret", h); err != nil || got != home+"/.local/share/lazaret" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{ws, ws + "/sub/state", home, "~/alias/state", "/"} {
		if _, err := dataRoot(bad, h); err == nil {
			t.Errorf("%s: not refused", bad)
		}
	}
}

func TestMasked(t *testing.T) {
	ws := t.TempDir()
	for name, make := range map[string]func(string) error{
		".git":         func(p string) error { return os.Symlink("/tmp", p) },
		".vscode":      func(p string) error { return os.Symlink("ed", p) },
		"lazaret.lock": func(p string) error { return os.Symlink("conf/l.lock", p) },
	} {
		p := filepath.Join(ws, name)
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if _, err := masked(ws, false); err == nil || !strings.Contains(err.Error(), name+" in the workspace is a symlink") {
			t.Errorf("%s: got %v", name, err)
		}
		os.Remove(p)
	}
}

func TestTools(t *testing.T) {
	for out, want := range map[string]string{
		"podman version 4.3.1\n":        "",
		"podman version 5.4.2\n":        "",
		"podman version 5.5.0-rc1\n":    "",
		"podman version 4.2.0\n":        "too old",
		"podman version 3.4.4\n":        "too old",
		"docker version 28\n":           "says",
		"\x1b]0;x\a podman version 9.9": "says",
	} {
		_, err := checkPodman(out)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: got %v", out, err)
		}
	}
	for out, want := range map[string]string{
		"runsc version release-20260905.0-go\nspec: 1.1.0\n": "",
		"runsc version release-20221219.0\nspec: 1.0.2\n":    "too old",
		"runsc version VERSION_MISSING\n":                    "says",
	} {
		_, err := checkRunsc(out)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", out, err)
		}
	}
}

func TestLookPathLeavesTheWorkspaceOut(t *testing.T) {
	ws, bin := t.TempDir(), t.TempDir()
	for _, dir := range []string{ws, bin} {
		if err := os.WriteFile(filepath.Join(dir, "podman"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(ws, "podman"), filepath.Join(bin, "runsc")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(ws)
	if got, err := lookPath("podman", ws+"::.:"+bin, ws); err != nil || got != bin+"/podman" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := lookPath("runsc", ws+":"+bin, ws); err == nil {
		t.Errorf("found %q, which links into the workspace", got)
	}
}
