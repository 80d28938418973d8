package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"lazaret/gitshadow/guard"
	"lazaret/lock/config"
)

// notesMost is how many notes are told without --all.
const notesMost = 5

// tell writes a look for people, worst first.
func (l look) tell(w io.Writer, all bool) {
	list := guard.Collapse(l.found)
	notes, left := 0, 0
	for _, f := range list {
		if f.Severity == guard.Note && !all {
			if notes++; notes > notesMost {
				left++
				continue
			}
		}
		fmt.Fprintf(w, "%s: %s\n", f.Severity, l.line(f))
		fmt.Fprintf(w, "  %s\n", config.Show(f.Why))
	}
	if left > 0 {
		fmt.Fprintf(w, "and %s: lazaret guard --all\n", count(left, "note"))
	}
	for _, g := range l.now.Gaps {
		fmt.Fprintf(w, "incomplete: %s: %s\n", config.Show(l.path(g.Root, g.Path)), config.Show(g.Why))
	}
	switch {
	case len(list) > 0 || len(l.now.Gaps) > 0:
	case l.record == nil:
		fmt.Fprintln(w, "nothing here that this machine's tools would run or obey")
	default:
		fmt.Fprintf(w, "nothing new since %s that this machine's tools would run or obey\n", when(l.record.Since))
	}
}

// path shows where something is: below the workspace, else in full.
func (l look) path(root, path guard.Name) string {
	switch {
	case string(root) != l.ws:
		if path == "" {
			return string(root)
		}
		return string(root) + "/" + string(path)
	case path == "":
		return "."
	}
	return string(path)
}

// line says what was found in one line.
func (l look) line(f guard.Finding) string {
	s := config.Show(short(l.path(f.Root, f.Path)))
	switch {
	case f.Files > 1:
		s += fmt.Sprintf("/ (%s)", count(f.Files, "file"))
	case f.What != "":
		s += ": " + config.Show(short(string(f.What)))
	}
	switch f.State {
	case guard.Appeared:
		s += " (new)"
	case guard.Changed:
		s += " (changed)"
	}
	return kindWords[f.Kind] + " " + s
}

// short cuts what is too long for a line.
func short(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// kindWords say what a finding is before its name.
var kindWords = map[guard.Kind]string{
	guard.Repository: "repository", guard.GitConfig: "git setting in", guard.Hook: "git hook", guard.Program: "program",
	guard.Alternates: "borrowed objects", guard.Ref: "ref", guard.Todo: "rebase command in", guard.Lock: "git's lock file",
	guard.Submodules: "submodules in", guard.Attributes: "attributes in", guard.Link: "link", guard.Special: "special file",
	guard.Setuid: "setuid file", guard.Tool: "file", guard.Lazaret: "lazaret's", guard.Credentials: "credentials in",
}

// json writes a look for programs.
func (l look) json(w io.Writer) error {
	type found struct {
		guard.Finding
		Path string `json:"path"`
		Root string `json:"root"`
		What string `json:"what,omitempty"`
		Why  string `json:"why"`
	}
	type gap struct {
		Root string `json:"root"`
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	v := struct {
		Workspace string     `json:"workspace"`
		Since     *time.Time `json:"since,omitempty"`
		Complete  bool       `json:"complete"`
		Findings  []found    `json:"findings"`
		Gaps      []gap      `json:"gaps,omitempty"`
	}{Workspace: config.Show(l.ws), Complete: len(l.now.Gaps) == 0, Findings: []found{}}
	if l.record != nil {
		v.Since = &l.record.Since
	}
	for _, f := range l.found {
		v.Findings = append(v.Findings, found{f, config.Show(string(f.Path)), config.Show(string(f.Root)), config.Show(string(f.What)), config.Show(f.Why)})
	}
	for _, g := range l.now.Gaps {
		v.Gaps = append(v.Gaps, gap{config.Show(string(g.Root)), config.Show(string(g.Path)), config.Show(g.Why)})
	}
	e := json.NewEncoder(ascii{w})
	e.SetIndent("", "  ")
	return e.Encode(v)
}
