package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEndToEndReadme runs the console blocks of the README, one after the
// other, in a copy of this repository's own config and lock.
func TestEndToEndReadme(t *testing.T) {
	needE2E(t)
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	ws, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"lazaret.toml", "lazaret.lock"} {
		data, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no console block")
	}
	ran := 0
	for _, b := range blocks {
		for _, part := range strings.Split("\n"+b[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(part+"\n", "\n")
			cmd := exec.Command("bash", "-c", line)
			cmd.Dir, cmd.Env = ws, append(os.Environ(), "XDG_STATE_HOME="+state)
			var talk strings.Builder
			cmd.Stderr = &talk
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("$ %s\n%v\n%s%s", line, err, out, talk.String())
			}
			if got := strings.TrimSpace(string(out)); !consoleMatches(strings.TrimSpace(want), got) {
				t.Errorf("$ %s\nprints\n%s\nand the README says\n%s\n%s", line, got, want, talk.String())
			}
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("only %d commands", ran)
	}
}

// consoleMatches compares output; a line of three dots stands for any lines.
func consoleMatches(want, got string) bool {
	re := "^"
	for _, l := range strings.Split(want, "\n") {
		if l == "..." {
			re += `(?:.*\n)*?`
		} else {
			re += regexp.QuoteMeta(l) + `\n`
		}
	}
	return regexp.MustCompile(re + "$").MatchString(got + "\n")
}

func TestConsoleMatches(t *testing.T) {
	for _, tc := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb", "a\nb", true},
		{"a\n...", "a\nb\nc", true},
		{"...\nb\n...", "a\nb\nc", true},
		{"...\nb\n...", "a\nc", false},
		{"a", "a\nb", false},
		{"", "", true},
		{"", "x", false},
	} {
		if got := consoleMatches(tc.want, tc.got); got != tc.same {
			t.Errorf("%q against %q: %v", tc.want, tc.got, got)
		}
	}
}
