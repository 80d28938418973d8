package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/lock"
)

func newExplainCmd(d *deps) *cobra.Command {
	var (
		o   trustOptions
		all bool
	)
	cmd := &cobra.Command{
		Use:   "explain [flags] [PROFILE...]",
		Short: "Say in words what a sandbox of a profile may touch",
		Long: `Explain reads lazaret.lock and says what a launch grants, of the named profiles
or of all: in the words in which launch asks for your agreement, sorted by what
they are about. What grants something of this machine is marked "!". It changes
nothing and asks nothing.`,
		Example: `  lazaret explain
  lazaret explain --all shell`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := d.openLock(o)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = profileNames(l.file)
			}
			return d.explain(cmd.OutOrStdout(), l, args, all)
		},
		ValidArgsFunction: d.completeProfiles,
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also what every sandbox has, and what grants nothing")
	return cmd
}

// topics are what grants are sorted by: the heading, and how the keys
// below profiles.NAME that it is about.
var topics = []struct {
	heading string
	keys    string
}{
	{"it runs", "image command setup runtime capabilities limits"},
	{"files", "mounts state"},
	{"the repository", "git"},
	{"the network", "network ports"},
	{"its environment", "env"},
	{"commands of this machine", "escalation"},
}

func (d *deps) explain(out io.Writer, l lockFile, profiles []string, all bool) error {
	grants := lock.Grants(l.file)
	for i, name := range profiles {
		if _, err := l.file.Profile(name); err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		text := explainProfile(grants, name, all)
		io.WriteString(out, d.lines(out, text))
		in, err := d.newInquiry(l)
		if err != nil {
			return err
		}
		if err := in.look(d, []string{name}); err != nil {
			return err
		}
		in.tellHost(out, d)
	}
	return nil
}

func explainProfile(grants []lock.Change, name string, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s\n", name)
	b.WriteString("  Its commands run as root of a sandbox with a kernel of\n" +
		"  its own (gVisor). They see the project, at /workspace,\n" +
		"  and of this machine nothing else but what stands here;\n" +
		"  they reach what is named here and nothing else.\n")
	told := make([][]string, len(topics)+1)
	left, folded := 0, false
	var list []lock.Change
	for _, g := range grants {
		if g.Profile != "" && g.Profile != name {
			continue
		}
		if !all && !g.Alarm && (g.Quiet() || ofThisBuild(g)) {
			left++
			continue
		}
		list = append(list, g)
	}
	if !all {
		list, folded = lock.Fold(list, digestLines)
	}
	for _, g := range list {
		mark := " "
		if g.Alarm {
			mark = "!"
		}
		i := topicOf(g)
		told[i] = append(told[i], mark+" "+g.Text)
	}
	for i, lines := range told {
		if len(lines) == 0 {
			continue
		}
		heading := "all profiles"
		if i < len(topics) {
			heading = topics[i].heading
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", heading, strings.Join(lines, "\n"))
	}
	if folded {
		fmt.Fprintf(&b, "\n  … and each of those that are only counted: lazaret explain --all %s\n", name)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n  … and %s that every sandbox has: lazaret explain --all %s\n", count(left, "line"), name)
	}
	return b.String()
}

// topicOf is the index in topics of what a grant is about; one that all
// profiles share comes after them.
func topicOf(c lock.Change) int {
	keys := strings.Split(c.Parts[0].Key, ".")
	if c.Profile == "" || len(keys) < 3 {
		return len(topics)
	}
	for i, t := range topics {
		if slices.Contains(strings.Fields(t.keys), keys[2]) {
			return i
		}
	}
	return len(topics)
}
