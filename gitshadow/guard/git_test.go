package guard

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// git runs the machine's git, with nothing of the person's who runs the tests.
func git(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "EDITOR=false",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_ALLOW_PROTOCOL=ext:file:ssh:https", "PAGER=cat")
	c.Stdin = strings.NewReader("protocol=https\nhost=example.com\n\n")
	if len(args) > 0 && args[0] == "on a terminal" {
		c.Args = slices.Delete(c.Args, 1, 2)
		c.Stdin = nil
		tty, err := pty.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		defer tty.Close()
		out, _ := io.ReadAll(tty)
		return string(out), c.Wait()
	}
	out, err := c.CombinedOutput()
	return string(out), err
}

func must(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// TestGitRuns: what an agent can plant, and the ordinary command of a person
// that then runs it on the host. First the attack must work; then everything
// that made it work must have been found, as new, before anybody ran git.
func TestGitRuns(t *testing.T) {
	plant := func(dir string, run ...string) func(t *testing.T, ws, pwned string) {
		return func(t *testing.T, ws, pwned string) {
			d := filepath.Join(ws, dir)
			os.MkdirAll(d, 0o755)
			must(t, d, "init", "-q", "-b", "main")
			os.WriteFile(filepath.Join(d, "f"), []byte("x\n"), 0o644)
			must(t, d, "add", "f")
			must(t, d, "commit", "-qm", "x")
			os.WriteFile(filepath.Join(d, "f"), []byte("y\n"), 0o644)
			for i := 0; i+1 < len(run); i += 2 {
				must(t, d, "config", run[i], strings.NewReplacer("PWNFILE", pwned, "PWN", "touch "+pwned).Replace(run[i+1]))
			}
		}
	}
	hook := func(dir, name string) func(t *testing.T, ws, pwned string) {
		return func(t *testing.T, ws, pwned string) {
			plant(dir)(t, ws, pwned)
			grow(t, ws, map[string]string{filepath.Join(dir, ".git/hooks", name): "#!/bin/sh\ntouch " + pwned + "\n"})
		}
	}
	for _, tt := range []struct {
		name  string
		plant func(t *testing.T, ws, pwned string)
		dir   string   // where the person is
		run   []string // what they type
		want  string   // among what was found
	}{
		{"fsmonitor", plant("sub", "core.fsmonitor", "PWN; true"), "sub", []string{"status"}, "danger git-config sub/.git/config: core.fsmonitor"},
		{"a filter", func(t *testing.T, ws, pwned string) {
			plant("sub", "filter.p.clean", "PWN; cat")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/.gitattributes": "f filter=p\n"})
		}, "sub", []string{"status"}, "danger git-config sub/.git/config: filter.p.clean"},
		{"the filter's attributes", func(t *testing.T, ws, pwned string) {
			plant("sub", "filter.p.clean", "PWN; cat")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/.gitattributes": "f filter=p\n"})
		}, "sub", []string{"diff"}, "warning attributes sub/.gitattributes: filter=p"},
		{"external diff", plant("sub", "diff.external", "PWN; true"), "sub", []string{"diff"}, "danger git-config sub/.git/config: diff.external"},
		{"the pager", plant("sub", "core.pager", "PWN; cat"), "sub", []string{"on a terminal", "log"}, "danger git-config sub/.git/config: core.pager"},
		{"one command's pager", plant("sub", "pager.log", "PWN; cat"), "sub", []string{"on a terminal", "log"}, "danger git-config sub/.git/config: pager.log"},
		{"an alias", plant("sub", "alias.st", "!PWN"), "sub", []string{"st"}, "danger git-config sub/.git/config: alias.st"},
		{"an alias with -c", plant("sub", "alias.st", "-c core.fsmonitor='PWN; true' status"), "sub", []string{"st"}, "danger git-config sub/.git/config: alias.st"},
		{"hooksPath", func(t *testing.T, ws, pwned string) {
			plant("sub", "core.hooksPath", "h")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/h/pre-commit": "#!/bin/sh\ntouch " + pwned + "\n"})
		}, "sub", []string{"commit", "-qam", "x"}, "danger hook sub/h/pre-commit"},
		{"a hook", hook("sub", "post-checkout"), "sub", []string{"checkout", "-qb", "x"}, "danger hook sub/.git/hooks/post-checkout"},
		{"ssh", plant("sub", "core.sshCommand", "PWN;", "remote.origin.url", "ssh://example.invalid/x"), "sub", []string{"fetch"}, "danger git-config sub/.git/config: core.sshcommand"},
		{"a url that runs", plant("sub", "remote.origin.url", "ext::touch PWNFILE"), "sub", []string{"fetch"}, "danger git-config sub/.git/config: remote.origin.url"},
		{"uploadpack", plant("sub", "remote.origin.url", ".", "remote.origin.uploadpack", "PWN; git-upload-pack"), "sub", []string{"fetch"}, "danger git-config sub/.git/config: remote.origin.uploadpack"},
		{"credential helper", plant("sub", "remote.origin.url", "https://127.0.0.1:1/x", "credential.helper", "!PWN;"), "sub", []string{"credential", "fill"}, "danger git-config sub/.git/config: credential.helper"},
		{"the editor", plant("sub", "core.editor", "PWN;"), "sub", []string{"commit", "-a"}, "danger git-config sub/.git/config: core.editor"},
		{"gpg", func(t *testing.T, ws, pwned string) {
			plant("sub", "gpg.program", ws+"/x", "commit.gpgsign", "true")(t, ws, pwned)
			grow(t, ws, map[string]string{"x": "#!/bin/sh\ntouch " + pwned + "\n"})
		}, "sub", []string{"commit", "-qam", "x"}, "danger git-config sub/.git/config: gpg.program"},
		{"textconv", func(t *testing.T, ws, pwned string) {
			plant("sub", "diff.p.textconv", "PWN; cat")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/.gitattributes": "f diff=p\n"})
		}, "sub", []string{"diff"}, "danger git-config sub/.git/config: diff.p.textconv"},
		{"a merge driver", func(t *testing.T, ws, pwned string) {
			plant("sub", "merge.p.driver", "PWN")(t, ws, pwned)
			d := filepath.Join(ws, "sub")
			must(t, d, "checkout", "-q", "f")
			grow(t, ws, map[string]string{"sub/.gitattributes": "f merge=p\n"})
			must(t, d, "checkout", "-qb", "o")
			os.WriteFile(d+"/f", []byte("o\n"), 0o644)
			must(t, d, "commit", "-qam", "o")
			must(t, d, "checkout", "-q", "main")
			os.WriteFile(d+"/f", []byte("m\n"), 0o644)
			must(t, d, "commit", "-qam", "m")
		}, "sub", []string{"merge", "o"}, "danger git-config sub/.git/config: merge.p.driver"},
		{"include", func(t *testing.T, ws, pwned string) {
			plant("sub", "include.path", "../x")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/x": "[core]\n\tfsmonitor = \"touch " + pwned + "; true\"\n"})
		}, "sub", []string{"status"}, "danger git-config sub/x: core.fsmonitor"},
		{"config.worktree", func(t *testing.T, ws, pwned string) {
			plant("sub", "extensions.worktreeConfig", "true")(t, ws, pwned)
			grow(t, ws, map[string]string{"sub/.git/config.worktree": "[core]\n\tfsmonitor = \"touch " + pwned + "; true\"\n"})
		}, "sub", []string{"status"}, "danger git-config sub/.git/config.worktree: core.fsmonitor"},
		{"a directory that is a repository", func(t *testing.T, ws, pwned string) {
			grow(t, ws, repo("docs/img", "\tbare = false\n\tworktree = \".\"\n\tfsmonitor = \"touch "+pwned+"; true\"\n"))
		}, "docs/img", []string{"status"}, "danger git-config docs/img/config: core.fsmonitor"},
		{"a .git file to a look-alike", func(t *testing.T, ws, pwned string) {
			grow(t, ws, repo("docs/img", "\tfsmonitor = \"touch "+pwned+"; true\"\n"))
			grow(t, ws, map[string]string{"sub/.git": "gitdir: ../docs/img\n"})
		}, "sub", []string{"status"}, "note repository sub/.git: gitdir: ../docs/img"},
		{"commondir", func(t *testing.T, ws, pwned string) {
			grow(t, ws, repo("docs/img", "\tfsmonitor = \"touch "+pwned+"; true\"\n"))
			grow(t, ws, map[string]string{"sub/.git/HEAD": "ref: refs/heads/x\n", "sub/.git/commondir": "../../docs/img\n"})
		}, "sub", []string{"status"}, "danger git-config sub/.git/commondir: ../../docs/img"},
		{"a rebase under way", func(t *testing.T, ws, pwned string) {
			plant("sub")(t, ws, pwned)
			d := filepath.Join(ws, "sub")
			must(t, d, "commit", "-qam", "y")
			git(t, d, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-i", "HEAD~1")
			os.WriteFile(d+"/.git/rebase-merge/git-rebase-todo", []byte("exec touch "+pwned+"\n"), 0o644)
		}, "sub", []string{"rebase", "--continue"}, "danger todo sub/.git/rebase-merge/git-rebase-todo: touch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws := t.TempDir()
			must(t, ws, "init", "-q")
			before := scan(t, ws)
			pwned := filepath.Join(t.TempDir(), "pwned")
			tt.plant(t, ws, pwned)
			os.Remove(pwned)
			found := Compare(&before, scan(t, ws))
			out, _ := git(t, filepath.Join(ws, tt.dir), tt.run...)
			_, err := os.Stat(pwned)
			if ran := err == nil; !ran {
				t.Errorf("git %q runs nothing: the attack does not work\n%s", tt.run, out)
			}
			if got := lines(found); !slices.ContainsFunc(got, func(l string) bool {
				return strings.HasPrefix(strings.Replace(l, "warning repository", "note repository", 1), tt.want)
			}) {
				t.Errorf("not found: %s\n%s", tt.want, strings.Join(got, "\n"))
			}

			// And with what was found out of the way, the same command runs nothing.
			os.Remove(pwned)
			var fix []Finding
			for _, f := range Collapse(found) {
				if f.Repair != NoRepair && f.Severity > Note {
					fix = append(fix, f)
				}
			}
			Order(fix)
			for _, f := range fix {
				if _, err := f.Do(); err != nil {
					t.Errorf("%s: %v", f.Path, err)
				}
			}
			git(t, filepath.Join(ws, tt.dir), tt.run...)
			if _, err := os.Stat(pwned); err == nil {
				t.Errorf("it still runs after %v", lines(fix))
			}
			for _, f := range Compare(&before, scan(t, ws)) {
				if f.Severity > Note {
					t.Errorf("left: %v", lines([]Finding{f}))
				}
			}
		})
	}
}
