package launch

import (
	"path/filepath"
	"strings"
	"testing"

	"lazaret/gitshadow"
)

// TestHooksAmongNestedRepositories: hooks are read-only also where the directory
// that they are in is a nested repository, holds one or lies in one.
func TestHooksAmongNestedRepositories(t *testing.T) {
	for _, tt := range []struct {
		name   string
		hooks  string
		nested []string
		want   map[string]bool // target below /workspace: read-only
	}{
		{"hooks are a submodule", ".githooks", []string{".githooks"}, map[string]bool{".githooks": true}},
		{"hooks hold one", ".githooks", []string{".githooks/deep/lib"}, map[string]bool{".githooks": true, ".githooks/deep": true, ".githooks/deep/lib": true}},
		{"hooks lie in one", "vendor/lib/hooks", []string{"vendor/lib"}, map[string]bool{"vendor": false, "vendor/lib": false, "vendor/lib/hooks": true}},
		{"the same beginning", "hooks", []string{"hooks2"}, map[string]bool{"hooks": true, "hooks2": false}},
	} {
		for _, mode := range []string{"quarantine", "none"} {
			h := fixedHost()
			repo := &h.Git.Repo
			repo.HooksPath, repo.Nested = tt.hooks, nil
			for _, path := range tt.nested {
				git := filepath.Join(repo.GitDir, "modules", path)
				repo.Nested = append(repo.Nested, gitshadow.Repo{
					Workspace: filepath.Join(h.Workspace, path), Path: path, Kind: gitshadow.Submodule, GitFile: true, Name: path,
					GitDir: git, CommonDir: git, ObjectFormat: "sha1", RefFormat: "files", Detached: true, HeadID: repo.HeadID,
				})
			}
			plan, err := Resolve(locked(t, base+"git = \""+mode+"\"\n"), "my_agent", h, options())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, m := range plan.Steps[len(plan.Steps)-1].Op.(Sandbox).Run.Mounts {
				got[m.Target] = m.ReadOnly
			}
			for path, want := range tt.want {
				if ro, there := got["/workspace/"+path]; !there || ro != want {
					t.Errorf("%s, git %s: %s is mounted: %v, read-only: %v", tt.name, mode, path, there, ro)
				}
			}
		}
	}
}

// TestHookLinksMounts: a file that a hook is a link to is read-only, and no
// directory above it can be moved away; one that is not there is spoken of.
func TestHookLinksMounts(t *testing.T) {
	h := fixedHost()
	h.Git.Repo.HooksPath, h.Git.Repo.HookFiles, h.Git.Repo.HookGone = "hooks", []string{"hooks/x", "scripts/check"}, []string{"hooks/y", "gone"}
	plan, err := Resolve(locked(t, base), "my_agent", h, options())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range plan.Steps[len(plan.Steps)-1].Op.(Sandbox).Run.Mounts {
		got[m.Target] = m.ReadOnly
	}
	if ro, there := got["/workspace/scripts"]; !there || ro || !got["/workspace/scripts/check"] {
		t.Errorf("mounted, and read-only: %v", got)
	}
	if _, there := got["/workspace/hooks/x"]; there {
		t.Error("what lies in the hooks' own directory is mounted once more")
	}
	if all := strings.Join(plan.Notices, "\n"); !strings.Contains(all, `link to "gone"`) && !strings.Contains(all, "link to gone") || strings.Contains(all, "hooks/y") {
		t.Errorf("it says\n%s", all)
	}
}

// TestVolumesApart: no volume leads around the covers over hooks and nested
// repositories, wherever it is mounted.
func TestVolumesApart(t *testing.T) {
	for _, tt := range []struct {
		name, from, at, mode string
		refused              bool
	}{
		{"the hooks", "deep/hooks", "/v", "rw", true},
		{"above them", "deep", "/v", "rw", true},
		{"read-only", "deep", "/v", "ro", false},
		{"beside them", "deep/other", "/v", "rw", false},
		{"a file that a hook is a link to", "scripts", "/v", "rw", true},
		{"a nested repository", "vendor", "/v", "rw", true},
		{"its work tree's part", "vendor/lib/src", "/v", "rw", false},
		{"elsewhere in the workspace", "deep", "/workspace/x", "rw", true},
		{"there, read-only", "deep", "/workspace/x", "ro", false},
		{"a file, there", "scripts", "/workspace/x", "rw", true},
		{"a nested repository, there", "vendor", "/workspace/x", "rw", true},
		{"at its own place", "deep", "/workspace/deep", "rw", false},
		{"in the cover's place", "deep/hooks", "/workspace/deep/hooks", "rw", true},
		{"among the hooks", "deep/hooks/d", "/workspace/deep/hooks/d", "rw", true},
		{"in the place of a file's cover", "scripts/check", "/workspace/scripts/check", "rw", true},
	} {
		h := fixedHost()
		h.Git.Repo.HooksPath, h.Git.Repo.HookFiles = "deep/hooks", []string{"scripts/check"}
		h.Git.Repo.Nested = []gitshadow.Repo{{Path: "vendor/lib"}}
		h.Sources[tt.at] = Source{Path: filepath.Join(h.Workspace, tt.from), Exists: true, Dir: true}
		file := locked(t, base+"git = \"none\"\nvolumes = [{host = \"{workspace_dir}/"+tt.from+"\", container = \""+tt.at+"\", mode = \""+tt.mode+"\"}]\n")
		if _, err := Resolve(file, "my_agent", h, options()); (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "your git runs programs") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
