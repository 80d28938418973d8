package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDocsDiagrams: the diagrams are drawn from the sources beside them, as
// .ci/diagrams draws now. It leaves what it drew from at the end of each.
func TestDocsDiagrams(t *testing.T) {
	script, err := os.ReadFile("../../.ci/diagrams")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../../docs/diagrams/*.d2")
	if err != nil || len(sources) < 2 {
		t.Fatalf("%d diagrams, %v", len(sources), err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := os.ReadFile(strings.TrimSuffix(source, ".d2") + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("<!-- %x -->\n", sha256.Sum256(slices.Concat(script, text)))
		if !strings.HasSuffix(string(picture), want) {
			t.Errorf("%s was not drawn from %s as it is: run .ci/diagrams", filepath.Base(source), source)
		}
	}
}

// TestDocsPictures: every picture is shown somewhere.
func TestDocsPictures(t *testing.T) {
	shown := map[string]bool{}
	for name, text := range markdown(t) {
		for _, m := range linkForm.FindAllStringSubmatch(text, -1) {
			shown[filepath.Join(filepath.Dir(name), m[1])] = true
		}
	}
	pictures, err := filepath.Glob("../../docs/*/*.svg")
	if err != nil || len(pictures) < 5 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	for _, p := range pictures {
		if p = strings.TrimPrefix(p, "../../"); !shown[p] {
			t.Errorf("no document shows %s", p)
		}
	}
}

// TestDocsIndex: each document is found from the index of its directory.
func TestDocsIndex(t *testing.T) {
	docs := markdown(t)
	for name := range docs {
		dir, file := filepath.Split(name)
		index := docs[dir+"README.md"]
		if strings.HasPrefix(dir, "docs/") && file != "README.md" && !strings.Contains(index, "]("+file) {
			t.Errorf("%sREADME.md does not lead to %s", dir, file)
		}
	}
}

// TestDocsPaths: the files that people who change lazaret are sent to are there.
func TestDocsPaths(t *testing.T) {
	path := regexp.MustCompile(`^[a-z0-9._-]+(?:/[A-Za-z0-9._-]+)+/?$`)
	found := 0
	for name, text := range markdown(t) {
		if name != "CONTRIBUTING.md" && name != "docs/extending.md" && !strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		for _, m := range spanForm.FindAllStringSubmatch(text, -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if _, err := os.Stat("../../" + top); err != nil || !path.MatchString(m[1]) || strings.Contains(m[1], "NAME") {
				continue
			}
			found++
			if _, err := os.Stat("../../" + m[1]); err != nil {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d paths were found", found)
	}
}

// TestDocsAllCommands: the documents know every command that people run.
func TestDocsAllCommands(t *testing.T) {
	var all strings.Builder
	for name, text := range markdown(t) {
		if name == "README.md" || strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/decisions/") {
			all.WriteString(text)
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Hidden || sub.Name() == "help" {
				continue
			}
			if !strings.Contains(strings.Join(strings.Fields(all.String()), " "), sub.CommandPath()) {
				t.Errorf("no document tells of %q", sub.CommandPath())
			}
			visit(sub)
		}
	}
	visit(newRootCmd(&deps{}))
}
