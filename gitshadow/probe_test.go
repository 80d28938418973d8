package gitshadow

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sh runs a shell script with real git and nobody's settings, in dir.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	c := exec.Command("sh", "-euc", script)
	c.Dir = dir
	c.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Dev", "GIT_AUTHOR_EMAIL=dev@example.org", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Dev", "GIT_COMMITTER_EMAIL=dev@example.org", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main",
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// tree is a directory for repositories, without symlinks in its path.
func tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const oneCommit = `git init -q r; cd r; echo a >a; git add a; git commit -qm first; `

// kinds is every kind of repository a person can have, by what makes it, in a
// directory of its own, and what a probe of one working tree says of it.
var kinds = []struct {
	name, make, ws string
	want           func(dir string, r Repo) bool
}{
	{"plain", oneCommit, "r", func(dir string, r Repo) bool {
		return r.Kind == Dir && r.GitDir == dir+"/r/.git" && r.CommonDir == r.GitDir && r.Head == "refs/heads/main" && len(r.HeadID) == 40 &&
			!r.Unborn && !r.Detached && r.ObjectFormat == "sha1" && r.RefFormat == "files" && !r.Shallow && !r.Sparse && len(r.Nested) == 0
	}},
	{"packed", oneCommit + `git pack-refs --all; git gc -q`, "r", func(dir string, r Repo) bool { return len(r.HeadID) == 40 && !r.Unborn }},
	{"unborn", `git init -q r`, "r", func(dir string, r Repo) bool { return r.Unborn && r.Head == "refs/heads/main" && r.HeadID == "" }},
	{"detached", oneCommit + `git checkout -q --detach`, "r", func(dir string, r Repo) bool { return r.Detached && r.Head == "" && len(r.HeadID) == 40 }},
	{"sha256", `git init -q --object-format=sha256 r; cd r; git commit -qm x --allow-empty`, "r", func(dir string, r Repo) bool {
		return r.ObjectFormat == "sha256" && len(r.HeadID) == 64
	}},
	{"none", `mkdir r`, "r", func(dir string, r Repo) bool { return r.Kind == None }},
	{"subdirectory", oneCommit + `mkdir -p x/y`, "r/x/y", func(dir string, r Repo) bool { return r.Kind == Above && r.Prefix == "x/y" }},
	{"linked working tree", oneCommit + `git worktree add -q ../wt`, "wt", func(dir string, r Repo) bool {
		return r.Kind == Worktree && r.GitDir == dir+"/r/.git/worktrees/wt" && r.CommonDir == dir+"/r/.git" && r.Head == "refs/heads/wt"
	}},
	{"linked working tree, relative", oneCommit + `git worktree add -q ../wt; echo 'gitdir: ../r/.git/worktrees/wt' >../wt/.git; echo ../../../../wt/.git >.git/worktrees/wt/gitdir`, "wt",
		func(dir string, r Repo) bool { return r.Kind == Worktree && r.CommonDir == dir+"/r/.git" }},
	{"linked working tree of a bare repository", oneCommit + `cd ..; git clone -q --bare r b.git; git -C b.git worktree add -q ../wt`, "wt",
		func(dir string, r Repo) bool { return r.Kind == Worktree && r.CommonDir == dir+"/b.git" }},
	{"submodule", oneCommit + `cd ..; git init -q top; cd top; git submodule -q add ../r lib; git commit -qm sub`, "top", func(dir string, r Repo) bool {
		return r.Kind == Dir && len(r.Nested) == 1 && r.Nested[0].Kind == Submodule && r.Nested[0].Path == "lib" && r.Nested[0].Name == "lib" &&
			r.Nested[0].GitDir == dir+"/top/.git/modules/lib" && r.Nested[0].Head == "refs/heads/main"
	}},
	{"in a submodule", oneCommit + `cd ..; git init -q top; cd top; git submodule -q add ../r lib; git commit -qm sub`, "top/lib",
		func(dir string, r Repo) bool { return r.Kind == Submodule && r.GitDir == dir+"/top/.git/modules/lib" }},
	{"submodules in one another", oneCommit + `cd ..; git init -q mid; cd mid; git submodule -q add ../r deep/lib; git commit -qm sub; cd ..
		git init -q top; cd top; git submodule -q add ../mid m; git submodule -q update --init --recursive; git commit -qm sub`, "top", func(dir string, r Repo) bool {
		return len(r.Nested) == 2 && r.Nested[0].Path == "m" && r.Nested[1].Path == "m/deep/lib" && r.Nested[1].Name == "deep/lib" &&
			r.Nested[1].GitDir == dir+"/top/.git/modules/m/modules/deep/lib"
	}},
	{"nested", oneCommit + `mkdir -p x; cd x; ` + oneCommit, "r", func(dir string, r Repo) bool {
		return len(r.Nested) == 1 && r.Nested[0].Kind == Dir && r.Nested[0].Path == "x/r"
	}},
	{"shallow", oneCommit + `git commit -qm two --allow-empty; cd ..; git clone -q --depth 1 file://$PWD/r s`, "s", func(dir string, r Repo) bool { return r.Shallow }},
	{"partial", oneCommit + `git config uploadpack.allowFilter true; cd ..; git clone -q --filter=blob:none file://$PWD/r p`, "p", func(dir string, r Repo) bool { return r.Partial }},
	{"sparse", oneCommit + `mkdir d; echo >d/x; git add d; git commit -qm d; git sparse-checkout set --cone`, "r", func(dir string, r Repo) bool {
		return r.Sparse && r.WorktreeConfig
	}},
	{"borrowed objects", oneCommit + `cd ..; git clone -qs r s`, "s", func(dir string, r Repo) bool { return slices.Equal(r.Alternates, []string{dir + "/r/.git/objects"}) }},
	{"config.worktree", oneCommit + `git config extensions.worktreeConfig true; git config --worktree core.sparseCheckout true`, "r",
		func(dir string, r Repo) bool { return r.WorktreeConfig && r.Sparse }},
	{"odd path", `mkdir 'a b
c'; cd 'a b
c'; ` + oneCommit, "a b\nc/r", func(dir string, r Repo) bool { return r.Kind == Dir && len(r.HeadID) == 40 }},
}

