package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// may is the import table: which packages of ours each package may import.
// It points one way, from what acts to what is only said; a package that is
// not in it is an error, so that a new one has to find its place. A trailing
// /... takes in the packages below.
var may = map[string][]string{
	"cmd/lazaret":          {"..."},
	"cmd/lazaret-sidecar":  {"sidecar/..."},
	"cmd/lazaret-escalate": {"escalate/wire"},
	"cmd/lazaret-guest":    {},
	"launch": {"image", "lock", "lock/config", "overlay", "gitshadow", "gitshadow/guard", "sidecar", "escalate", "escalate/wire",
		"launch/podman", "launch/term", "launch/terminfo", "internal/proc", "internal/step"},
	"launch/podman":     {"internal/proc", "internal/step"},
	"launch/term":       {},
	"launch/terminfo":   {},
	"launch/trust":      {"lock"},
	"image":             {"lock", "internal/proc"},
	"lock":              {"lock/config"},
	"lock/config":       {},
	"overlay":           {"internal/proc", "internal/step"},
	"gitshadow":         {"internal/proc", "internal/step"},
	"gitshadow/guard":   {"internal/proc", "internal/step"},
	"sidecar":           {"internal/proc", "internal/step"},
	"escalate":          {"escalate/wire", "internal/proc"},
	"escalate/wire":     {},
	"escalate/prompt":   {"escalate"},
	"internal/proc":     {},
	"internal/step":     {},
	"internal/archtest": {},
	"testdata/attacks":  {},
}

// keepers are the only packages that may import a library: what it brings
// with it (a terminal, a registry's protocols, kernel interfaces) stays there.
var keepers = map[string][]string{
	"charm.land/":                             {"escalate/prompt"},
	"github.com/charmbracelet/bubbletea":      {"escalate/prompt"},
	"github.com/google/go-containerregistry/": {"image", "lock"},
	"github.com/opencontainers/image-spec/":   {"image"},
	"github.com/spf13/cobra":                  {"cmd/lazaret"},
	"github.com/vishvananda/netlink":          {"sidecar", "launch", "cmd/lazaret-sidecar"},
	"github.com/google/nftables":              {"sidecar", "cmd/lazaret-sidecar"},
	"mvdan.cc/sh/":                            {"cmd/lazaret-guest"},
	"net/http":                                {"image"},
}

// gitFiles are where git may be named as a program. It is run in one way only,
// with everything pinned that a configuration could turn into a program.
var gitFiles = []string{"gitshadow/git.go"}

// starters may start programs; everybody else asks internal/proc, which pins
// the environment and keeps what the program said.
var starters = map[string]string{
	"internal/proc":       "the one way to run a program",
	"cmd/lazaret-guest":   "a shell, inside the sandbox",
	"image/credhelper.go": "credential helpers have a protocol of their own on stdin",
}

// topLevel is what the root may show; names with a dot in front are tools' own.
var topLevel = []string{
	"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "bin", "cmd", "docs", "escalate", "example.toml", "gitshadow", "go.mod", "go.sum",
	"image", "internal", "launch", "lazaret.lock", "lazaret.toml", "lock", "overlay", "sidecar", "testdata",
}

// checkImports finds imports that the tables do not allow. Tests may import
// more: they play the registry, the agent, the network.
func checkImports(s source) (bad []string) {
	allowed, known := may[s.dir()]
	if !known {
		return []string{fmt.Sprintf("%s: package %s is not in the import table", s.at(s.file.Package), s.dir())}
	}
	if s.isTest() {
		return nil
	}
	for p, pos := range s.imports() {
		if own, ok := strings.CutPrefix(p, module+"/"); ok {
			if !slices.ContainsFunc(allowed, func(a string) bool { return matches(a, own) }) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s", s.at(pos), s.dir(), own))
			}
			continue
		}
		for library, by := range keepers {
			if (p == library || strings.HasPrefix(p, strings.TrimSuffix(library, "/")+"/")) && !slices.Contains(by, s.dir()) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s, only %s may", s.at(pos), s.dir(), p, strings.Join(by, ", ")))
			}
		}
	}
	return bad
}

func matches(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return pkg == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(pkg, prefix)
	}
	return pattern == pkg
}

// checkUses finds what only commands may do (print, look at the process they
// are in, end it) and programs started past internal/proc.
func checkUses(s source) (bad []string) {
	if s.isTest() {
		return nil
	}
	command := strings.HasPrefix(s.dir(), "cmd/")
	s.uses(func(pkg, name string, at token.Pos) {
		short := path.Base(pkg) + "." + name
		if !command && isProcess(pkg, name) {
			bad = append(bad, fmt.Sprintf("%s: %s: only commands print, exit and look at their process", s.at(at), short))
		}
		if starters[s.dir()] == "" && starters[s.name] == "" && isStart(pkg, name) {
			bad = append(bad, fmt.Sprintf("%s: %s: programs are run by internal/proc only", s.at(at), short))
		}
	})
	return bad
}

