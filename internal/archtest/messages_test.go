package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// makers make an error, or a part of one, of the text at this argument.
var makers = map[string]int{
	"errors.New": 0, "fmt.Errorf": 0,
	"usage": 0, "errorf": 1, "refuse": 1,
}

// nextSteps are the makers that also take the next step, at this argument. In
// lock/config an errorf without one is a part of a message that has one.
var nextSteps = map[string]int{"refuse": 0}

// steppers are the types that carry an error with its next step, and the
// fields that say it, by name and by place.
var steppers = map[string]struct {
	name  string
	place int
}{
	"hinted":       {"hint", 1},
	"RefusedError": {"Do", 1},
}

// checkMessages finds errors that do not speak as lazaret does: in lower case,
// without a full stop, saying what was being done and not that it "failed".
func checkMessages(s source) (bad []string) {
	if s.isTest() {
		return nil
	}
	command := s.dir() == "cmd/lazaret"
	var above []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		above = append(above, n)
		say := func(at ast.Node, format string, args ...any) {
			bad = append(bad, fmt.Sprintf("%s: %s", s.at(at.Pos()), fmt.Sprintf(format, args...)))
		}
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && command && x.Name == "cobra" && strings.HasSuffix(n.Sel.Name, "Args") && n.Sel.Name != "PositionalArgs" {
				say(n, "cobra.%s speaks for itself, and without a next step: say it with words or noArgs", n.Sel.Name)
			}
		case *ast.CallExpr:
			name := callee(n)
			if i, ok := makers[name]; ok && i < len(n.Args) {
				text, known := constant(n.Args[i])
				if fault := messageFault(text); known && fault != "" {
					say(n, "%q %s", text, fault)
				}
				if command && (name == "errors.New" || name == "fmt.Errorf") && !strings.Contains(text, "%w") && !hasStep(above) {
					say(n, "%q has no next step: say it with hinted", text)
				}
			}
			if i, ok := nextSteps[name]; ok && i < len(n.Args) {
				if text, known := constant(n.Args[i]); known && text == "" {
					say(n, "a refusal without a way out")
				}
			}
		case *ast.CompositeLit:
			if id, ok := n.Type.(*ast.Ident); ok {
				if step, ok := steppers[id.Name]; ok && emptyStep(n, step.name, step.place) {
					say(n, "%s without a next step", id.Name)
				}
			}
		}
		return true
	})
	return bad
}

// callee is the name a function is called by: "errors.New", "refuse".
func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// constant is the text of a literal, or of literals put together.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, _ := constant(e.X)
		b, _ := constant(e.Y)
		return a + b, a+b != ""
	}
	return "", false
}

// hasStep reports whether one of the nodes above an error carries its next
// step, or is the list of what counts as an answer.
func hasStep(above []ast.Node) bool {
	return slices.ContainsFunc(above, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			id, ok := n.Type.(*ast.Ident)
			return ok && id.Name == "hinted"
		case *ast.ValueSpec: // a sentinel: whoever returns it wraps it
			return true
		case *ast.FuncDecl: // makers of their own
			return n.Name.Name == "usage" || n.Name.Name == "unknownCommand"
		}
		return false
	})
}

func emptyStep(c *ast.CompositeLit, name string, place int) bool {
	var value ast.Expr
	for i, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				value = kv.Value
			}
		} else if i == place {
			value = e
		}
	}
	if value == nil {
		return true
	}
	text, known := constant(value)
	return known && text == ""
}

var (
	// A name is written as it is: XDG_RUNTIME_DIR, HEAD, TOML, TERM.
	isName  = regexp.MustCompile(`^[A-Z][A-Z0-9_]+\b`)
	clumsy  = regexp.MustCompile(`(?i)^(failed|unable|could not|cannot be able|error|an error)\b`)
	endings = regexp.MustCompile(`[.!]$`)
)

// messageFault says what is wrong with the text of an error.
func messageFault(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return ""
	case text[0] >= 'A' && text[0] <= 'Z' && !isName.MatchString(text):
		return "begins with a capital letter"
	case clumsy.MatchString(text):
		return "says that something went wrong, which everybody knows, in place of what was being done"
	case endings.MatchString(first) && !strings.HasSuffix(first, ".."):
		return "ends like a sentence"
	}
	return ""
}

// TestMessages applies the rules to everything that people are told.
func TestMessages(t *testing.T) {
	all, err := load(root())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.dir(), "cmd/lazaret-guest") {
			continue // a shell speaks as shells do
		}
		for _, bad := range checkMessages(s) {
			t.Error(bad)
		}
	}
}

func TestMessageRulesCatch(t *testing.T) {
	for _, tt := range []struct{ dir, code, want string }{
		{"image", `errors.New("Bad thing")`, `"Bad thing" begins with a capital letter`},
		{"image", `errors.New("a bad thing.")`, `"a bad thing." ends like a sentence`},
		{"image", `fmt.Errorf("failed to read: %w", err)`, `"failed to read: %w" says that`},
		{"launch", `refuse("", "there is none")`, `a refusal without a way out`},
		{"launch", `&RefusedError{What: "x"}`, `RefusedError without a next step`},
		{"launch", `&RefusedError{"x", ""}`, `RefusedError without a next step`},
		{"cmd/lazaret", `errors.New("there is none")`, `"there is none" has no next step`},
		{"cmd/lazaret", `hinted{errors.New("x"), ""}`, `hinted without a next step`},
		{"cmd/lazaret", `cobra.ExactArgs(2)`, `cobra.ExactArgs speaks for itself`},
		{"cmd/lazaret", `hinted{errors.New("x" + "y."), "do"}`, `"xy." ends like a sentence`},

		{"image", `errors.New("XDG_RUNTIME_DIR is not set")`, ""},
		{"launch", `refuse("do", "there is none")`, ""},
		{"launch", `&RefusedError{What: a, Do: b}`, ""},
		{"cmd/lazaret", `fmt.Errorf("reading: %w", err)`, ""},
		{"cmd/lazaret", `hinted{errors.New("x"), "do"}`, ""},
		{"cmd/lazaret", `usage("one at a time")`, ""},
	} {
		file := tt.dir + "/x.go"
		all, err := load(fstest.MapFS{file: {Data: []byte("package " + path.Base(tt.dir) + "\nfunc f() any { return " + tt.code + " }")}})
		if err != nil || len(all) != 1 {
			t.Fatal(err)
		}
		got := checkMessages(all[0])
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s in %s: got %q, want %q", tt.code, tt.dir, got, tt.want)
		}
	}
}