func TestProbeKinds(t *testing.T) {
	for _, tt := range kinds {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			sh(t, dir, tt.make)
			r, err := Probe(filepath.Join(dir, tt.ws), os.Getuid())
			if err != nil {
				t.Fatal(err)
			}
			if !tt.want(dir, r) {
				t.Errorf("got %+v", r)
			}
			if r.HeadID != "" {
				if head := sh(t, r.Workspace, "git rev-parse HEAD"); head != r.HeadID {
					t.Errorf("HEAD is %s, git says %s", r.HeadID, head)
				}
			}
		})
	}
}

// TestProbeRefuses: a repository that was made to have the sandbox given
// something else.
func TestProbeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, make, ws, want string }{
		{"a file that names somebody's repository", oneCommit + `mkdir ../ws; echo "gitdir: $PWD/.git" >../ws/.git`, "ws", "does not say that this is its working tree"},
		{"a file that names somebody's working tree", oneCommit + `git worktree add -q ../wt; mkdir ../ws; cp ../wt/.git ../ws/.git`, "ws", "does not say that this is its working tree"},
		{"a working tree with a planted common directory", oneCommit + `git worktree add -q ../wt; git init -q --bare ../secret; mkdir -p ../evil/worktrees; cp -r .git/worktrees/wt ../evil/worktrees/
			cd ..; echo "gitdir: $PWD/evil/worktrees/wt" >wt/.git; echo $PWD/secret >evil/worktrees/wt/commondir`, "wt", "does not say that this is its working tree"},
		{"a git directory with a common directory", oneCommit + `echo ../../secret >.git/commondir`, "r", "which no git makes"},
		{"core.worktree elsewhere", oneCommit + `git config core.worktree /`, "r", "core.worktree = "},
		{"core.worktree elsewhere, by config.worktree", oneCommit + `git config extensions.worktreeConfig true; git config --worktree core.worktree ../..`, "r", "core.worktree = "},
		{"objects elsewhere", oneCommit + `mv .git/objects ../o; ln -s ../../o .git/objects`, "r", "is a link"},
		{"refs elsewhere", oneCommit + `mv .git/refs ../o; ln -s ../../o .git/refs`, "r", "is a link"},
		{"logs elsewhere", oneCommit + `mv .git/logs ../o; ln -s ../../o .git/logs`, "r", "is a link"},
		{"packed-refs elsewhere", oneCommit + `git pack-refs --all; mv .git/packed-refs ../o; ln -s ../../o .git/packed-refs`, "r", "is a link"},
		{"HEAD a pipe", oneCommit + `rm .git/HEAD; mkfifo .git/HEAD`, "r", "is a link"},
		{"config a link", oneCommit + `rm .git/config; ln -s /dev/zero .git/config`, "r", "is a link"},
		{"a link", oneCommit + `mkdir ../ws; ln -s ../r/.git ../ws/.git`, "ws", "neither a directory nor a file"},
		{"bare", `git init -q --bare r`, "r", "is itself a git directory"},
		{"bare beside", oneCommit + `cd ..; mkdir p; git clone -q --bare r p/.bare; echo "gitdir: ./.bare" >p/.git; git -C p/.bare config core.worktree ..`, "p", "lies in the workspace"},
		{"alternates that are not there", oneCommit + `echo /nowhere >.git/objects/info/alternates`, "r", "borrows objects"},
		{"a ref that is a pipe", oneCommit + `rm .git/refs/heads/main; mkfifo .git/refs/heads/main`, "r", "not a regular file"},
		{"a ref out of the repository", oneCommit + `echo "ref: refs/../../../secret" >.git/HEAD`, "r", "no branch"},
		{"not a repository", `mkdir -p r/.git; echo >r/.git/x`, "r", "not a git repository"},
		{"config that is none", oneCommit + `echo '[core' >.git/config`, "r", "not a git config file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			sh(t, dir, tt.make)
			_, err := Probe(filepath.Join(dir, tt.ws), os.Getuid())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	dir := tree(t)
	sh(t, dir, oneCommit)
	_, err := Probe(dir+"/r", os.Getuid()+1)
	var re *RefusedError
	if !errors.As(err, &re) || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("another's repository: %v", err)
	}
}

