package main

import (
	"fmt"
	"io"
	"strings"

	shellquote "github.com/kballard/go-shellquote"

	"lazaret/gitshadow"
	"lazaret/launch"
	"lazaret/lock/config"
)

// heldShown is how many refs of one kind are listed at the end of a launch.
const heldShown = 20

// tellGit sums up what came home of a sandbox's commits, and what waits for a
// yes, with the command that applies it.
func tellGit(talk io.Writer, profile string, homes []launch.GitHome) {
	for _, home := range homes {
		g := gitEnd{talk: talk, profile: profile, home: home}
		g.tell()
	}
}

// gitEnd tells of one repository.
type gitEnd struct {
	talk    io.Writer
	profile string
	home    launch.GitHome
}

func (g gitEnd) tell() {
	var arrived, held, not []string
	for _, n := range g.home.Notes {
		switch {
		case n.Err != "":
			not = append(not, config.Show(n.Ref)+": "+config.Show(n.Err))
		case n.Verdict == gitshadow.Arrive:
			arrived = append(arrived, g.arrived(n))
		case n.Verdict == gitshadow.Hold:
			held = append(held, g.held(n))
		case n.Verdict == gitshadow.Never:
			not = append(not, config.Show(n.Ref)+": "+config.Show(n.Why))
		}
	}
	var changed []string
	for _, c := range g.home.Changed {
		line := config.Show(c.Ref) + ": " + c.Why
		if words := g.here(c.Restore()); words != nil {
			line += "; to undo that: " + gitLine(words)
		}
		changed = append(changed, line)
	}
	where := ""
	if g.home.Path != "" {
		where = " in " + config.Show(g.home.Path)
	}
	g.list("git"+where+": from the sandbox:", arrived)
	g.list("git"+where+": held back, each with what applies it:", held)
	g.list("git"+where+": not brought home:", not)
	g.list("git"+where+": refs that are not as they were before the sandbox:", changed)
	if g.home.Kept != "" && len(not) > 0 {
		fmt.Fprintf(g.talk, "lazaret: note: what the sandbox wrote is kept in %s; do not run git there, and remove it when nothing of it is missed\n", config.Show(g.home.Kept))
	}
}

func (g gitEnd) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(g.talk, "lazaret: %s\n", title)
	for i, l := range lines {
		if i == heldShown {
			fmt.Fprintf(g.talk, "  and %d more: lazaret merge --list\n", len(lines)-i)
			return
		}
		fmt.Fprintf(g.talk, "  %s\n", l)
	}
}

func (g gitEnd) arrived(n gitshadow.Note) string {
	s := fmt.Sprintf("%s on %s", plural(n.Commits, "commit"), config.Show(strings.TrimPrefix(n.Target, "refs/heads/")))
	switch {
	case n.Target != gitshadow.OwnBranch(g.profile) || g.home.Path != "":
	case g.home.OwnTree:
		s += "; to adopt them: git merge lazaret/agent-" + g.profile
	default:
		s += "; to adopt them: lazaret merge " + g.profile
	}
	return s
}

func (g gitEnd) held(n gitshadow.Note) string {
	what := config.Show(n.Ref)
	for prefix, word := range map[string]string{"refs/heads/": "branch ", "refs/tags/": "tag "} {
		if short, ok := strings.CutPrefix(n.Ref, prefix); ok {
			what = word + config.Show(short)
		}
	}
	s := what + " (" + config.Show(n.Why) + "): "
	command := n.Apply(n.Was)
	if command == nil {
		return s + "lazaret merge " + g.profile
	}
	return s + gitLine(g.here(command))
}

// here makes of a git command one for the workspace.
func (g gitEnd) here(words []string) []string {
	if g.home.Path == "" || words == nil {
		return words
	}
	return append([]string{"-C", g.home.Path}, words...)
}

// gitLine is a git command for a person to copy.
func gitLine(words []string) string { return "git " + config.Show(shellquote.Join(words...)) }
