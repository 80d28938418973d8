package launch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// podmanName is what podman takes for a container's name.
var podmanName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// FuzzRecord: what is taken for the record of a run names containers that
// podman takes for names and nothing else, clean paths, and this run only.
func FuzzRecord(f *testing.F) {
	good, _ := json.Marshal(testRecord("/ws"))
	f.Add(good)
	f.Add([]byte(`{"id":"0123456789ab","profile":"--","workspace":"/a/../b","data_root":"/"}`))
	f.Add([]byte(`{"id":"0123456789ab","profile":"ab\n","workspace":"/","data_root":"//"}`))
	f.Add([]byte(`{"id":"0123456789abc"}`))
	f.Add([]byte("[]\x00"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		const id = "0123456789ab"
		run := filepath.Join(dir, id)
		for name, text := range map[string][]byte{recordFile: data, journalFile: nil, supervisorLock: nil} {
			if err := write(run, name, string(text)); err != nil {
				os.MkdirAll(run, 0o700)
				write(run, name, string(text))
			}
		}
		c, err := openClaim(dir, id)
		if err != nil {
			return
		}
		defer c.close()
		r := c.Record
		if r.ID != id || !podmanName.MatchString(r.Container()) || !podmanName.MatchString(r.Sidecar()) {
			t.Fatalf("%q is the record of %q", data, r.Sidecar())
		}
		for _, p := range []string{r.Workspace, r.DataRoot} {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
				t.Fatalf("%q names the path %q", data, p)
			}
		}
	})
}

// FuzzUndo: whatever a journal asks for, nothing of the person's goes.
func FuzzUndo(f *testing.F) {
	for _, kind := range []string{undoContainer, undoRmdir, undoHooks, undoTree, undoSocket, undoGitStore, undoDiscard, "x"} {
		for _, base := range []string{"", baseWorkspace, baseCache, baseSocket, baseData} {
			f.Add(kind, base, ".git")
			f.Add(kind, base, "../precious")
			f.Add(kind, base, "layout-0123456789ab")
		}
	}
	f.Add(undoHooks, baseWorkspace, "a/../../precious")
	f.Add(undoSocket, baseSocket, "/etc/lazaret-0123456789ab.sock")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, kind, base, name string) {
		if kind == undoContainer || kind == undoUnmount || kind == undoOverlay {
			return // these start podman, or look through /proc: TestUndoRefusesWhatNoRunJournals has them
		}
		u := undoer{
			record: testRecord(filepath.Join(dir, "ws")), cache: filepath.Join(dir, "cache"), runs: filepath.Join(dir, "runs"),
			podman: podman.Engine{Podman: "/bin/false"}, router: podman.Engine{Podman: "/bin/false"}, lazaret: "/bin/false", git: "/bin/false",
		}
		u.record.DataRoot = filepath.Join(dir, "data")
		// Most of it is there from the time before.
		for _, d := range []string{"precious", "cache/precious", "ws/.git/precious", "ws/src", "data/precious", "runs/0123456789ab"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"precious/f", "cache/precious/f", "ws/.git/f", "ws/src/f", "data/precious/f"} {
			if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
				write(dir, file, "f")
			}
		}
		u.undo(t.Context(), step.Undo{Kind: kind, Base: base, Name: name})
		for _, file := range []string{"precious/f", "cache/precious/f", "ws/.git/f", "ws/src/f", "data/precious/f", "ws/.git/precious"} {
			if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
				t.Fatalf("%q %q %q: %v", kind, base, name, err)
			}
		}
	})
}

// FuzzResolve: a path that is resolved leads where the kernel says, unless a
// link in what a sandbox can write is on the way.
func FuzzResolve(f *testing.F) {
	for _, p := range []string{"a/b", "link/b", "ws/out/x", "ws/../a", "abs/b", "nowhere", "loop", "a//./b/..", "ws/in/../../a"} {
		f.Add(p)
	}
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range []string{"a/b", "ws/d"} {
		os.MkdirAll(filepath.Join(dir, d), 0o700)
	}
	for at, to := range map[string]string{"link": "a", "abs": dir + "/a", "nowhere": "gone", "loop": "loop", "ws/out": "../a", "ws/in": "d"} {
		os.Symlink(to, filepath.Join(dir, at))
	}
	f.Fuzz(func(t *testing.T, p string) {
		if strings.Contains(p, "..") && strings.Count(p, "..") > 2 {
			return // out of what the test made
		}
		path := dir + "/" + p
		got, err := resolve(path, filepath.Join(dir, "ws"))
		if err != nil {
			return
		}
		if !filepath.IsAbs(got) || filepath.Clean(got) != got {
			t.Fatalf("%q leads to %q", p, got)
		}
		if strings.Contains(p, "\x00") {
			return
		}
		want, err := filepath.EvalSymlinks(path)
		if err == nil && want != got {
			t.Fatalf("%q leads to %q, and the kernel goes to %q", p, got, want)
		}
	})
}
