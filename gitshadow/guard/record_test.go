package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRecord: what is told when, over several sandboxes.
func TestRecord(t *testing.T) {
	dir := tree(t, map[string]string{".envrc": "mine", "a": ""})
	told := func(fs []Finding) string { return strings.Join(lines(fs), "; ") }
	r := Begin(nil, dir, scan(t, dir))
	grow(t, dir, map[string]string{".mcp.json": "{}", "s/.gitmodules": "[submodule \"a\"]\nupdate = !id\n"})
	r, found := r.End(scan(t, dir))
	if told(found) != "danger tool .mcp.json; danger submodules s/.gitmodules: submodule.a.update = !id" {
		t.Errorf("first: %s", told(found))
	}
	// The person's own between sandboxes is not told, the agent's still is.
	grow(t, dir, map[string]string{".npmrc": "mine"})
	r = Begin(&r, dir, scan(t, dir))
	r, found = r.End(scan(t, dir))
	if told(found) != "danger tool .mcp.json; danger submodules s/.gitmodules: submodule.a.update = !id" || len(r.Told) != 2 {
		t.Errorf("second: %s", told(found))
	}
	// After a kill nobody knows whose it is.
	r = Begin(&r, dir, scan(t, dir))
	grow(t, dir, map[string]string{".lfsconfig": "x", ".envrc": "changed"})
	r = Begin(&r, dir, scan(t, dir))
	r, found = r.End(scan(t, dir))
	if told(found) != "danger tool .envrc; danger tool .mcp.json; danger submodules s/.gitmodules: submodule.a.update = !id; warning tool .lfsconfig" {
		t.Errorf("after a kill: %s", told(found))
	}
	// Beside another sandbox, what that one did stays told.
	r = Begin(&r, dir, scan(t, dir))
	grow(t, dir, map[string]string{".cargo/config.toml": "x"})
	other := tree(t, map[string]string{".envrc": "other"})
	r = r.Join(scan(t, dir, other))
	r, found = r.End(scan(t, dir, other))
	if told(found) != "danger tool .cargo/config.toml; danger tool .envrc; danger tool .mcp.json; danger submodules s/.gitmodules: submodule.a.update = !id; warning tool .lfsconfig" {
		t.Errorf("beside: %s", told(found))
	}
	// What is told again is told as what it was.
	for _, f := range found {
		if want := map[Name]State{".envrc": Changed}[f.Path]; f.State != want && (want != "" || f.State != Appeared) {
			t.Errorf("%s is said to have %s", f.Path, f.State)
		}
	}
	r = r.Accept(scan(t, dir))
	if r, found = r.End(scan(t, dir)); len(found) > 0 {
		t.Errorf("accepted: %s", told(found))
	}
	r = Begin(&r, dir, scan(t, dir))
	if _, found = r.End(scan(t, dir)); len(found) > 0 {
		t.Errorf("accepted: %s", told(found))
	}
}

