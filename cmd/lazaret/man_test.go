package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manVar names a directory to leave the manual pages in: .ci/dist sets it. The
// generator lives among the tests so that the program need not carry it.
const manVar = "LAZARET_MAN"

// TestManPages writes a manual page for each command that people run.
func TestManPages(t *testing.T) {
	dir := os.Getenv(manVar)
	if dir == "" {
		dir = t.TempDir()
	}
	root := newRootCmd(&deps{})
	// Examples are code, and the date is nobody's business.
	root.DisableAutoGenTag = true
	epoch := time.Unix(0, 0).UTC()
	header := &doc.GenManHeader{Title: "LAZARET", Section: "1", Source: "lazaret " + version, Manual: "lazaret", Date: &epoch}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "help" {
				visit(sub)
			}
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		for _, part := range []string{".SH NAME", ".SH SYNOPSIS", cmd.Short[:10]} {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
	visit(root)
	pages, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if strings.Contains(p.Name(), "namespace-helper") || strings.Contains(p.Name(), "relay") {
			t.Errorf("%s: a command that is not for people has a page", p.Name())
		}
	}
}
