package main

import (
	"fmt"
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
func tellGit(e *ending, profile string, homes []launch.GitHome) {
	for _, home := range homes {
		g := gitEnd{ending: e, profile: profile, home: home}
		g.tell()
	}
}

// gitEnd tells of one repository.
type gitEnd struct {
	*ending
	profile string
	home    launch.GitHome
}

func (g gitEnd) tell() {
	var arrived, held, not []item
	for _, n := range g.home.Notes {
		switch {
		case n.Err != "":
			not = append(not, item{text: config.Show(n.Ref) + ": " + config.Show(n.Err)})
		case n.Verdict == gitshadow.Arrive:
			arrived = append(arrived, g.arrived(n))
		case n.Verdict == gitshadow.Hold:
			held = append(held, g.held(n))
		case n.Verdict == gitshadow.Never:
			not = append(not, item{text: config.Show(n.Ref) + ": " + config.Show(n.Why)})
		}
	}
	var changed []item
	for _, c := range g.home.Changed {
		i := item{text: config.Show(c.Ref) + ": " + c.Why}
		if words := g.here(c.Restore()); words != nil {
			i.how, i.next = "to undo that", gitLine(words)
		}
		changed = append(changed, i)
	}
	where := ""
	if g.home.Path != "" {
		where = " in " + config.Show(g.home.Path)
	}
	g.list(markDone, rowGit, "git"+where+": from the sandbox:", most(arrived))
	g.list(markWaiting, "held", "git"+where+": held back, each with what applies it:", most(held))
	g.list(markAlarm, "not home", "git"+where+": not brought home:", most(not))
	g.list(markAlarm, "changed", "git"+where+": refs that are not as they were before the sandbox:", most(changed))
	if g.home.Kept != "" && len(not) > 0 {
		fmt.Fprintf(g.w, "lazaret: note: what the sandbox wrote is kept in %s; do not run git there, and remove it when nothing of it is missed\n", config.Show(g.home.Kept))
	}
}

// most are as many as are listed.
func most(items []item) []item {
	if len(items) <= heldShown {
		return items
	}
	return append(items[:heldShown], item{text: fmt.Sprintf("and %d more", len(items)-heldShown), next: "lazaret merge --list"})
}

func (g gitEnd) arrived(n gitshadow.Note) item {
	i := item{text: fmt.Sprintf("%s on %s", plural(n.Commits, "commit"), config.Show(strings.TrimPrefix(n.Target, "refs/heads/"))), how: "to adopt them"}
	switch {
	case n.Target != gitshadow.OwnBranch(g.profile) || g.home.Path != "":
	case g.home.OwnTree:
		i.next = "git merge lazaret/agent-" + g.profile
	default:
		i.next = "lazaret merge " + g.profile
	}
	return i
}

func (g gitEnd) held(n gitshadow.Note) item {
	what := config.Show(n.Ref)
	for prefix, word := range map[string]string{"refs/heads/": "branch ", "refs/tags/": "tag "} {
		if short, ok := strings.CutPrefix(n.Ref, prefix); ok {
			what = word + config.Show(short)
		}
	}
	i := item{text: what + " (" + config.Show(n.Why) + ")", next: "lazaret merge " + g.profile}
	if command := n.Apply(n.Was); command != nil {
		i.next = gitLine(g.here(command))
	}
	return i
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
