package launch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

func testRecord(ws string) Record {
	return Record{ID: "0123456789ab", Profile: "agent", Workspace: ws, DataRoot: "/home/u/state", Started: time.Unix(0, 0).UTC()}
}

// A journal is a file that somebody may have written; what it says can only be
// what this run could have journalled.
func TestUndoRefusesWhatNoRunJournals(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.MkdirAll(precious, 0o755); err != nil {
		t.Fatal(err)
	}
	u := undoer{record: testRecord(dir), cache: dir}
	for _, x := range []step.Undo{
		{Kind: undoContainer, Name: "somebody-elses"},
		{Kind: undoContainer, Name: "lazaret-agent-ffffffffffff"},
		{Kind: undoContainer, Name: "--all"},
		{Kind: undoContainer, Base: baseCache, Name: "lazaret-agent-0123456789ab"},
		{Kind: undoRmdir, Base: baseWorkspace, Name: "precious"},
		{Kind: undoRmdir, Base: baseWorkspace, Name: "../" + filepath.Base(dir) + "/precious"},
		{Kind: undoRmdir, Base: baseCache, Name: ".git"},
		{Kind: undoHooks, Base: baseWorkspace, Name: "../" + filepath.Base(dir) + "/precious"},
		{Kind: undoHooks, Base: baseWorkspace, Name: "."},
		{Kind: undoHooks, Base: baseWorkspace, Name: ".git/objects"},
		{Kind: undoHooks, Base: baseCache, Name: "hooks"},
		{Kind: undoTree, Base: baseCache, Name: "precious"},
		{Kind: undoTree, Base: baseCache, Name: "layout-ffffffffffff"},
		{Kind: undoTree, Base: baseWorkspace, Name: "layout-0123456789ab"},
		{Kind: "rm -rf", Base: baseWorkspace, Name: ".git"},
	} {
		if err := u.undo(t.Context(), x); err == nil {
			t.Errorf("%v: not refused", x)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestRmdirTakesEmptyDirectoriesOnly(t *testing.T) {
	ws := t.TempDir()
	u := undoer{record: testRecord(ws), runs: t.TempDir()}
	if err := os.Mkdir(filepath.Join(u.runs, u.record.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	undo := func(name string) {
		t.Helper()
		if err := u.undo(t.Context(), step.Undo{Kind: undoRmdir, Base: baseWorkspace, Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	undo(".git") // there is none
	for _, dir := range []string{".git", ".vscode/keep"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ws, ".idea"), []byte("a file by now"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git", ".vscode", ".idea"} {
		undo(name)
		undo(name)
	}
	if _, err := os.Stat(filepath.Join(ws, ".git")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the empty directory is still there")
	}
	for _, name := range []string{".vscode/keep", ".idea"} {
		if _, err := os.Stat(filepath.Join(ws, name)); err != nil {
			t.Error(err)
		}
	}
}

// Whatever was put into a tree of ours is not removed through links, across
// mounts, or deeper than our own trees go.
func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "tree/lazaret/x/blobs/sha256")
	if err := os.MkdirAll(made, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{made + "/blob", dir + "/tree/lazaret/x/index.json"} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "tree", "link")); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir, "tree"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the tree is still there")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}

	deep := filepath.Join(dir, "tree", strings.Repeat("d/", treeDepth+1))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir, "tree"); err == nil {
		t.Error("a tree deeper than ours is removed")
	}
	if err := os.Symlink(dir, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir, "out"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if err := removeTree(dir, "../"+filepath.Base(dir)); err == nil {
		t.Error("a name that leads out is followed")
	}
}

func TestKillProcess(t *testing.T) {
	sleep := func() (*exec.Cmd, string) {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		reaped := make(chan struct{})
		go func() { c.Wait(); close(reaped) }()
		t.Cleanup(func() { c.Process.Kill(); <-reaped })
		name, err := processName(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return c, name
	}
	// The same pid with another start time is another process.
	c, name := sleep()
	pid, _, _ := strings.Cut(name, "/")
	if err := killProcess(pid + "/1"); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(c.Process.Pid, 0); err != nil {
		t.Error("killed a process by its pid alone")
	}
	if err := killProcess(name); err != nil {
		t.Error(err)
	}
	if err := killProcess(name); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for _, bad := range []string{"", "1/1", "-1/5", "x/y", "0/0", "12"} {
		if err := killProcess(bad); err == nil {
			t.Errorf("%q: not refused", bad)
		}
	}
}