// TestProbeNestedHostile: what is wrong further down is masked, not shown.
func TestProbeNestedHostile(t *testing.T) {
	dir := tree(t)
	sh(t, dir, `git init -q secret; `+oneCommit+`
		mkdir w x y z; echo "gitdir: ../../secret/.git" >w/.git
		git init -q x/bare --bare; echo "gitdir: ./bare" >x/.git; git -C x/bare config core.bare false; git -C x/bare config core.worktree ..
		git init -q y; rm -r y/.git/objects; ln -s ../../../secret/.git/objects y/.git/objects
		ln -s ../../secret/.git z/.git`)
	r, err := Probe(dir+"/r", os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range r.Nested {
		got = append(got, n.Path+": "+n.Kind.String())
	}
	if want := []string{"w: no repository", "x: no repository", "y: no repository"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestParseConfig(t *testing.T) {
	got, err := parseConfig("\ufeff[core]\n\tbare = false ; no\n worktree = \"a b\" c\\\n d # x\n[Remote \"O.r\\\"i\"] url=x\ty \n[a.B]k\nflag\n[e \"\"]x=")
	want := settings{"core.bare": "false", "core.worktree": "a b c d", `remote.O.r"i.url`: "x y", "a.b.k": "true", "a.b.flag": "true", "e..x": ""}
	if err != nil || len(got) != len(want) {
		t.Errorf("got %q, %v", got, err)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %q, want %q", k, got[k], v)
		}
	}
	for _, bad := range []string{"[core", "x=1", "[a]\n=1", "[a]\nx = \"", "[a \"b]\n", "[a]\nx=\\q"} {
		if _, err := parseConfig(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// FuzzParseConfig: whatever git can list, the parser reads the same.
func FuzzParseConfig(f *testing.F) {
	f.Add("[core]\n\tworktree = ../x\n")
	f.Add("[a \"b\"]\nx=1 \\\n 2\n;c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseConfig(text); err == nil && s == nil {
			t.Error("neither settings nor an error")
		}
	})
}
