package archtest

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"
)

func root() fs.FS { return os.DirFS("../..") }

// TestShape applies the rules to the module.
func TestShape(t *testing.T) {
	all, err := load(root())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files were found: the rules would hold for nothing", len(all))
	}
	for _, s := range all {
		for _, bad := range slices.Concat(checkImports(s), checkUses(s), checkGit(s), checkRoots(s)) {
			t.Error(bad)
		}
	}
	for _, bad := range checkComments(all) {
		t.Error(bad)
	}
	for _, bad := range checkTopLevel(names(t, "."), names(t, "internal")) {
		t.Error(bad)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := fs.ReadDir(root(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestModule(t *testing.T) {
	mod, err := fs.ReadFile(root(), "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^module ` + module + `$`).Match(mod) {
		t.Errorf("go.mod is not that of module %s", module)
	}
	if regexp.MustCompile(`(?m)^\s*(replace|exclude)\b`).Match(mod) {
		t.Error("go.mod replaces or excludes modules, so that others would build something else")
	}
}

// TestNoCycle: the table itself must point one way.
func TestNoCycle(t *testing.T) {
	var visit func(pkg string, seen []string)
	visit = func(pkg string, seen []string) {
		if slices.Contains(seen, pkg) {
			t.Fatalf("the import table goes round: %q", append(seen, pkg))
		}
		for _, next := range may[pkg] {
			if next != "..." && next != "sidecar/..." {
				visit(next, append(slices.Clone(seen), pkg))
			}
		}
	}
	for pkg := range may {
		visit(pkg, nil)
	}
}

// TestRulesCatch: each rule finds what it is there for.
func TestRulesCatch(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"lock/x.go", `package lock; import "lazaret/image"`, "lock/x.go:1: lock may not import image"},
		{"lock/config/x.go", `package config; import "lazaret/lock"`, "lock/config/x.go:1: lock/config may not import lock"},
		{"overlay/x.go", `package overlay; import "lazaret/gitshadow"`, "overlay/x.go:1: overlay may not import gitshadow"},
		{"internal/proc/x.go", `package proc; import "lazaret/internal/step"`, "internal/proc/x.go:1: internal/proc may not import internal/step"},
		{"cmd/lazaret-guest/x.go", `package main; import "lazaret/launch"`, "cmd/lazaret-guest/x.go:1: cmd/lazaret-guest may not import launch"},
		{"util/x.go", `package util`, "util/x.go:1: package util is not in the import table"},
		{"launch/x.go", `package launch; import "charm.land/bubbletea/v2"`, "launch/x.go:1: launch may not import charm.land/bubbletea/v2, only escalate/prompt may"},
		{"launch/x.go", `package launch; import "github.com/spf13/cobra"`, "launch/x.go:1: launch may not import github.com/spf13/cobra, only cmd/lazaret may"},
		{"lock/x.go", `package lock; import "net/http"`, "lock/x.go:1: lock may not import net/http, only image may"},
		{"image/x.go", "package image\nimport \"os\"\nfunc f() { os.Exit(1) }", "image/x.go:3: os.Exit: only commands print, exit and look at their process"},
		{"image/x.go", "package image\nimport \"os\"\nvar home = os.Getenv", "image/x.go:3: os.Getenv: only commands print, exit and look at their process"},
		{"image/x.go", "package image\nimport sys \"os\"\nvar a = sys.Args", "image/x.go:3: os.Args: only commands print, exit and look at their process"},
		{"lock/x.go", "package lock\nimport \"fmt\"\nfunc f() { fmt.Println() }", "lock/x.go:3: fmt.Println: only commands print, exit and look at their process"},
		{"lock/x.go", "package lock\nimport \"log\"\nfunc f() { log.Fatalf(\"\") }", "lock/x.go:3: log.Fatalf: only commands print, exit and look at their process"},
		{"launch/x.go", "package launch\nimport \"os/exec\"\nvar c = exec.Command(\"id\")", "launch/x.go:3: exec.Command: programs are run by internal/proc only"},
		{"cmd/lazaret/x.go", "package main\nimport \"os/exec\"\nvar c = &exec.Cmd{}", "cmd/lazaret/x.go:3: exec.Cmd: programs are run by internal/proc only"},
		{"gitshadow/x.go", "package gitshadow\nimport \"syscall\"\nvar e = syscall.ForkExec", "gitshadow/x.go:3: syscall.ForkExec: programs are run by internal/proc only"},
		{"launch/x.go", "package launch\nvar a, e = lookPath(\"git\", path)", "launch/x.go:2: git is run by gitshadow.Git only"},
		{"gitshadow/x.go", "package gitshadow\nvar a = proc.Cmd{Argv: []string{\"/usr/bin/git\", \"status\"}}", "gitshadow/x.go:2: git is run by gitshadow.Git only"},
		{"launch/x.go", "package launch\nvar a = filepath.Join(dir, \"git\")", ""},
		{"launch/x.go", "package launch\nvar a, e = os.OpenRoot(dir)", `launch/x.go:2: OpenRoot(… + "/"), which opens no pipe`},
		{"launch/x.go", "package launch\nvar a, e = os.OpenRoot(dir + \"/\")", ""},

		{"image/x.go", `package image; import "lazaret/lock"`, ""},
		{"cmd/lazaret/x.go", "package main\nimport (\n\"os\"\n\"lazaret/launch\"\n)\nfunc f() { os.Exit(1) }", ""},
		{"lock/x_test.go", "package lock\nimport (\n\"os/exec\"\n\"net/http\"\n)\nvar c = exec.Command", ""},
		{"lock/x.go", "package lock\nimport \"fmt\"\nvar s = fmt.Sprint", ""},
		{"lock/x.go", "package lock\nimport \"fmt\"\nfunc f() { os := struct{ Exit func() }{}; os.Exit(); _ = fmt.Sprint }", ""},
	} {
		all, err := load(fstest.MapFS{tt.file: {Data: []byte(tt.text)}})
		if err != nil || len(all) != 1 {
			t.Fatal(err)
		}
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if got := slices.Concat(checkImports(all[0]), checkUses(all[0]), checkGit(all[0]), checkRoots(all[0])); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", tt.text, got, want)
		}
	}
}

func TestCommentRulesCatch(t *testing.T) {
	all, err := load(fstest.MapFS{
		"a/a.go":               {Data: []byte("// Package a says.\npackage a")},
		"a/b.go":               {Data: []byte("package a")},
		"b/b.go":               {Data: []byte("package b")},
		"c/c.go":               {Data: []byte("// It says.\npackage c")},
		"d/d.go":               {Data: []byte("// Package d says.\npackage d")},
		"d/e.go":               {Data: []byte("// Package d says too.\npackage d")},
		"cmd/x/x.go":           {Data: []byte("// Command y says.\npackage main")},
		"e/e_test.go":          {Data: []byte("package e")},
		".tool/x.go":           {Data: []byte("package x")},
		"a/testdata/broken.go": {Data: []byte("package")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"b: no package comment",
		`c/c.go:2: the package comment does not begin with "Package c "`,
		`cmd/x/x.go:2: the package comment does not begin with "Command x "`,
		"d/e.go:2: a second package comment, after d/d.go",
	}
	if got := checkComments(all); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	got := checkTopLevel([]string{".git", "cmd", "pkg", "lock.test", "go.mod", "notes.txt"}, []string{"proc", "util"})
	if want := []string{"pkg: has no place at the top level", "notes.txt: has no place at the top level", "internal/util: plumbing is proc, step and archtest only"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
