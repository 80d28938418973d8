package gitshadow

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideVar tells this test binary to be the inside of a sandbox.
const insideVar = "LAZARET_TEST_INSIDE"

// sandboxed is what the child is to be: a root directory of its own, in which
// the workspace and what a Shadow mounts lie where a sandbox has them, and
// nothing else of the host's. What gVisor adds is tried end to end.
type sandboxed struct {
	Shadow    Shadow
	Workspace string
	Root      string // where the new root is mounted
	Env       []string
	Script    string
}

// inside runs a shell script with real git in what a Shadow makes of a
// workspace. Its output is the script's.
func inside(t *testing.T, s Shadow, ws string, who Person, script string) (string, error) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	box := sandboxed{Shadow: s, Workspace: ws, Root: root, Script: script, Env: []string{"PATH=/usr/bin:/bin", "HOME=/root"}}
	for k, v := range s.Environment(who) {
		box.Env = append(box.Env, k+"="+v)
	}
	arg, err := json.Marshal(box)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestInside$")
	c.Env = []string{insideVar + "=" + string(arg)}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// TestInside is the child of inside; by itself it has nothing to do.
func TestInside(t *testing.T) {
	arg := os.Getenv(insideVar)
	if arg == "" {
		return
	}
	var box sandboxed
	if err := json.Unmarshal([]byte(arg), &box); err != nil {
		t.Fatal(err)
	}
	if err := box.enter(); err != nil {
		fmt.Println(err)
		os.Exit(99)
	}
	err := unix.Exec("/bin/sh", []string{"sh", "-euc", box.Script}, box.Env)
	fmt.Println(err)
	os.Exit(99)
}

