package main

import (
	"os"
	"strings"
	"testing"
)

// Each profile that init knows, alone and together, makes a valid config, and
// the agents' are what example.toml has.
func TestStarters(t *testing.T) {
	data, err := os.ReadFile("../../example.toml")
	if err != nil {
		t.Fatal(err)
	}
	example := string(data)
	for _, name := range starterNames() {
		if _, err := starter([]string{name}, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != plainStarter && !strings.Contains(example, "\n\n\n"+starterText(name)) {
			t.Errorf("starters/%s.toml is not the profile of example.toml", name)
		}
	}
	if _, err := starter(starterNames(), ""); err != nil {
		t.Error(err)
	}
	files, err := starters.ReadDir("starters")
	if err != nil || len(files) != len(starterNames())+1 {
		t.Errorf("%d files, %v: a profile is not offered", len(files), err)
	}
}

// A file that appears at the last moment is not replaced, and no other is left.
func TestCreateWhole(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/lazaret.toml"
	if err := createWhole(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := createWhole(path, []byte("second")); err == nil {
		t.Error("it was replaced")
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
