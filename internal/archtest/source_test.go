package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// module is the path of the module whose shape is kept.
const module = "lazaret"

// source is one Go file.
type source struct {
	name string // slash-separated, from the module's root
	file *ast.File
	set  *token.FileSet
}

func (s source) dir() string  { return path.Dir(s.name) }
func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// at gives file:line of a position.
func (s source) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", s.name, s.set.Position(p).Line)
}

// imports gives the paths a file imports, with where.
func (s source) imports() map[string]token.Pos {
	out := map[string]token.Pos{}
	for _, i := range s.file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out[p] = i.Pos()
		}
	}
	return out
}

// uses calls visit for every NAME of an imported package in the file:
// pkg is the import path, whatever the file calls it.
func (s source) uses(visit func(pkg, name string, at token.Pos)) {
	local := map[string]string{}
	for p := range s.imports() {
		local[path.Base(p)] = p
	}
	for _, i := range s.file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && i.Name != nil {
			local[i.Name.Name] = p
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && local[id.Name] != "" && id.Obj == nil {
			visit(local[id.Name], sel.Sel.Name, sel.Pos())
		}
		return true
	})
}

// load parses every Go file of the module below root, whatever it is built
// for. Directories that the go command passes over are passed over here, but for
// the packages in the testdata at the top.
func load(root fs.FS) ([]source, error) {
	var out []source
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" && name != "testdata" || base == "bin"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{name, file, set})
		return nil
	})
	return out, err
}
