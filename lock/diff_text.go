package lock

import (
	"fmt"
	"strings"
)

// Line is the change as one line of a listing: a mark where it is an alarm,
// then what happened.
func (c Change) Line() string {
	mark := " "
	if c.Alarm {
		mark = "!"
	}
	return mark + " " + c.Op + " " + c.Text
}

// Alarms counts the changes that grant something of the host.
func Alarms(list []Change) int {
	n := 0
	for _, c := range list {
		if c.Alarm {
			n++
		}
	}
	return n
}

// Heading names what the changes of one profile are about. list holds changes
// of that profile only.
func Heading(list []Change) string {
	name := list[0].Profile
	if name == "" {
		return "all profiles"
	}
	for _, c := range list {
		for _, p := range c.Parts {
			if p.Key != keyPath([]string{"profiles", name, "image", "ref"}) {
				continue
			}
			if p.Old == nil {
				return "profile " + name + " (new)"
			}
			if p.New == nil {
				return "profile " + name + " (gone)"
			}
		}
	}
	return "profile " + name
}

// Groups splits sorted changes by profile.
func Groups(list []Change) [][]Change {
	var out [][]Change
	for i, c := range list {
		if i == 0 || c.Profile != list[i-1].Profile {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// Text tells changes to a person: a heading for each profile, then one line a
// change.
func Text(list []Change) string {
	var b strings.Builder
	for i, g := range Groups(list) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Heading(g) + "\n")
		for _, c := range g {
			b.WriteString(c.Line() + "\n")
		}
	}
	return b.String()
}

// Markdown tells changes as a comment on a pull request. What the lock says
// stands in fenced blocks, where nothing is markup, nobody is mentioned and no
// image is fetched: each line begins with a mark, so none can end its block.
func Markdown(list []Change) string {
	var b strings.Builder
	b.WriteString("### What the sandboxes may touch: changes of `lazaret.lock`\n\n")
	if len(list) == 0 {
		b.WriteString("Nothing changed.\n")
		return b.String()
	}
	switch n := Alarms(list); n {
	case 0:
		b.WriteString("No change grants more of the host.\n")
	case 1:
		b.WriteString("**1 change grants more of the host.** It is marked `!`.\n")
	default:
		fmt.Fprintf(&b, "**%d changes grant more of the host.** They are marked `!`.\n", n)
	}
	for _, g := range Groups(list) {
		var told, quiet []Change
		for _, c := range g {
			if c.rank() >= quietRank {
				quiet = append(quiet, c)
			} else {
				told = append(told, c)
			}
		}
		fmt.Fprintf(&b, "\n#### %s\n", Heading(g))
		if len(told) > 0 {
			b.WriteByte('\n')
			fence(&b, told)
		}
		if len(quiet) > 0 {
			fmt.Fprintf(&b, "\n<details><summary>%d more: bookkeeping, and what every sandbox has</summary>\n\n", len(quiet))
			fence(&b, quiet)
			b.WriteString("\n</details>\n")
		}
	}
	return b.String()
}

// quietRank is where changes begin that grant nothing.
const quietRank = 4

// fence writes changes as a block in the diff language, which colours lines by
// their first character.
func fence(b *strings.Builder, list []Change) {
	b.WriteString("```diff\n")
	for _, c := range list {
		switch line := c.Op + " " + c.Text; {
		case c.Alarm:
			b.WriteString("! " + line + "\n")
		case c.Op == "~":
			b.WriteString("# " + line + "\n")
		default:
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("```\n")
}

// Quiet reports whether the change grants nothing: bookkeeping, or what every
// sandbox has.
func (c Change) Quiet() bool { return c.rank() >= quietRank }

// MountKey is the key by which a Part names a mount that came or went.
func MountKey(profile, target string) string {
	return keyPath([]string{"profiles", profile, "mounts", target, "kind"})
}
