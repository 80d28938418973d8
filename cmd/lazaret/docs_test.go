package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// markdown lists the repository's documents, by path from its root.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "testdata", ".cache"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, "../../")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	linkForm    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingForm = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	spanForm    = regexp.MustCompile("`([^`\n]+)`")
	fenceForm   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	commandForm = regexp.MustCompile(`(?:^|[\s("]|bin/)lazaret ([a-z-][^|;&>)"]*)`)
)

// anchors gives the anchors of a document's headings, as forges make them.
func anchors(text string) (out []string) {
	for _, m := range headingForm.FindAllStringSubmatch(text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		out = append(out, slug)
	}
	return out
}

// TestDocsLinks: what a document points to within the repository is there.
func TestDocsLinks(t *testing.T) {
	docs := markdown(t)
	if len(docs) < 10 {
		t.Fatalf("only %d documents", len(docs))
	}
	for name, text := range docs {
		for _, m := range linkForm.FindAllStringSubmatch(fenceForm.ReplaceAllString(text, ""), -1) {
			target := m[1]
			if strings.HasPrefix(target, "https://") {
				continue
			}
			path, anchor, _ := strings.Cut(target, "#")
			to := name
			if path != "" {
				to = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join("../..", to)); err != nil {
				t.Errorf("%s: %s leads nowhere", name, target)
			} else if anchor != "" && !slices.Contains(anchors(docs[to]), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, to, anchor)
			}
		}
	}
}

// code gives what stands in a document as code: spans, which may name a command
// without all that it takes, and the lines of blocks, whole commands, up to what a
// second column says about them.
func code(text string) (spans, blocks []string) {
	for _, m := range fenceForm.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[2]) {
			if m[1] == "console" && !strings.HasPrefix(line, "$ ") {
				continue // what it prints
			}
			blocks = append(blocks, firstColumn(strings.TrimPrefix(line, "$ ")))
		}
	}
	text = fenceForm.ReplaceAllString(text, "")
	for line := range strings.Lines(text) {
		if block, ok := strings.CutPrefix(line, "    "); ok {
			blocks = append(blocks, firstColumn(block))
			continue
		}
		for _, m := range spanForm.FindAllStringSubmatch(line, -1) {
			spans = append(spans, m[1])
		}
	}
	return spans, blocks
}

func firstColumn(line string) string {
	line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
	line, _, _ = strings.Cut(line, " #")
	return line
}

// checkCommand finds what is wrong with the words after "lazaret" in a text.
// Dots stand for something. What is whole has all the arguments it takes.
func checkCommand(words string, whole bool) error {
	words, _, _ = strings.Cut(words, " …")
	if strings.Count(words, "'") == 1 { // the other one is behind what ended the words
		words, _, _ = strings.Cut(words, "'")
	}
	argv, err := shellquote.Split(words)
	if err != nil || len(argv) == 0 {
		return fmt.Errorf("it cannot be split into words: %v", err)
	}
	root := newRootCmd(&deps{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	found, rest, err := root.Find(argv)
	if err != nil {
		return err
	}
	if found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no command %s", rest[0])
	}
	found.InitDefaultHelpFlag()
	found.InitDefaultVersionFlag()
	if err := found.ParseFlags(rest); err != nil || !whole {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}

// TestDocsCommands: every command and every flag that a document names is one.
func TestDocsCommands(t *testing.T) {
	known := allFlags()
	commands := 0
	for name, text := range markdown(t) {
		spans, blocks := code(text)
		for i, c := range slices.Concat(spans, blocks) {
			for _, m := range commandForm.FindAllStringSubmatch(c, -1) {
				commands++
				if err := checkCommand(m[1], i >= len(spans)); err != nil {
					t.Errorf("%s: lazaret %s: %v", name, m[1], err)
				}
			}
			flag, _, _ := strings.Cut(c, "=")
			flag, _, _ = strings.Cut(flag, " ")
			if strings.HasPrefix(c, "--") && !known[flag] && !slices.Contains(othersFlags, flag) {
				t.Errorf("%s: no command has %s", name, flag)
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d commands were found", commands)
	}
}

// othersFlags are those of other programs that documents name by themselves.
var othersFlags = []string{"--dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "--network", "--http-proxy", "--image-volume"}

func allFlags() map[string]bool {
	out := map[string]bool{"--help": true}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { out["--"+f.Name] = true })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCmd(&deps{}))
	return out
}

// TestHintsNameCommands: every "lazaret …" in a text of the program is a
// command that there is.
func TestHintsNameCommands(t *testing.T) {
	quoted := regexp.MustCompile(`"lazaret ([a-z][^"]*)"`)
	hints := 0
	for _, dir := range []string{"cmd/lazaret", "launch", "launch/trust", "launch/term", "lock", "lock/config", "image", "gitshadow", "overlay", "escalate", "sidecar"} {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "image/shell.go") { // it names an image
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					return true
				}
				for _, m := range quoted.FindAllStringSubmatch(text, -1) {
					hints++
					words := strings.NewReplacer("%s", "X", "%q", "X", "…", "X").Replace(m[1])
					if err := checkCommand(words, false); err != nil {
						t.Errorf("%s: %q: %v", set.Position(lit.Pos()), m[1], err)
					}
				}
				return true
			})
		}
	}
	if hints < 30 {
		t.Errorf("only %d commands were found", hints)
	}
}

// The checks of documents find what they are there for.
func TestDocsChecksCatch(t *testing.T) {
	for _, tt := range []struct {
		words string
		whole bool
		bad   bool
	}{
		{"lock --check", true, false},
		{"launch PROFILE -- true", true, false},
		{"trust show", true, false},
		{"lok", false, true},
		{"lock --chekc", false, true},
		{"config shwo", false, true},
		{"completion bash", true, false},
		{"clean --all", false, true},
		{"exec", false, false},
		{"exec", true, true},
	} {
		if err := checkCommand(tt.words, tt.whole); (err != nil) != tt.bad {
			t.Errorf("lazaret %s: %v", tt.words, err)
		}
	}
	text := "Run `lazaret x` or\n\n    lazaret y    lazaret z\n\n```console\n$ lazaret a\nlazaret b\n```\n"
	spans, blocks := code(text)
	if got := strings.Join(spans, "; ") + "|" + strings.Join(blocks, "; "); got != "lazaret x|lazaret a; lazaret y" {
		t.Errorf("code is %q", got)
	}
	if got := anchors("# What you need\n## [storage]\n"); !slices.Equal(got, []string{"what-you-need", "storage"}) {
		t.Errorf("anchors are %q", got)
	}
}

// TestDocsChecks: the page on trouble knows every check that doctor makes.
func TestDocsChecks(t *testing.T) {
	page := markdown(t)["docs/troubleshooting.md"]
	id := regexp.MustCompile(`(?:\b(?:ok|lacking|failing)\(|\bid(?:, what)? = |\bID: |^\t\t\{)"([a-z][a-z-]+)"`)
	found := map[string]bool{}
	files, err := filepath.Glob("../../launch/health*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "doctor_host.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, m := range id.FindAllStringSubmatch(line, -1) {
				found[m[1]] = true
			}
		}
	}
	if len(found) < 18 {
		t.Errorf("only %d checks were found: %v", len(found), found)
	}
	for name := range found {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/troubleshooting.md does not know doctor's check %s", name)
		}
	}
}
