package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzASCII: JSON says the same in ASCII, and nothing in it acts on a terminal.
func FuzzASCII(f *testing.F) {
	for _, s := range []string{"a", "\u202e\u009b31m", "\U000e0001", "\x7f", "é\n\x1b", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var out bytes.Buffer
		if err := json.NewEncoder(ascii{&out}).Encode([]string{s}); err != nil {
			t.Fatal(err)
		}
		for _, c := range bytes.TrimSuffix(out.Bytes(), []byte("\n")) {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("%q is written as %q", s, out.Bytes())
			}
		}
		var back []string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || utf8.ValidString(s) && back[0] != s {
			t.Fatalf("%q is read back as %q, %v", s, back, err)
		}
	})
}

// TestJSONIsASCII: no command prints JSON otherwise.
func TestJSONIsASCII(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := c.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "NewEncoder" || len(c.Args) != 1 {
				return true
			}
			found++
			if lit, ok := c.Args[0].(*ast.CompositeLit); ok {
				if id, ok := lit.Type.(*ast.Ident); ok && id.Name == "ascii" {
					return true
				}
			}
			t.Errorf("%s: JSON is written by ascii{…}", fset.Position(n.Pos()))
			return true
		})
	}
	if found < 5 {
		t.Errorf("only %d encoders were found", found)
	}
}
