package gitshadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// treeOf prepares a shadow with a working tree of its own.
func treeOf(t *testing.T, ws, tree string, branch string) (Shadow, []string) {
	t.Helper()
	r, err := Probe(ws, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := Plan(r, Wish{Profile: "claude", Size: 64 << 20, Mode: Quarantine, Branch: branch, Tree: tree}, filepath.Join(dir, "stores", "0123456789ab"), filepath.Join(dir, "at"))
	if err != nil {
		t.Fatal(err)
	}
	notes, err := s.Prepare(t.Context(), Git{Program: gitProgram(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s, notes
}

// TestTreeOfItsOwn: it holds the agent's branch and nothing of the host's
// uncommitted work, git need not read it to know it, and it follows the host
// as long as that loses nothing.
func TestTreeOfItsOwn(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		dir := tree(t)
		sh(t, dir, `git init -q --object-format=`+format+` r; cd r; echo a >a; mkdir -p d/e; echo '#!/bin/sh' >d/e/x; chmod +x d/e/x; ln -s ../a d/l; printf 'b\0\n' >"odd
name"; : >empty; git add -A; git commit -qm first; echo dirty >>a; echo staged >s; git add s`)
		ws, own := dir+"/r", dir+"/trees/t"
		before := state(t, dir+"/r")
		s, _ := treeOf(t, ws, own, "auto")
		out, err := inside(t, s, own, dev, `git diff-files; git status --porcelain; ls; cat a d/l; test -x d/e/x
			echo new >n; echo more >>a; git add -A; git commit -qm agent; git rev-parse HEAD >n; git stash -q`)
		if want := "a\nd\nempty\nodd\nname\na\na"; err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%v\n%s", err, out)
		}
		if after := state(t, dir+"/r"); after != before {
			t.Errorf("the host has changed\nbefore:\n%s\nafter:\n%s", before, after)
		}
		// As if the commit had come home, and the host went on from it.
		id := sh(t, ws, `git stash -q; echo more >>a; echo new >n; git add -A; git commit -qm agent; git branch lazaret/agent-claude; git rm -q d/e/x; echo host >h; echo more >>a; git add -A; git commit -qm host; git rev-parse HEAD`)
		s, notes := treeOf(t, ws, own, "auto")
		if len(notes) > 0 {
			t.Errorf("notes: %q", notes)
		}
		out, err = inside(t, s, own, dev, `git rev-parse HEAD; git status --porcelain; cat h; test ! -e d/e/x`)
		if err != nil || out != id+"\nhost" {
			t.Errorf("%v\n%s", err, out)
		}
		// What the agent left uncommitted in a file that the host changed stays,
		// and so does everything else.
		sh(t, ws, `git branch -f lazaret/agent-claude; echo again >>h; echo again >>a; git commit -qam three`)
		sh(t, own, `echo mine >>h`)
		s, notes = treeOf(t, ws, own, "auto")
		if len(notes) != 1 || !strings.Contains(notes[0], `"h" was changed in its working tree`) {
			t.Errorf("notes: %q", notes)
		}
		out, err = inside(t, s, own, dev, `git rev-parse HEAD; git status --porcelain`)
		if err != nil || out != id+"\n M h" {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestTreeIsHostile: the next launch finds in it what the agent left.
func TestTreeIsHostile(t *testing.T) {
	dir := tree(t)
	sh(t, dir, oneCommit+`mkdir d; echo d >d/f; echo e >e; git add -A; git commit -qm two; mkdir ../secret; echo d >../secret/f`)
	ws := dir + "/r"
	for name, attack := range map[string]string{
		"directory a link": `rm -r d; ln -s ../../secret d`,
		"file a link":      `rm e; ln -s ../../secret/f e`,
		"file a pipe":      `rm e; mkfifo e`,
		"file a directory": `rm e; mkdir e`,
		"in the way":       `ln -s ../../secret/x new`,
	} {
		own := filepath.Join(dir, "trees", strings.ReplaceAll(name, " ", "-"))
		sh(t, ws, `git reset -q --hard; git checkout -q -B main; git branch -f start`)
		treeOf(t, ws, own, "auto")
		sh(t, own, attack)
		sh(t, ws, `echo x >>d/f; echo x >>e; echo x >new; git add -A; git commit -qm three`)
		r, err := Probe(ws, os.Getuid())
		if err != nil {
			t.Fatal(err)
		}
		base := t.TempDir()
		s, err := Plan(r, Wish{Profile: "claude", Size: 1 << 20, Mode: Quarantine, Branch: "auto", Tree: own}, base+"/a/0123456789ab", base+"/at")
		if err != nil {
			t.Fatal(err)
		}
		// Said or refused, but never followed.
		notes, err := s.Prepare(t.Context(), Git{Program: gitProgram(t)})
		if len(notes) == 0 && err == nil {
			t.Errorf("%s: nothing was noticed", name)
		}
		if got := sh(t, dir, `cat secret/*; ls secret`); got != "d\nf" {
			t.Errorf("%s: written outside: %s", name, got)
		}
		sh(t, ws, `git reset -q --hard start`)
	}
}