// checkRoots finds directories that are opened as if they were ones. Without a
// slash at its end, a path at which somebody put a pipe is waited for.
func checkRoots(s source) (bad []string) {
	if s.isTest() || strings.HasPrefix(s.dir(), "cmd/") || s.dir() == "gitshadow" {
		return nil
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "OpenRoot" {
			return true
		}
		if sum, ok := call.Args[0].(*ast.BinaryExpr); ok {
			if l, ok := sum.Y.(*ast.BasicLit); ok && l.Value == `"/"` {
				return true
			}
		}
		bad = append(bad, fmt.Sprintf(`%s: OpenRoot(… + "/"), which opens no pipe`, s.at(call.Pos())))
		return true
	})
	return bad
}

// checkGit finds git named as a program: as a word given to a function that is
// not about text, or as the first word of a list.
func checkGit(s source) (bad []string) {
	// Who cannot run programs may call a key by that name.
	can := slices.ContainsFunc(may[s.dir()], func(a string) bool { return a == "..." || a == "internal/proc" })
	if s.isTest() || slices.Contains(gitFiles, s.name) || !can {
		return nil
	}
	is := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return false
		}
		v, err := strconv.Unquote(l.Value)
		return err == nil && (v == "git" || strings.HasPrefix(v, "/") && path.Base(v) == "git" && strings.Contains(v, "bin/"))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		var found ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"filepath", "path", "strings", "slices"}, x.Name) {
					return true
				}
			}
			if i := slices.IndexFunc(n.Args, is); i >= 0 {
				found = n.Args[i]
			}
		case *ast.CompositeLit:
			if t, ok := n.Type.(*ast.ArrayType); ok && len(n.Elts) > 0 && is(n.Elts[0]) {
				if id, ok := t.Elt.(*ast.Ident); ok && id.Name == "string" {
					found = n.Elts[0]
				}
			}
		}
		if found != nil {
			bad = append(bad, fmt.Sprintf("%s: git is run by gitshadow.Git only", s.at(found.Pos())))
		}
		return true
	})
	return bad
}

func isProcess(pkg, name string) bool {
	switch pkg {
	case "os":
		return slices.Contains([]string{"Exit", "Args", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Stdin", "Stdout", "Stderr"}, name)
	case "log":
		return strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Panic")
	case "fmt":
		return name == "Print" || name == "Printf" || name == "Println"
	case "flag":
		return name == "Parse"
	}
	return false
}

func isStart(pkg, name string) bool {
	switch pkg {
	case "os/exec":
		return name == "Command" || name == "CommandContext" || name == "Cmd"
	case "os":
		return name == "StartProcess"
	case "syscall", "golang.org/x/sys/unix":
		return name == "Exec" || name == "ForkExec" || name == "StartProcess"
	}
	return false
}

// checkComments finds packages that do not say what they are.
func checkComments(all []source) (bad []string) {
	said := map[string]string{}
	for _, s := range all {
		if s.isTest() {
			continue
		}
		if _, ok := said[s.dir()]; !ok {
			said[s.dir()] = ""
		}
		if s.file.Doc == nil {
			continue
		}
		text := s.file.Doc.Text()
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command " + path.Base(s.dir()) + " "
		}
		switch {
		case !strings.HasPrefix(text, want):
			bad = append(bad, fmt.Sprintf("%s: the package comment does not begin with %q", s.at(s.file.Package), want))
		case said[s.dir()] != "":
			bad = append(bad, fmt.Sprintf("%s: a second package comment, after %s", s.at(s.file.Package), said[s.dir()]))
		}
		said[s.dir()] = s.name
	}
	for dir, by := range said {
		if by == "" {
			bad = append(bad, dir+": no package comment")
		}
	}
	slices.Sort(bad)
	return bad
}

// checkTopLevel finds names in the root that have no place there, and plumbing
// that is not one of the few kinds there are.
func checkTopLevel(root, internal []string) (bad []string) {
	for _, name := range root {
		built := strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".out")
		if !strings.HasPrefix(name, ".") && !built && !slices.Contains(topLevel, name) {
			bad = append(bad, name+": has no place at the top level")
		}
	}
	for _, name := range internal {
		if !slices.Contains([]string{"archtest", "proc", "step"}, name) {
			bad = append(bad, "internal/"+name+": plumbing is proc, step and archtest only")
		}
	}
	return bad
}
