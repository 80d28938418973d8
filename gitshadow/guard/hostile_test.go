package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHostileTrees: whatever a tree is, a look at it ends, reads no more than
// it must, and says what it left out.
func TestHostileTrees(t *testing.T) {
	limits := DefaultLimits
	limits.Time = 5 * time.Second
	look := func(t *testing.T, dir string, l Limits) Snapshot {
		t.Helper()
		start := time.Now()
		s := Scan(context.Background(), Options{Roots: []string{dir}, Limits: l})
		if took := time.Since(start); took > l.Time+20*time.Second {
			t.Errorf("it took %v", took)
		}
		return s
	}
	t.Run("pipes where files are read", func(t *testing.T) {
		files := map[string]string{".gitmodules": "|", ".envrc": "|", "s/.git/HEAD": "|", "s/.git/config": "|", "s/.git/refs/": "", "s/.git/objects/": "", "s/.git/packed-refs": "|", "s/.git/commondir": "|", "x/.git": "|", ".claude/settings.json": "|", "s/.git/hooks": "|", "s/.git/info": "|"}
		if s := look(t, tree(t, files), limits); len(s.Findings) < 6 {
			t.Errorf("%v %v", lines(s.Findings), s.Gaps)
		}
	})
	t.Run("a huge file", func(t *testing.T) {
		dir := tree(t, map[string]string{".envrc": "x"})
		if err := os.Truncate(dir+"/.envrc", 1<<40); err != nil {
			t.Fatal(err)
		}
		a := look(t, dir, limits)
		if len(a.Findings) != 1 || !strings.Contains(a.Findings[0].Digest, "+") {
			t.Errorf("%+v", a)
		}
		// A change beyond what is read shows all the same.
		if err := os.WriteFile(dir+"/n", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(dir+"/.envrc", 1<<40+1); err != nil {
			t.Fatal(err)
		}
		if got := Compare(&a, look(t, dir, limits)); len(got) != 1 || got[0].State != Changed || got[0].Repair != NoRepair {
			t.Errorf("%+v", got)
		}
	})
	t.Run("deeper than paths can be", func(t *testing.T) {
		dir := t.TempDir()
		at, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("d", 100)
		for range 300 {
			if err := at.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
			next, err := at.OpenRoot(name)
			at.Close()
			if err != nil {
				t.Fatal(err)
			}
			at = next
		}
		at.Close()
		s := look(t, dir, limits)
		if len(s.Gaps) == 0 {
			t.Error("nothing is said of what was left out")
		}
	})
	t.Run("more than is looked at", func(t *testing.T) {
		files := map[string]string{}
		for i := range 200 {
			files[fmt.Sprintf("d%d/.envrc", i)] = "x"
		}
		dir := tree(t, files)
		few := limits
		few.Entries = 50
		if s := look(t, dir, few); len(s.Gaps) != 1 || !strings.Contains(s.Gaps[0].Why, "more than 50 files") {
			t.Errorf("%+v", s.Gaps)
		}
		few = limits
		few.Findings = 10
		if s := look(t, dir, few); len(s.Gaps) != 1 || !strings.Contains(s.Gaps[0].Why, "findings") {
			t.Errorf("%+v", s.Gaps)
		}
		few = limits
		few.Time = time.Nanosecond
		if s := look(t, dir, few); len(s.Gaps) != 1 || !strings.Contains(s.Gaps[0].Why, "too long") {
			t.Errorf("%+v", s.Gaps)
		}
	})
	t.Run("links to themselves", func(t *testing.T) {
		s := look(t, tree(t, map[string]string{"a": "-> a", "b": "-> c", "c": "-> b", ".vscode": "-> .", "d/e": "-> ../d", ".envrc": "-> .envrc", ".git": "-> .git", "s/.git/HEAD": "x", "s/.git/objects/": "", "s/.git/refs/": "", "s/.git/config": "-> config"}), limits)
		if len(s.Findings) == 0 {
			t.Error("nothing")
		}
	})
	t.Run("includes in a circle", func(t *testing.T) {
		// Each time, all of them again: that would never end.
		s := look(t, tree(t, repo("s/.git", "[include]\n"+strings.Repeat("\tpath = config\n\tpath = ../../c\n", 1000))), limits)
		if len(s.Gaps) > 0 || len(s.Findings) == 0 {
			t.Errorf("%d findings, %v", len(s.Findings), s.Gaps)
		}
	})
	t.Run("settings that name much", func(t *testing.T) {
		dir := tree(t, repo("s/.git", strings.Repeat("\tfsmonitor = ../big ../big ../big ../big\n\thooksPath = ../h\n", 10000)))
		grow(t, dir, map[string]string{"big": "x", "h/": ""})
		if err := os.Truncate(dir+"/big", 1<<30); err != nil {
			t.Fatal(err)
		}
		look(t, dir, limits)
	})
	t.Run("a directory nobody may read", func(t *testing.T) {
		if os.Getuid() == 0 {
			asNobody(t)
			return
		}
		dir := tree(t, map[string]string{"shut/.envrc": "x"})
		os.Chmod(dir+"/shut", 0)
		defer os.Chmod(dir+"/shut", 0o700)
		if s := look(t, dir, limits); len(s.Gaps) != 1 || s.Gaps[0].Path != "shut" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("names of any bytes", func(t *testing.T) {
		name := "a\x1b]0;x\a\n\xff\u202e/.envrc"
		dir := tree(t, map[string]string{name: "x"})
		s := look(t, dir, limits)
		if len(s.Findings) != 1 || string(s.Findings[0].Path) != name {
			t.Fatalf("%+v", s)
		}
		store := Store{t.TempDir() + "/guard"}
		if err := store.Put(Begin(nil, dir, s)); err != nil {
			t.Fatal(err)
		}
		r, err := store.Get(dir)
		if err != nil || len(Compare(&r.Base, s)) != 0 {
			t.Errorf("%v: what was recorded is %+v", err, r)
		}
	})
	t.Run("renamed under the walk", func(t *testing.T) {
		files := map[string]string{}
		for i := range 50 {
			files[fmt.Sprintf("a/b/c%d/d/e/.envrc", i)] = "x"
		}
		dir := tree(t, files)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				// A directory into its own child's place, and back.
				os.Rename(dir+"/a/b/c0", dir+"/moved")
				os.Rename(dir+"/a/b", dir+"/moved/b")
				os.Rename(dir+"/moved/b", dir+"/a/b")
				os.Rename(dir+"/moved", dir+"/a/b/c0")
				os.Rename(dir+"/a", dir+"/x")
				os.Symlink("/", dir+"/a")
				os.Remove(dir + "/a")
				os.Rename(dir+"/x", dir+"/a")
			}
		}()
		for range 50 {
			for _, f := range look(t, dir, limits).Findings {
				if !strings.HasPrefix(filepath.Join(dir, string(f.Path)), dir+"/") || f.Kind == Setuid {
					t.Errorf("left the tree: %+v", f)
				}
			}
		}
		close(stop)
		<-done
	})
}

// TestRoots: what lies in another root is looked at once, and what is no
// directory is said.
func TestRoots(t *testing.T) {
	dir := tree(t, map[string]string{"a/.envrc": "x", "f": ""})
	s := scan(t, dir+"/a", dir, dir)
	if len(s.Findings) != 1 || len(s.Roots) != 1 {
		t.Errorf("%+v", s)
	}
	os.Symlink(dir, dir+"/l")
	for _, root := range []string{dir + "/f", dir + "/none", dir + "/l"} {
		if s := scan(t, root); len(s.Gaps) != 1 {
			t.Errorf("%s: %+v", root, s)
		}
	}
}

// BenchmarkScan looks at fifty thousand files in five thousand directories.
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	for i := range 5000 {
		d := fmt.Sprintf("%s/p%d/q%d/r%d", dir, i%20, i%200, i)
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(fmt.Sprintf("%s/file%d.go", d, j), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if s := scan(b, dir); s.Entries < 50000 {
			b.Fatal(s.Entries)
		}
	}
}

// asNobody runs the test anew as a user who may less than root.
func asNobody(t *testing.T) {
	t.Helper()
	var run []string
	for _, name := range strings.Split(t.Name(), "/") {
		run = append(run, "^"+name+"$")
	}
	c := exec.Command("/proc/self/exe", "-test.v", "-test.run", strings.Join(run, "/"))
	c.Dir, c.Env = "/", []string{"TMPDIR=/tmp", "PATH=" + os.Getenv("PATH")}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
