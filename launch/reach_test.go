package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/lock"
)

// reachHost is a home with everything that no sandbox may be given.
func reachHost(t *testing.T) Host {
	t.Helper()
	home := t.TempDir()
	for _, d := range []string{
		"ws/.git/hooks", "ws/src", "ws/.vscode", "ws/node/bin", "data/p/kept", "run/lazaret/x", "run/libpod/tmp", "run/app", ".cache/lazaret", ".config/lazaret",
		".local/state/lazaret", ".local/share/containers/storage", ".local/bin", "docs",
	} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"PATH": home + "/.local/bin:relative:/usr/bin:" + home + "/ws/node/bin"}
	h := Host{Home: home, Workspace: home + "/ws", DataRoot: home + "/data", ProfileDir: home + "/data/p", RuntimeDir: home + "/run", Lazaret: "/usr/bin/lazaret"}
	h.ownDirs(Env{Getenv: func(k string) string { return env[k] }})
	return h
}

// What keeps an agent in its sandbox is not mounted into it, however the path
// to it is written.
func TestReach(t *testing.T) {
	for _, tc := range []struct {
		source string
		ro, rw string // what the refusal says; "" where it is allowed
	}{
		{"~/docs", "", ""},
		{"{workspace_dir}/src", "", ""},
		{"{runtime_dir}/app", "", ""},
		{"{profile_dir}/kept", "", ""},
		{"{profile_dir}/root_changes", "persistent directory", "persistent directory"},
		{"~/data/p/root_work/work", "persistent directory", "persistent directory"},
		{"{profile_dir}/root_merged", "persistent directory", "persistent directory"},
		{"{profile_dir}/.probe-root", "persistent directory", "persistent directory"},
		{"~/ws", "", "without the masks over it"},
		{"~/ws/.git", "", "is masked"},
		{"~/ws/.git/hooks", "", "is masked"},
		{"~/ws/.vscode", "", "is masked"},
		{"~", "contain one another", "contain one another"},
		{"~/.local", "contain one another", "contain one another"},
		{"~/.local/share/containers", "contain one another", "contain one another"},
		{"~/.local/state", "contain one another", "contain one another"},
		{"~/.local/state/lazaret", "contain one another", "contain one another"},
		{"~/.local/state/lazaret/trust", "contain one another", "contain one another"},
		{"~/.cache", "contain one another", "contain one another"},
		{"~/.config", "contain one another", "contain one another"},
		{"{runtime_dir}", "contain one another", "contain one another"},
		{"{runtime_dir}/libpod", "contain one another", "contain one another"},
		{"{runtime_dir}/lazaret/x", "contain one another", "contain one another"},
		{"~/data/p", "contain one another", "contain one another"},
		{"~/.local/bin", "", "your PATH leads to"},
	} {
		h := reachHost(t)
		for mode, want := range map[bool]string{false: tc.ro, true: tc.rw} {
			_, err := sources(lock.Needs{Paths: []lock.PathNeed{{Target: "/x", Source: tc.source, Writable: mode}}}, "p", h)
			if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, writable %v: got %v, want %q", tc.source, mode, err, want)
			}
		}
	}
}

// A link in what one mount lets the agent write must not lead another mount.
func TestLinksInWritableVolumes(t *testing.T) {
	h := reachHost(t)
	if err := os.Symlink("../.config", h.Home+"/docs/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.Home+"/.config/other", 0o700); err != nil {
		t.Fatal(err)
	}
	needs := lock.Needs{Paths: []lock.PathNeed{
		{Target: "/a", Source: "~/docs/link/other"},
		{Target: "/b", Source: "~/docs", Writable: true},
	}}
	if _, err := sources(needs, "p", h); err == nil || !strings.Contains(err.Error(), "a sandbox could have made it") {
		t.Errorf("got %v", err)
	}
	needs.Paths[1].Writable = false // then it is the person's own link
	if _, err := sources(needs, "p", h); err != nil {
		t.Error(err)
	}
}

func TestWorkspaceApartFromOwnDirs(t *testing.T) {
	h := reachHost(t)
	if err := h.checkOwnDirs(); err != nil {
		t.Error(err)
	}
	for _, ws := range []string{"run", "run/app", ".cache", ".local/share", ".local/share/containers/storage", ".config/lazaret", ".local/state"} {
		h.Workspace = filepath.Join(h.Home, ws)
		if err := h.checkOwnDirs(); err == nil {
			t.Errorf("%s: not refused", ws)
		}
	}
}

func TestReplaceablePrograms(t *testing.T) {
	h := reachHost(t)
	if got := h.replaceable(); len(got) != 1 || !strings.Contains(got[0], "node/bin") {
		t.Errorf("got %q", got)
	}
	h.Lazaret = h.Workspace + "/bin/lazaret"
	if got := h.replaceable(); len(got) != 2 || !strings.Contains(got[0], "lazaret itself") {
		t.Errorf("got %q", got)
	}
}