func TestStore(t *testing.T) {
	s := Store{t.TempDir() + "/guard"}
	if r, err := s.Get("/w"); r != nil || err != nil {
		t.Fatal(r, err)
	}
	left := filepath.Join(s.Dir, ".new-0123456789ab")
	os.MkdirAll(s.Dir, 0o700)
	os.WriteFile(left, nil, 0o600)
	os.Chtimes(left, time.Time{}, time.Now().Add(-time.Hour))
	defer func() {
		if _, err := os.Lstat(left); err == nil {
			t.Error("what a killed one left is left")
		}
	}()
	if err := s.Put(Record{Version: 1, Workspace: "/w"}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get("/w"); r == nil || err != nil {
		t.Fatal(r, err)
	}
	fi, err := os.Stat(s.Path("/w"))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	for _, break_ := range []func(p string){
		func(p string) { os.WriteFile(p, []byte("{"), 0o600) },
		func(p string) { os.WriteFile(p, []byte(`{"version":1,"workspace":"/other"}`), 0o600) },
		func(p string) { os.Chmod(p, 0o666) },
		func(p string) { os.Remove(p); os.Symlink("/dev/zero", p) },
		func(p string) { os.Remove(p); os.Mkdir(p, 0o700) },
	} {
		break_(s.Path("/w"))
		if r, err := s.Get("/w"); err == nil {
			t.Errorf("read %+v", r)
		}
	}
}

// TestCollapse: a directory of a tool's that appeared is one finding; one that
// was there before is not moved for a new file in it.
func TestCollapse(t *testing.T) {
	dir := tree(t, map[string]string{".claude/settings.json": "{}", "s/.gitmodules": "x", "s/.gitattributes": "a b"})
	before := scan(t, dir)
	grow(t, dir, map[string]string{".idea/a.xml": "", ".idea/b/c.xml": "", ".claude/hooks/x": "", ".claude/agents/y": "", "s/.gitmodules": "[submodule \"-x\"]\npath = a\n", "s/.gitattributes": "a filter=b", "t/.gitattributes": "a filter=b"})
	got := Collapse(Compare(&before, scan(t, dir)))
	var say []string
	for _, f := range got {
		say = append(say, strings.Join(lines([]Finding{f}), "")+" "+string(f.State)+" "+string(f.Repair))
		if f.Path == ".idea" && f.Files != 2 {
			t.Errorf("%+v", f)
		}
	}
	want := []string{
		"danger tool .idea appeared move-aside",
		"danger submodules s/.gitmodules: submodule.-x.path = a changed ",
		"warning tool .claude/agents/y appeared move-aside",
		"warning tool .claude/hooks/x appeared move-aside",
		"warning attributes s/.gitattributes: filter=b changed ",
		"warning attributes t/.gitattributes: filter=b appeared move-aside",
	}
	if !slices.Equal(say, want) {
		t.Errorf("got\n%s", strings.Join(say, "\n"))
	}
}

func TestRepair(t *testing.T) {
	dir := tree(t, join(repo("s/.git", "\tfsmonitor = id\n"), repo("b", ""), map[string]string{
		"suid": "mode 4755", "out": "-> /home/u", ".envrc": "x", ".envrc.lazaret-quarantine": "there already", "s/.git/HEAD.lazaret-quarantine": "",
		".idea/a": "", ".idea/b": "",
	}))
	os.Chmod(dir+"/suid", 0o111|os.ModeSetuid)
	for range 2 {
		fs := Collapse(Compare(&Snapshot{}, scan(t, dir)))
		Order(fs)
		for _, f := range fs {
			if f.Severity > Note && f.Repair != NoRepair {
				if _, err := f.Do(); err != nil {
					t.Errorf("%v: %v", lines([]Finding{f}), err)
				}
			}
		}
	}
	if left := lines(Compare(&Snapshot{}, scan(t, dir))); len(left) != 1 || left[0] != "note link out.lazaret-quarantine: /home/u" {
		t.Errorf("left: %v", left)
	}
	fi, err := os.Stat(dir + "/suid")
	if err != nil || fi.Mode() != 0o111 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	for name, want := range map[string]string{".envrc.lazaret-quarantine": "there already", ".envrc.lazaret-quarantine-2": "x", "s/.git.lazaret-quarantine/HEAD.lazaret-quarantine-2": "ref: refs/heads/main\n"} {
		if b, err := os.ReadFile(dir + "/" + name); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}

// TestRepairOther: what is another thing by now, or lies behind a link, is
// left alone.
func TestRepairOther(t *testing.T) {
	outside := tree(t, map[string]string{".envrc": "precious", "suid": "mode 4755"})
	for _, swap := range []func(dir string){
		func(dir string) { os.Rename(dir+"/a", dir+"/b"); os.Symlink(outside, dir+"/a") },
		func(dir string) {
			for _, n := range []string{".envrc", "suid"} {
				os.Rename(dir+"/a/"+n, dir+"/a/old"+n)
				os.Symlink(outside+"/"+n, dir+"/a/"+n)
			}
		},
		func(dir string) {
			for _, n := range []string{".envrc", "suid"} {
				os.Rename(dir+"/a/"+n, dir+"/a/old"+n)
				os.WriteFile(dir+"/a/"+n, nil, 0o755)
			}
		},
	} {
		dir := tree(t, map[string]string{"a/.envrc": "x", "a/suid": "mode 4755"})
		found := scan(t, dir).Findings
		swap(dir)
		for _, f := range found {
			if did, err := f.Do(); err == nil {
				t.Errorf("%s: %s", f.Path, did)
			}
		}
		if fi, err := os.Stat(outside + "/suid"); err != nil || fi.Mode()&os.ModeSetuid == 0 {
			t.Error("something outside was changed")
		}
		if _, err := os.Stat(outside + "/.envrc"); err != nil {
			t.Error(err)
		}
	}
}

// TestWatch: what is written is found within a second, also in directories
// that were not there before.
func TestWatch(t *testing.T) {
	dir := tree(t, map[string]string{"a/b/c": ""})
	var mu sync.Mutex
	var now []string
	var last Snapshot
	looks := 0
	ctx, cancel := context.WithCancel(context.Background())
	w, err := NewWatcher(Options{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := w.Look(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, func(s Snapshot) {
			mu.Lock()
			now = lines(Compare(&before, s))
			last = s
			looks++
			mu.Unlock()
		})
	}()
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			got := slices.Clone(now)
			mu.Unlock()
			if slices.Contains(got, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%q is not found: %q", want, got)
			}
		}
	}
	for i := 0; ; i++ { // until Run has begun
		mu.Lock()
		n := looks
		mu.Unlock()
		if n > 0 {
			break
		}
		if i == 600 {
			t.Fatal("nobody looks")
		}
		grow(t, dir, map[string]string{fmt.Sprintf("warm%d/", i): ""})
		time.Sleep(100 * time.Millisecond)
	}
	grow(t, dir, map[string]string{"a/.envrc": "x"})
	wait("danger tool a/.envrc")
	grow(t, dir, map[string]string{"new/er/.vscode/tasks.json": "x"})
	wait("danger tool new/er/.vscode/tasks.json")
	grow(t, dir, repo("new/er/.git", ""))
	wait("warning repository new/er/.git")
	os.WriteFile(dir+"/new/er/.git/config", []byte("[core]\nfsmonitor = id\n"), 0o644)
	wait("danger git-config new/er/.git/config: core.fsmonitor = id")
	// What a setting runs, and the python of an environment, have names that are
	// nobody's, and may be put in the place of what was there.
	grow(t, dir, map[string]string{"new/er/tools/pretty": "1", "app/.venv/bin/python3": "1"})
	os.WriteFile(dir+"/new/er/.git/config", []byte("[diff \"x\"]\ncommand = tools/pretty\n"), 0o644)
	wait("danger program new/er/tools/pretty: diff.x.command")
	wait("danger program app/.venv/bin/python3")
	mu.Lock()
	digests := map[Name]string{}
	for _, f := range last.Findings {
		digests[f.Path] = f.Digest
	}
	mu.Unlock()
	for _, at := range []string{"new/er/tools/pretty", "app/.venv/bin/python3"} {
		grow(t, dir, map[string]string{"aside": "2"})
		if err := os.Rename(dir+"/aside", filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			i := slices.IndexFunc(last.Findings, func(f Finding) bool { return string(f.Path) == at })
			changed := i >= 0 && last.Findings[i].Digest != digests[Name(at)]
			mu.Unlock()
			if changed {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("that %s was changed is not heard", at)
			}
		}
	}
	os.Chmod(dir+"/a/b/c", 0o755|os.ModeSetuid)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		found := slices.ContainsFunc(now, func(l string) bool { return strings.Contains(l, "setuid a/b/c") })
		mu.Unlock()
		if found {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the setuid bit is not found")
		}
	}
	// Files that nobody acts upon cost no look.
	n, since := -1, time.Now()
	for time.Since(since) < time.Second { // until what was changed is looked at
		mu.Lock()
		if looks != n {
			n, since = looks, time.Now()
		}
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
	for range 20 {
		os.WriteFile(dir+"/a/b/x.go", []byte("x"), 0o644)
		time.Sleep(20 * time.Millisecond)
	}
	mu.Lock()
	if looks > n+1 {
		t.Errorf("%d looks for nothing", looks-n)
	}
	mu.Unlock()
	cancel()
	<-ended
}
