package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// blocks gives the shell in a piece of CI configuration: "run: |" of a GitHub
// action, "- |" of a GitLab script.
func blocks(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		trimmed := strings.TrimLeft(lines[i], " ")
		if trimmed != "run: |" && trimmed != "- |" {
			continue
		}
		indent := len(lines[i]) - len(trimmed)
		var b strings.Builder
		for i++; i < len(lines); i++ {
			body := strings.TrimLeft(lines[i], " ")
			if body != "" && len(lines[i])-len(body) <= indent {
				i--
				break
			}
			b.WriteString(body + "\n")
		}
		out = append(out, b.String())
	}
	return out
}

// section is one top-level table of a GitLab configuration.
func section(text, name string) string {
	_, rest, ok := strings.Cut("\n"+text, "\n"+name+":\n")
	if !ok {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		if line[0] != ' ' && line != "\n" {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// cmdAction runs the steps of a GitHub action as a runner does: each block by
// "bash -e -o pipefail", with the action's variables set by the script.
//
//	[!] action FILE
func cmdAction(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: action FILE")
	}
	runBlocks(ts, neg, blocks(readCI(ts, args[0])))
}

// cmdJob runs a job of a GitLab configuration: what it extends comes first.
//
//	[!] job FILE NAME
func cmdJob(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: job FILE NAME")
	}
	text := readCI(ts, args[0])
	job := section(text, args[1])
	if job == "" {
		ts.Fatalf("there is no job %s", args[1])
	}
	// GitLab makes one script of both.
	all := append(blocks(section(text, ".lazaret")), blocks(job)...)
	runBlocks(ts, neg, []string{strings.Join(all, "")})
}

func readCI(ts *testscript.TestScript, name string) string {
	data, err := os.ReadFile(filepath.Join(ts.Getenv("REPO"), "docs/ci", name))
	ts.Check(err)
	return string(data)
}

func runBlocks(ts *testscript.TestScript, neg bool, scripts []string) {
	if len(scripts) == 0 {
		ts.Fatalf("nothing to run")
	}
	var err error
	for _, s := range scripts {
		if strings.Contains(s, "${{") {
			ts.Fatalf("an expression is put into a script, where its value would be run:\n%s", s)
		}
		if err = ts.Exec("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", s); err != nil {
			break
		}
	}
	if (err != nil) != neg {
		ts.Fatalf("ended with %v", err)
	}
}