func (b sandboxed) enter() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := b.Shadow.Fill(); err != nil {
		return err
	}
	if err := unix.Mount("root", b.Root, "tmpfs", 0, ""); err != nil {
		return err
	}
	mount := func(from, to string, readOnly bool) error {
		to = filepath.Join(b.Root, to)
		fi, err := os.Stat(from)
		if err != nil {
			return err
		}
		if fi.IsDir() {
			err = os.MkdirAll(to, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil && !exists(to) {
			err = os.WriteFile(to, nil, 0o644)
		}
		if err == nil {
			err = unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
		}
		if err == nil && readOnly {
			err = unix.MountSetattr(unix.AT_FDCWD, to, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}
		return err
	}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if err := mount(real, dir, false); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
	}
	if err := mount(b.Workspace, "/workspace", false); err != nil {
		return err
	}
	for _, m := range b.Shadow.Mounts() {
		if err := mount(m.Source, m.Target, m.ReadOnly); err != nil {
			return fmt.Errorf("%s: %w", m.Target, err)
		}
	}
	if err := unix.Chroot(b.Root); err != nil {
		return err
	}
	return unix.Chdir("/workspace")
}

// shadowOf plans and prepares what a sandbox has of a workspace.
func shadowOf(t *testing.T, ws string, w Wish) Shadow {
	t.Helper()
	r, err := Probe(ws, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	return shadowIn(t, r, w)
}

func shadowIn(t *testing.T, r Repo, w Wish) Shadow {
	t.Helper()
	w.Profile, w.Size = "claude", 64<<20
	dir := t.TempDir()
	s, err := Plan(r, w, filepath.Join(dir, "stores", "0123456789ab"), filepath.Join(dir, "at"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(t.Context(), Git{Program: gitProgram(t)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func gitProgram(t *testing.T) string {
	t.Helper()
	p, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var dev = Person{Name: "Dev", Email: "dev@example.org"}

// state is what must not change on the host: its refs, HEAD, index, status,
// config and hooks, of every repository there is.
func state(t *testing.T, dir string) string {
	t.Helper()
	return sh(t, dir, `find . \( -name .git -o -name '*.git' -type d \) -prune -exec sh -c '
			for g; do d=$(dirname "$g"; echo x); d=${d%?x}; [ "$(basename "$g")" = .git ] || d=$g
			(cd "$d"; pwd; git for-each-ref; cat "$(git rev-parse --git-dir)/HEAD"; git status --porcelain 2>&1; git diff --cached 2>&1
			 c=$(git rev-parse --git-common-dir); cat "$c/config"; ls "$c/hooks" "$c/worktrees" 2>/dev/null; git fsck --full 2>&1); done' sh {} + || :`)
}

// TestEveryKindWorks: in every kind of repository, and on any branch, git works inside and the host's repository stays as it is.
func TestEveryKindWorks(t *testing.T) {
	const everyday = `
		test "$(git status --porcelain)" = "$STATUS"
		test "$(git rev-parse HEAD 2>/dev/null)" = "$WAS" || test -z "$WAS"
		echo new >new; git add new; git commit -qm inside
		test "$(git log -1 --format=%ae)" = dev@example.org
		echo more >>new; git stash -q; git stash pop -q; git commit -qam again; git commit -q --amend -m better
		git checkout -q -b topic; git commit -q --allow-empty -m topic; git checkout -q -; git branch -D topic
		git tag v1; git tag -d v1; git log --oneline >/dev/null; git diff HEAD~1 >/dev/null
		test "$(git status --porcelain)" = "$STATUS"; git fsck --connectivity-only; git rev-parse HEAD >/tmp-head 2>/dev/null || :
		! { echo x >>.git/config; } 2>/dev/null || test -f .git; git config core.pager evil && exit 1
		git gc -q --prune=now; git reflog >/dev/null; test "$(git status --porcelain)" = "$STATUS"; git rev-parse HEAD; cat .git/HEAD 2>/dev/null || cat "$(git rev-parse --git-dir)/HEAD"`
	for _, tt := range kinds {
		branches := []string{"auto"}
		if slices.Contains([]string{"plain", "unborn", "detached", "linked working tree"}, tt.name) {
			branches = append(branches, "", "feature/x")
		}
		for _, branch := range branches {
			t.Run(tt.name+" on "+branch, func(t *testing.T) {
				t.Parallel()
				dir := tree(t)
				sh(t, dir, tt.make)
				ws := filepath.Join(dir, tt.ws)
				r, err := Probe(ws, os.Getuid())
				if err != nil {
					t.Fatal(err)
				}
				if r.Kind == None || r.Kind == Above {
					return
				}
				before := state(t, dir)
				s := shadowIn(t, r, Wish{Mode: Quarantine, Branch: branch})
				out, err := inside(t, s, ws, dev, "WAS="+r.HeadID+"\nSTATUS='"+sh(t, ws, "git status --porcelain")+"'\n"+everyday)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				lines := strings.Split(out, "\n")
				head, on := lines[len(lines)-2], lines[len(lines)-1]
				want := "ref: refs/heads/lazaret/agent-claude"
				switch {
				case branch == "feature/x":
					want = "ref: refs/heads/feature/x"
				case branch == "" && r.Detached:
					want = head
				case branch == "":
					want = "ref: " + r.Head
				}
				if on != want {
					t.Errorf("the sandbox was on %q, want %q", on, want)
				}
				// What it wrote is in the store, and nowhere on the host.
				if stored := sh(t, s.Store(s.Places[0]), `find objects -type f`); !strings.Contains(stored, ".pack") {
					t.Errorf("the store has only\n%s", stored)
				}
				if err := os.Remove(filepath.Join(ws, "new")); err != nil {
					t.Fatal(err)
				}
				if after := state(t, dir); after != before {
					t.Errorf("the host has changed\nbefore:\n%s\nafter:\n%s", before, after)
				}
			})
		}
	}
}

// TestSubmodulesWork: each has a git directory of its own in the sandbox.
func TestSubmodulesWork(t *testing.T) {
	for _, tt := range kinds {
		if !slices.Contains([]string{"submodule", "submodules in one another", "nested"}, tt.name) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			sh(t, dir, tt.make)
			ws := filepath.Join(dir, tt.ws)
			before := state(t, dir)
			s := shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto"})
			out, err := inside(t, s, ws, dev, `git submodule status --recursive; git submodule -q foreach --recursive 'echo x >>new; git add new; git commit -qm sub'
				for g in $(find . -mindepth 2 -name .git); do (cd "$(dirname "$g")"; git checkout -q -b mine; git commit -q --allow-empty -m nested; git log --format=%s -1
					! echo x 2>/dev/null >>"$(git rev-parse --git-dir)/config"; git rev-parse --show-toplevel); done`)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, p := range s.Places[1:] {
				if !strings.Contains(out, "nested\n/workspace/"+p.Repo.Path) {
					t.Errorf("%s: no commit of its own\n%s", p.Repo.Path, out)
				}
			}
			sh(t, ws, `find . -name new -delete`)
			if after := state(t, dir); after != before {
				t.Errorf("the host has changed\nbefore:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// TestIndexFollowsTheBranch: the agent's branch is ahead of the host's, whose
// index the sandbox's is made from.
func TestIndexFollowsTheBranch(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`echo b >b; mkdir .vscode; echo {} >.vscode/s.json; echo lock >lazaret.lock; git add -A; git commit -qm two
		git checkout -q -b lazaret/agent-claude; echo c >c; git rm -q b; git add c; git commit -qm agent; git checkout -q main
		git checkout -q lazaret/agent-claude -- c; git rm -q --cached c; rm -f b; echo staged >s; git add s; echo dirty >>a`)
	ws := dir + "/r"
	s := shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto", Covered: []string{".vscode", "lazaret.lock"}})
	out, err := inside(t, s, ws, dev, `git status --porcelain; mv lazaret.lock x; mv .vscode y; git commit -qam mine; git show --stat --format= HEAD
		git checkout -q main; git checkout -q -; mv x lazaret.lock; mv y .vscode`)
	// What the agent committed in the last session is there and not reverted;
	// what the host has staged is still to be added here; what is covered is
	// not deleted.
	if want := " M a\n?? s\n a | 1 +\n 1 file changed, 1 insertion(+)"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStagedIsThePersons: what the person has staged is in none of the agent's
// commits unless it adds that, and is staged on the host as before.
func TestStagedIsThePersons(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`echo secret >s; echo more >>a; git add s a; echo c >c`)
	ws := dir + "/r"
	before := sh(t, ws, "git diff --cached; sha1sum .git/index")
	s := shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto"})
	out, err := inside(t, s, ws, dev, `git status --porcelain; git add c; git commit -qm mine; git show --stat --format= HEAD`)
	if want := " M a\n?? c\n?? s\n c | 1 +\n 1 file changed, 1 insertion(+)"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
	if after := sh(t, ws, "git diff --cached; sha1sum .git/index"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// On the host's own branch it is what it is there.
	s = shadowOf(t, ws, Wish{Mode: Quarantine, Branch: ""})
	if out, err := inside(t, s, ws, dev, `git status --porcelain`); err != nil || out != "M  a\nA  s\n?? c" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStagedBeforeTheFirstCommit: nor is it where there is no commit yet: inside,
// such files are there and untracked.
func TestStagedBeforeTheFirstCommit(t *testing.T) {
	dir := tree(t)
	sh(t, dir, `git init -q r; cd r; echo secret >s; git add s; echo c >c`)
	ws := dir + "/r"
	before := sh(t, ws, "git ls-files --stage; sha1sum .git/index")
	s := shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto"})
	out, err := inside(t, s, ws, dev, `git status --porcelain; cat s; git add c; git commit -qm mine; git show --stat --format= HEAD; git status --porcelain`)
	if want := "?? c\n?? s\nsecret\n c | 1 +\n 1 file changed, 1 insertion(+)\n?? s"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
	if after := sh(t, ws, "git ls-files --stage; sha1sum .git/index"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	s = shadowOf(t, ws, Wish{Mode: Quarantine, Branch: ""})
	if out, err := inside(t, s, ws, dev, `git status --porcelain`); err != nil || out != "A  s\n?? c" {
		t.Errorf("on the host's own branch: %v\n%s", err, out)
	}
}

// TestNestedIndexIsNotRead: an agent can have made the nested repository, so
// git on the host reads nothing of it, and its split index works inside.
func TestNestedIndexIsNotRead(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`mkdir n; cd n; `+oneCommit+`git config core.splitIndex true; git update-index --split-index; test -e .git/sharedindex.*`)
	ws := dir + "/r"
	out, err := inside(t, shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto", Covered: []string{"n/r/a"}}), ws, dev, `cd n/r; git status --porcelain; git ls-files; echo x >>a; git commit -qam x`)
	if err != nil || out != "a" {
		t.Errorf("%v\n%s", err, out)
	}
	// What git would stop at is copied like any other.
	sh(t, ws, `echo garbage >n/r/.git/index`)
	shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto", Covered: []string{"n/r/a"}})
	// A directory on the way that became a link is not followed.
	r, err := Probe(ws, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, ws, `mv n ../n; ln -s ../n n`)
	base := t.TempDir()
	s, err := Plan(r, Wish{Profile: "claude", Mode: Quarantine, Branch: "auto", Size: 1 << 20}, base+"/s/0123456789ab", base+"/at")
	if err == nil {
		_, err = s.Prepare(t.Context(), Git{Program: gitProgram(t)})
	}
	if err == nil {
		t.Error("a link on the way was followed")
	}
}

// TestForwardOnlyWithoutLoss: the agent's branch is moved up to what is checked
// out, unless it has commits of its own.
func TestForwardOnlyWithoutLoss(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"behind", `git branch lazaret/agent-claude; git commit -q --allow-empty -m two`, "main"},
		{"ahead", `git checkout -q -b lazaret/agent-claude; git commit -q --allow-empty -m two; git checkout -q main`, "lazaret/agent-claude"},
		{"apart", `git checkout -q -b lazaret/agent-claude; git commit -q --allow-empty -m two; git checkout -q main; git commit -q --allow-empty -m three`, "lazaret/agent-claude"},
		{"packed", `git checkout -q -b lazaret/agent-claude; git commit -q --allow-empty -m two; git checkout -q main; git pack-refs --all`, "lazaret/agent-claude"},
		{"none", ``, "main"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			sh(t, dir, oneCommit+tt.script)
			ws := dir + "/r"
			want := sh(t, ws, "git rev-parse "+tt.want)
			out, err := inside(t, shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto"}), ws, dev, `git rev-parse lazaret/agent-claude; git status --porcelain`)
			if err != nil || out != want {
				t.Errorf("%v: %s, want %s", err, out, want)
			}
		})
	}
	dir := tree(t)
	sh(t, dir, oneCommit+`git branch lazaret`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Plan(r, Wish{Profile: "claude", Mode: Quarantine, Branch: "auto", Size: 1 << 20}, t.TempDir()+"/x", t.TempDir()+"/y")
	if err == nil {
		_, err = s.Prepare(t.Context(), Git{Program: gitProgram(t)})
	}
	if err == nil || !strings.Contains(err.Error(), `beside "lazaret"`) {
		t.Errorf("a branch in the way: %v", err)
	}
}

// TestNoFilterRuns: whatever a repository's own configuration and attributes
// say, and whatever state its index is in, preparing runs none of it.
func TestNoFilterRuns(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`echo '* filter=p diff=p' >.gitattributes; echo lock >lazaret.lock; git add -A; git commit -qm two; git checkout -q -b lazaret/agent-claude
		echo b >>a; git commit -qam three; git checkout -q main; git config core.splitIndex true; git update-index --split-index
		for k in filter.p.clean filter.p.smudge filter.p.process diff.p.textconv diff.external core.fsmonitor core.sshCommand core.pager; do git config $k "touch $PWD/../PWNED; cat"; done
		mkdir -p .git/hooks; for h in reference-transaction post-index-change post-checkout; do printf '#!/bin/sh\ntouch "%s"\n' "$PWD/../PWNED" >.git/hooks/$h; chmod +x .git/hooks/$h; done
		touch a lazaret.lock .gitattributes .git/index`)
	for _, mode := range []string{Quarantine, Writeback} {
		shadowOf(t, dir+"/r", Wish{Mode: mode, Branch: "auto", Covered: []string{"lazaret.lock"}})
	}
	if exists(dir + "/PWNED") {
		t.Error("preparing ran what the repository's configuration names")
	}
	// The control: git by itself does.
	sh(t, dir+"/r", "git status; git diff || :")
	if !exists(dir + "/PWNED") {
		t.Error("nothing would have run: the test shows nothing")
	}
}

// TestWriteback: the host's own objects, refs and logs, and nothing else of it.
func TestWriteback(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`git branch other; git pack-refs --all; git checkout -q -b loose; git checkout -q main; echo staged >s; git add s; echo x >>.git/info/exclude`)
	ws := dir + "/r"
	before := sh(t, ws, `cat .git/HEAD .git/config .git/info/exclude .git/packed-refs .git/logs/HEAD; sha1sum .git/index; ls -R .git/hooks .git/objects/info`)
	s := shadowOf(t, ws, Wish{Mode: Writeback, Branch: "auto"})
	out, err := inside(t, s, ws, dev, `
		echo inside >i; git add i; git commit -qm inside; git rev-parse HEAD
		git pack-refs --all 2>/dev/null && exit 1; git gc -q 2>/dev/null && exit 1; git branch -D other 2>/dev/null && exit 1
		echo /nowhere 2>/dev/null >.git/objects/info/alternates && exit 1; echo '!x' 2>/dev/null >>.git/info/exclude && exit 1
		printf '#!/bin/sh\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; rm .git/config; echo '[core] pager = evil' >.git/config; git worktree prune; git checkout -q loose; git checkout -q lazaret/agent-claude`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := sh(t, ws, "git rev-parse lazaret/agent-claude"); got != out {
		t.Errorf("the host has %s, the sandbox committed %s", got, out)
	}
	after := sh(t, ws, `cat .git/HEAD .git/config .git/info/exclude .git/packed-refs .git/logs/HEAD; sha1sum .git/index; ls -R .git/hooks .git/objects/info; git fsck --full 2>/dev/null`)
	if after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestWritebackWithoutInfo: git takes a repository without objects/info for
// one. A sandbox that could make it would name there what git is to read.
func TestWritebackWithoutInfo(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`rm -r .git/objects/info`)
	s := shadowOf(t, dir+"/r", Wish{Mode: Writeback, Branch: "auto"})
	out, err := inside(t, s, dir+"/r", dev, `
		mkdir -p .git/objects/info; echo /nowhere 2>/dev/null >.git/objects/info/alternates && exit 1
		rm -r .git/objects/info 2>/dev/null && exit 1; mv .git/objects/info .git/objects/x 2>/dev/null && exit 1; git commit -q --allow-empty -m inside`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if exists(dir + "/r/.git/objects/info/alternates") {
		t.Error("the host's git reads objects from where the sandbox says")
	}
}

// TestSettings: what the person's git says, not what lazaret's own calls pin.
func TestSettings(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`git config core.hooksPath ./.husky//_; git config user.name 'D "e" v'; mkdir ../home; printf '[user]\n\temail = d@example.org\n\tname = other\n[commit]\n\tgpgsign = yes\n' >../home/.gitconfig`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	g := Git{Program: gitProgram(t), GitDir: r.GitDir, Home: dir + "/home"}
	who, err := r.Settings(t.Context(), g)
	if err != nil || who != (Person{`D "e" v`, "d@example.org", true}) || r.HooksPath != ".husky/_" || !slices.Equal(r.Hookless, []string{".husky", ".husky/_"}) {
		t.Errorf("%+v, hooks in %q", who, r.HooksPath)
	}
	sh(t, dir+"/r", `git config --unset core.hooksPath; git config commit.gpgsign false; ln -s r ../by`)
	r.HooksPath = ""
	if who, err := r.Settings(t.Context(), g); err != nil || who.Signs || r.HooksPath != "" {
		t.Errorf("%+v, hooks in %q", who, r.HooksPath)
	}
	for value, want := range map[string]string{"/elsewhere": "", "..": "", ".git/hooks": "", dir + "/r/h": "h", "~/x": "", dir + "/by/h/i": "h/i"} {
		sh(t, dir+"/r", `git config core.hooksPath '`+value+`'`)
		r.HooksPath = ""
		if _, err := r.Settings(t.Context(), g); err != nil || r.HooksPath != want {
			t.Errorf("%s: hooks in %q, %v", value, r.HooksPath, err)
		}
	}
	// The links that some repositories ask everybody to make.
	for to, want := range map[string]string{"../hooks.d": "hooks.d", "../gone/x": "gone/x", "../../elsewhere": ""} {
		sh(t, dir+"/r", `git config --unset-all core.hooksPath || :; mkdir -p hooks.d ../elsewhere; rm -rf .git/hooks; ln -s '`+to+`' .git/hooks`)
		r.HooksPath = "before"
		if _, err := r.Settings(t.Context(), g); err != nil || r.HooksPath != want {
			t.Errorf(".git/hooks to %s: hooks in %q, %v", to, r.HooksPath, err)
		}
	}
	sh(t, dir+"/r", `rm .git/hooks; mkdir .git/hooks`)
	for _, value := range []string{".", "./", "../by"} {
		sh(t, dir+"/r", `git config core.hooksPath '`+value+`'`)
		if _, err := r.Settings(t.Context(), g); err == nil || !strings.Contains(err.Error(), "the workspace itself") {
			t.Errorf("%s: %v", value, err)
		}
	}
	sh(t, dir+"/r", `printf '[include]\n\tpath = bad\n' >>.git/config; echo '[x' >.git/bad`)
	if _, err := r.Settings(t.Context(), g); err == nil {
		t.Error("git cannot say where hooks are, and the agent could put some there")
	}
	sh(t, dir+"/r", `rm .git/bad`)
	sh(t, dir+"/r", `git config core.hooksPath hooks/x; ln -s /tmp hooks`)
	if _, err := r.Settings(t.Context(), g); err == nil || !strings.Contains(err.Error(), `by way of "hooks"`) {
		t.Errorf("by a link: %v", err)
	}
}

// TestNestedHooks: of those that lie in the working tree, the agent writes none.
func TestNestedHooks(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`mkdir -p own persons/.githooks none; for d in own persons none; do (cd $d; git init -q); done
		git -C own config core.hooksPath .husky/_; git -C none config core.hooksPath /elsewhere; mkdir ../home; git config -f ../home/.gitconfig core.hooksPath .githooks; git config core.hooksPath h`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Settings(t.Context(), Git{Program: gitProgram(t), GitDir: r.GitDir, Home: dir + "/home"}); err != nil {
		t.Fatal(err)
	}
	paths, missing := r.Hooks()
	if !slices.Equal(paths, []string{"h", "own/.husky/_", "persons/.githooks"}) || !slices.Equal(missing, []string{"h", "own/.husky", "own/.husky/_"}) {
		t.Errorf("hooks in %q, of which there are not %q", paths, missing)
	}
}

// TestNestedHooksIncluded: what a nested repository's config includes, on whatever
// condition, counts; and where only one of two places could be kept from the
// agent, that is refused.
func TestNestedHooksIncluded(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`mkdir -p own/one own/two; for d in own own/one own/two; do git init -q $d; done
		git -C own config core.hooksPath /elsewhere; git -C own config --add include.path more; git -C own config --add include.path gone
		printf '[includeIf "onbranch:x"]\n\tpath = ../deep\n' >own/.git/more; printf '[core]\n\thooksPath = hooks.d\n' >own/deep
		git -C own/one config includeIf.gitdir:/.path '~/included'; mkdir ../home; printf '[core]\n\thooksPath = h\n' >../home/included; mkfifo own/two/.git/pipe; git -C own/two config include.path pipe`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	g := Git{Program: gitProgram(t), GitDir: r.GitDir, Home: dir + "/home"}
	if _, err := r.Settings(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if paths, _ := r.Hooks(); !slices.Equal(paths, []string{"own/hooks.d", "own/one/h"}) {
		t.Errorf("hooks in %q", paths)
	}
	sh(t, dir+"/r", `git -C own config core.hooksPath other`)
	if _, err := r.Settings(t.Context(), g); err == nil || !strings.Contains(err.Error(), "only one of them") {
		t.Errorf("two places: %v", err)
	}
	sh(t, dir+"/r", `printf '[include]\n\tpath = more\n\tpath = more\n' >own/.git/more`)
	if _, err := r.Settings(t.Context(), g); err == nil || !strings.Contains(err.Error(), "more than a hundred") {
		t.Errorf("without an end: %v", err)
	}
}

// TestHookLinks: a file of the working tree that a hook is a link to is as good as
// the hook.
func TestHookLinks(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`mkdir -p scripts h own; echo >scripts/check; git init -q own; rm -rf own/.git/hooks; mkdir -p own/.git/hooks .git/hooks; cd .git/hooks
		ln -s ../../scripts/check pre-commit; ln -s ../../scripts/gone post-commit; ln -s "$PWD/../../../outside" pre-push; ln -s ../config update; echo >post-merge
		ln -s ../../../scripts/check ../../own/.git/hooks/pre-commit; ln -s ../../a ../../own/.git/hooks/post-commit; ln -s ../scripts/other ../../h/pre-commit`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	g := Git{Program: gitProgram(t), GitDir: r.GitDir, Home: dir + "/home"}
	for _, tt := range []struct {
		hooks string
		want  [2]string
	}{{"", [2]string{"scripts/check", "own/a,scripts/gone"}}, {"h", [2]string{"", "scripts/other"}}} { // in this order: own stays set
		hooks, want := tt.hooks, tt.want
		sh(t, dir+"/r", `git config --unset core.hooksPath || :; if [ -n '`+hooks+`' ]; then git config core.hooksPath '`+hooks+`'; git -C own config core.hooksPath /elsewhere; fi`)
		if _, err := r.Settings(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if files, gone := r.HookLinks(); strings.Join(files, ",") != want[0] || strings.Join(gone, ",") != want[1] {
			t.Errorf("core.hooksPath %q: %q, and not there %q", hooks, files, gone)
		}
	}
}

// TestPointersStayPointers: files that a filter of the person's own stands
// behind are not seen as changed where there is no such filter.
func TestPointersStayPointers(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`echo '*.bin filter=lfs' >.gitattributes; git config filter.lfs.clean 'sed s/content/pointer/'; git config filter.lfs.smudge 'sed s/pointer/content/'
		echo content >x.bin; touch -d '1 hour ago' x.bin; git add -A; git commit -qm two; git show HEAD:x.bin | grep pointer; grep content x.bin; git config --remove-section filter.lfs`)
	ws := dir + "/r"
	out, err := inside(t, shadowOf(t, ws, Wish{Mode: Quarantine, Branch: "auto"}), ws, dev, `git status --porcelain; echo more >>a; git commit -qam more; git show HEAD:x.bin`)
	if err != nil || out != "pointer" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestManyNested: there is room for so many, and the rest is said.
func TestManyNested(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8; do mkdir -p $i/$j; cp -r .git $i/$j/.git; done; done`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil || !r.Unseen || len(r.Nested) < 40 {
		t.Errorf("%d nested, the rest unseen: %v, %v", len(r.Nested), r.Unseen, err)
	}
	s, err := Plan(r, Wish{Profile: "claude", Mode: Quarantine, Size: 1 << 20}, "/s/0123456789ab", "/at")
	if n := len(s.Mounts()); err != nil || n > 150 {
		t.Errorf("%d mounts, %v", n, err)
	}
	if _, err := Plan(r, Wish{Profile: "claude", Mode: Writeback, Size: 1 << 20}, "/s/0123456789ab", "/at"); err == nil {
		t.Error("write-back to so many was not refused")
	}
}
