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
	where := ""
	if g.home.Path != "" {
		where = " in " + config.Show(g.home.Path)
	}
	g.list("git"+where+": from the sandbox:", arrived)
	g.list("git"+where+": held back, each with what applies it:", held)
	g.list("git"+where+": not brought home:", not)
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
	s := fmt.Sprintf("%s on %s", commits(n.Commits), config.Show(strings.TrimPrefix(n.Target, "refs/heads/")))
	if n.Target == gitshadow.OwnBranch(g.profile) && g.home.Path == "" {
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
	if g.home.Path != "" {
		command = append([]string{"-C", g.home.Path}, command...)
	}
	return s + gitLine(command)
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

// gitLine is a git command for a person to copy.
func gitLine(words []string) string { return "git " + config.Show(shellquote.Join(words...)) }
