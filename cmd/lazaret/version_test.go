package main

import (
	"os"
	"regexp"
	"testing"
)

// The version is that of the topmost entry of the list of changes.
func TestVersionIsTheChangelogs(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## ([0-9]+\.[0-9]+\.[0-9]+) \(.*\)$`).FindSubmatch(text)
	if m == nil || string(m[1]) != version {
		t.Errorf("version is %s, and CHANGELOG.md begins with %q", version, m)
	}
}
