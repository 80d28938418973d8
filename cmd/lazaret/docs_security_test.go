package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsSecurity: every claim of docs/security.md names a test that is there.
func TestDocsSecurity(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	form := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case filepath.Ext(path) == ".txtar":
			tests[strings.TrimSuffix(d.Name(), ".txtar")] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			for _, m := range form.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := 0
	named := regexp.MustCompile("`([^`]+)`")
	protected := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "## ") {
			protected = strings.HasPrefix(line, "## What is protected")
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !protected || !strings.HasPrefix(line, "| ") || len(cells) != 2 || strings.TrimSpace(cells[1]) == "Test" {
			continue
		}
		claims++
		shown := named.FindAllStringSubmatch(cells[1], -1)
		if len(shown) == 0 {
			t.Errorf("nothing shows: %s", cells[0])
		}
		for _, m := range shown {
			if !tests[m[1]] {
				t.Errorf("there is no test %s, which is to show: %s", m[1], cells[0])
			}
		}
	}
	if claims < 30 {
		t.Errorf("only %d claims were found", claims)
	}
}
