package guard

import (
	"slices"
	"strings"
	"testing"
)

// TestKinds: each thing that is found, in a tree of its own; and what is next
// to it and is not.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing", map[string]string{"a/b": "x", ".editorconfig": "root = true", "Makefile": "all:", ".nvmrc": "24", ".git/": "", "x/.git/HEAD": "x"}, nil},
		{"what runs when something is started or opened here", map[string]string{"a/.Rprofile": "x", ".helix/languages.toml": "x", "b/.pylintrc": "x", ".terraform/providers/x": "x", "c/eslint.config.mjs": "x", "d/.eslintrc.json": "x"}, []string{
			"note tool c/eslint.config.mjs", "warning tool .helix/languages.toml", "warning tool .terraform/providers/x", "warning tool a/.Rprofile", "warning tool b/.pylintrc"}},
		{"a nested repository", repo("sub/.git", ""), []string{"note repository sub/.git"}},
		{"one with a program", repo("sub/.git", "\tfsmonitor = id\n"), []string{
			"danger git-config sub/.git/config: core.fsmonitor = id", "note repository sub/.git"}},
		{"git's own monitor", repo("sub/.git", "\tfsmonitor = true\n"), []string{"note repository sub/.git"}},
		{"at the top", repo(".git", "\thooksPath = hooks.d\n"), []string{
			"danger git-config .git/config: core.hookspath = hooks.d", "note repository .git"}},
		{"a look-alike", repo("deep/er/lib", "\tpager = id\n[alias]\n\tx = !id\n\ty = log\n"), []string{
			"danger git-config deep/er/lib/config: alias.x = !id", "danger git-config deep/er/lib/config: core.pager = id",
			"note repository deep/er/lib: without a .git: the directory itself"}},
		{"a look-alike by commondir", map[string]string{"x/HEAD": "ref: refs/heads/m", "x/commondir": "/elsewhere/.git"}, []string{
			"danger git-config x/commondir: /elsewhere/.git", "note repository x: without a .git: the directory itself"}},
		{"inside a look-alike", join(repo("x", ""), map[string]string{"x/.envrc": "id", "x/y/.mcp.json": "{}"}), []string{
			"danger tool x/.envrc", "danger tool x/y/.mcp.json", "note repository x: without a .git: the directory itself"}},
		{"a file that leads elsewhere", map[string]string{"sub/.git": "gitdir: /home/u/private/.git\n"}, []string{"danger repository sub/.git: gitdir: /home/u/private/.git"}},
		{"a worktree that was added inside", map[string]string{"wt/.git": "gitdir: /workspace/.git/worktrees/wt\n", "x/.git": "gitdir: /workspace/../home/u/.git\n"}, []string{"danger repository x/.git: gitdir: /workspace/../home/u/.git", "warning repository wt/.git: gitdir: /workspace/.git/worktrees/wt"}},
		{"a file that leads up", map[string]string{"sub/.git": "gitdir: ../../x\n"}, []string{"danger repository sub/.git: gitdir: ../../x"}},
		{"a submodule's", join(repo(".git", ""), repo(".git/modules/a/b", "\tworktree = ../../../../a/b\n\tsshCommand = id\n"), map[string]string{"a/b/.git": "gitdir: ../../.git/modules/a/b\n"}), []string{
			"danger git-config .git/modules/a/b/config: core.sshcommand = id", "note repository .git", "note repository a/b/.git: gitdir: ../../.git/modules/a/b"}},
		{"the work tree elsewhere", repo("s/.git", "\tworktree = /home/u\n"), []string{"danger git-config s/.git/config: core.worktree = /home/u", "note repository s/.git"}},
		{"a worktree's own", join(repo(".git", ""), map[string]string{".git/worktrees/w/HEAD": "x", ".git/worktrees/w/commondir": "../..\n", ".git/worktrees/w/config.worktree": "[core]\neditor=id"}), []string{
			"danger git-config .git/worktrees/w/config.worktree: core.editor = id", "note repository .git"}},
		{"a link for .git", map[string]string{"sub/.git": "-> /home/u/.git"}, []string{"danger repository sub/.git: symlink to /home/u/.git"}},
		{"hooks", join(repo("s/.git", ""), map[string]string{"s/.git/hooks/pre-commit": "#!id", "s/.git/hooks/update": "not executable", "s/.git/hooks/x.sample": "#!id"}), []string{
			"danger hook s/.git/hooks/pre-commit", "note repository s/.git"}},
		{"hooks in the tree", join(repo(".git", "\thooksPath = ci/hooks\n"), map[string]string{"ci/hooks/pre-push": "#!id"}), []string{
			"danger git-config .git/config: core.hookspath = ci/hooks", "danger hook ci/hooks/pre-push", "note repository .git"}},
		{"a program in the tree", join(repo(".git", "\tfsmonitor = ./ci/watch.sh\n"), map[string]string{"ci/watch.sh": "#!id"}), []string{
			"danger git-config .git/config: core.fsmonitor = ./ci/watch.sh", "danger program ci/watch.sh: core.fsmonitor", "note repository .git"}},
		{"included from the tree", join(repo(".git", "[include]\n\tpath = ../.gitconfig\n"), map[string]string{".gitconfig": "[diff]\n\texternal = id\n"}), []string{
			"danger git-config .git/config: include.path = ../.gitconfig", "danger git-config .gitconfig: diff.external = id", "note repository .git"}},
		{"a link for the config", join(repo("s/.git", ""), map[string]string{"s/.git/config.worktree": "-> ../../c", "c": "[pager]\n\tlog = id"}), []string{
			"danger git-config s/.git/config.worktree: pager.log = id", "danger link s/.git/config.worktree: ../../c", "note repository s/.git"}},
		{"alternates", join(repo("s/.git", ""), map[string]string{"s/.git/objects/info/alternates": "/home/u/secret/.git/objects\n"}), []string{
			"note repository s/.git", "warning alternates s/.git/objects/info/alternates: /home/u/secret/.git/objects"}},
		{"links in refs, logs, objects", join(repo("s/.git", ""), map[string]string{"s/.git/refs/heads/x": "-> /dev/tty", "s/.git/logs/refs/heads/y": "-> /home/u/.bashrc", "s/.git/objects/aa": "-> /etc", "s/.git/objects/bb/x": "-> y"}), []string{
			"danger link s/.git/logs/refs/heads/y: /home/u/.bashrc", "danger link s/.git/objects/aa: /etc", "danger link s/.git/objects/bb/x: y", "danger link s/.git/refs/heads/x: /dev/tty", "note repository s/.git"}},
		{"names of refs", join(repo("s/.git", ""), map[string]string{"s/.git/refs/heads/;x$(id)": "0", "s/.git/refs/heads/fine-é_1.2": "0", "s/.git/packed-refs": "# pack-refs\n0 refs/heads/ok\n0 refs/tags/`id`\n0 refs/replace/00\n^0\n", "s/.git/refs/heads/-x/y": "0"}), []string{
			"note repository s/.git", "warning ref s/.git/packed-refs: refs/replace/00", "warning ref s/.git/packed-refs: refs/tags/`id`", "warning ref s/.git/refs/heads/-x: refs/heads/-x", "warning ref s/.git/refs/heads/;x$(id): refs/heads/;x$(id)"}},
		{"a replaced object", join(repo("s/.git", ""), map[string]string{"s/.git/refs/replace/abc": "0"}), []string{"note repository s/.git", "warning ref s/.git/refs/replace/abc: refs/replace/abc"}},
		{"a rebase with commands", join(repo("s/.git", ""), map[string]string{"s/.git/rebase-merge/git-rebase-todo": "pick abc\nexec id > x\n"}), []string{
			"danger todo s/.git/rebase-merge/git-rebase-todo: id > x", "note repository s/.git"}},
		{"locks", join(repo("s/.git", ""), map[string]string{"s/.git/index.lock": "", "s/.git/refs/heads/m.lock": ""}), []string{
			"note lock s/.git/index.lock", "note lock s/.git/refs/heads/m.lock", "note repository s/.git"}},
		{"submodules", map[string]string{".gitmodules": "[submodule \"a\"]\n\tpath = a\n\turl = https://example.com/a\n[submodule \"../../x\"]\n\tpath = x\n\turl = ext::sh -c id\n[submodule \"b\"]\n\tpath = .git/hooks\n\tupdate = !id\n\turl = /home/u/x\n"}, []string{
			"danger submodules .gitmodules: submodule.../../x.path = x", "danger submodules .gitmodules: submodule.../../x.url = ext::sh -c id", "danger submodules .gitmodules: submodule.b.path = .git/hooks",
			"danger submodules .gitmodules: submodule.b.update = !id", "warning submodules .gitmodules: submodule.b.url = /home/u/x"}},
		{"attributes", map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n*.c diff=cpp eol=lf\n*.x filter=p\n# * filter=q\n"}, []string{
			"note attributes .gitattributes: diff=lfs", "note attributes .gitattributes: filter=lfs", "note attributes .gitattributes: merge=lfs", "warning attributes .gitattributes: filter=p"}},
		{"links", map[string]string{"in": "-> a/b", "a/b": "x", "a/up": "-> ../in", "out": "-> /home/u/.ssh", "rel": "-> ../x", "sys": "-> /usr/bin/python3", "ws": "-> /workspace/a", "dangling": "-> nowhere", "s/t/top": "-> ../..", "chain": "-> s/t/top/../x"}, []string{
			"note link sys: /usr/bin/python3", "note link ws: /workspace/a", "warning link chain: s/t/top/../x", "warning link out: /home/u/.ssh", "warning link rel: ../x"}},
		{"special files", map[string]string{"fifo": "|", ".envrc": "|", ".vscode/tasks.json": "|"}, []string{
			"warning special .envrc: named pipe", "warning special .vscode/tasks.json: named pipe", "warning special fifo: named pipe"}},
		{"credentials", repo(".git", "[remote \"o\"]\n\turl = https://me:s3cret@example.com/x\n[http \"https://x\"]\n\textraHeader = AUTHORIZATION: basic abc\n"), []string{
			"note credentials .git/config: http.https://x.extraheader", "note credentials .git/config: remote.o.url", "note repository .git"}},
		{"lazaret's own", map[string]string{"lazaret.toml": "", "lazaret.lock": "", "sub/lazaret.toml": "", "sub/lazaret.lock": ""}, []string{
			"warning lazaret sub/lazaret.lock", "warning lazaret sub/lazaret.toml"}},
		{"only at the top", map[string]string{".github/workflows/x.yml": "", "sub/.github/workflows/x.yml": "", ".gitlab-ci.yml": "", "sub/.gitlab-ci.yml": "", ".github/ISSUE.md": ""}, []string{
			"warning tool .github/workflows/x.yml", "warning tool .gitlab-ci.yml"}},
		{"at the top of a nested repository", join(repo("s/.git", ""), map[string]string{"s/.github/workflows/x.yml": "", "s/.gitlab-ci.yml": ""}), []string{
			"note repository s/.git", "warning tool s/.github/workflows/x.yml", "warning tool s/.gitlab-ci.yml"}},
		{"what packages bring", map[string]string{"node_modules/x/.vscode/tasks.json": "", "node_modules/x/.npmrc": ""}, []string{
			"note tool node_modules/x/.npmrc", "note tool node_modules/x/.vscode/tasks.json"}},
		{"an interpreter", map[string]string{".venv/bin/python": "#!id", "venv/bin/python3": "-> /usr/bin/python3", "env/bin/python": "-> ../../x", "x": "#!id", "bin/python": "#!id"}, []string{
			"danger program .venv/bin/python", "danger program env/bin/python", "note link venv/bin/python3: /usr/bin/python3"}},
		{"tools by a link", map[string]string{".envrc": "-> x", "x": "id", ".vscode": "-> ed", "ed/tasks.json": "{}", ".npmrc": "-> /home/u/n", ".cargo": "-> /home/u/c"}, []string{
			"danger tool .envrc", "danger tool .vscode/tasks.json", "warning link .cargo: /home/u/c", "warning link .npmrc: /home/u/n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scan(t, tree(t, tt.files))
			got := lines(s.Findings)
			slices.Sort(got)
			if !slices.Equal(got, tt.want) || len(s.Gaps) > 0 {
				t.Errorf("got\n%s\nwant\n%s\ngaps %v", strings.Join(got, "\n"), strings.Join(tt.want, "\n"), s.Gaps)
			}
		})
	}
}

// TestRules: each rule finds the file it is about, and says who acts on it.
func TestRules(t *testing.T) {
	fill := strings.NewReplacer("**", "file", "y*ml", "yml", "*", "x")
	for i := range rules {
		r := &rules[i]
		name := fill.Replace(r.name)
		at := "deep/" + name
		if r.top {
			at = name
		}
		got := scan(t, tree(t, map[string]string{at: "x"})).Findings
		if len(got) != 1 || got[0].Severity != r.severity || got[0].Why != r.why() || got[0].Repair != Aside {
			t.Errorf("%s: %+v", at, got)
		}
		if strings.TrimSpace(r.tool) == "" || strings.TrimSpace(r.does) == "" {
			t.Errorf("%s: no reason", r.name)
		}
	}
}
