package gitshadow

import (
	"os"
	"strings"
	"testing"
)

// TestHookWays: what the agent could put something else in the place of, on the
// way to a hook, is no way that a hook may go: a mount covers no link.
func TestHookWays(t *testing.T) {
	for _, tt := range []struct {
		name, plant string
		want        string // what the refusal names; "" where there is none
		files, gone string
	}{
		{"a link to a link", `ln -s ../tools/b scripts/a; ln -s ../../scripts/a .git/hooks/pre-commit`, `"scripts/a"`, "", ""},
		{"by a link to a directory", `ln -s tools current; ln -s ../../current/b .git/hooks/pre-push`, `"current"`, "", ""},
		{"by an absolute one", `ln -s "$PWD/tools" current; ln -s "$PWD/current/b" .git/hooks/pre-push`, `"current"`, "", ""},
		{"out of the workspace", `ln -s ../outside current; ln -s ../../current/b .git/hooks/pre-push`, `"current"`, "", ""},
		{"to nothing", `ln -s nothing current; ln -s ../../current/b .git/hooks/pre-push`, `"current"`, "", ""},
		{"round and round", `ln -s current current; ln -s ../../current .git/hooks/pre-push`, `"current"`, "", ""},
		{"back out of a directory", `mkdir -p x/tools; ln -s ../../tools/../scripts/c .git/hooks/pre-push`, `"tools"`, "", ""},
		{"back out of nothing", `ln -s ../../later/../tools/b .git/hooks/pre-push`, `"later"`, "", ""},
		{"with others", `ln -s ../tools/b scripts/a; ln -s ../../scripts/a .git/hooks/pre-commit; ln -s ../../scripts/c .git/hooks/pre-push; ln -s ../../x .git/hooks/update`, `"scripts/a"`, "scripts/c", "x"},
		{".git/hooks by a link", `ln -s tools current; rm -r .git/hooks; ln -s ../current .git/hooks`, `"current"`, "", ""},
		{"core.hooksPath by a link", `ln -s scripts current; git config core.hooksPath current/deep`, `"current"`, "", ""},
		{"core.hooksPath is a link", `ln -s scripts current; git config core.hooksPath current`, `"current"`, "", ""},
		{"core.hooksPath is in a file", `git config core.hooksPath scripts/c/x`, `"scripts/c" is no directory`, "", ""},
		{"core.hooksPath back out of a link", `mkdir -p scripts/deep hooks; ln -s scripts/deep current; git config core.hooksPath current/../hooks`, `"current"`, "", ""},
		{"of a nested one", `git init -q own; rm -rf own/.git/hooks; mkdir own/.git/hooks; ln -s ../tools/b scripts/a; ln -s ../../../scripts/a own/.git/hooks/pre-commit`, `"scripts/a"`, "", ""},
		{"before those of a nested one", `git init -q own; rm -rf own/.git/hooks; mkdir own/.git/hooks; ln -s tools current; ln -s ../../current/b .git/hooks/update; ln -s ../../../scripts/c own/.git/hooks/pre-commit`, `"current"`, "scripts/c", ""},
		{"among those of a nested one", `git init -q own; mkdir own/h; git -C own config core.hooksPath h; ln -s ../tools/b scripts/a; ln -s ../../scripts/a own/h/pre-commit`, `"scripts/a"`, "", ""},

		{"a link to a file", `ln -s ../../scripts/c .git/hooks/pre-commit`, "", "scripts/c", ""},
		{"by a link outside", `ln -s "$PWD/tools" ../by; ln -s ../../../by/b .git/hooks/pre-commit`, "", "tools/b", ""},
		{"by links in .git", `ln -s b .git/hooks/a; ln -s ../../tools/b .git/hooks/b`, "", "tools/b", ""},
		{"among the hooks", `mkdir -p deep/hooks; git config core.hooksPath deep/hooks; ln -s pre-push deep/hooks/pre-commit; ln -s ../../tools/b deep/hooks/pre-push`, "", "tools/b", ""},
		{"out of a nested one", `git init -q own/lib; mkdir own/lib/h; git -C own/lib config core.hooksPath h; ln -s ../../../scripts/c own/lib/h/pre-commit`, "", "scripts/c", ""},
		{"to a directory", `ln -s ../../tools .git/hooks/pre-commit; ln -s ../../scripts/c/x .git/hooks/pre-push`, "", "", "scripts/c/x,tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			sh(t, dir, oneCommit+`mkdir -p tools scripts ../outside .git/hooks; echo >tools/b; echo >scripts/c; echo >../outside/b; `+tt.plant)
			r, err := Probe(dir+"/r", os.Getuid())
			if err != nil {
				t.Fatal(err)
			}
			err = r.FindHooks(t.Context(), Git{Program: gitProgram(t), Home: dir + "/home"})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, and not %s", err, tt.want)
			}
			if files, gone := r.HookLinks(); strings.Join(files, ",") != tt.files || strings.Join(gone, ",") != tt.gone {
				t.Errorf("%q, and not there %q", files, gone)
			}
		})
	}
}
