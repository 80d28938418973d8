package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lazaret/testdata/attacks"
)

const attacksDoc = "../../docs/attacks.md"

const attacksDocHead = `# Attacks

What an agent, an image or a repository may try, what became of it, and how the same does against "podman run" with the same
mounts. This page is written from the catalogue in [testdata/attacks](../testdata/attacks); TestEndToEndAttacks tries all that is
tried by a script against real sandboxes, of lazaret and of plain podman, and fails where a column is not as it stands here. You
can do the same with a profile of your own:

    lazaret doctor --attack PROFILE
    lazaret doctor --attack --plain PROFILE

- **withstood**: tried in the sandbox, without success. **succeeds**: it does what it wants, and is in the list below the table.
- "a test": it needs a world of its own, such as a hostile image or an internet, and is tried there.
- Plain podman "succeeds": the same script does what it wants. "holds": podman withstands it too; then what the last column names
  shows that the script can succeed. "not tried": why stands in the catalogue.
- The harness brings its own shell and small programs, so that no program of an image says what became of an attack. A few
  attacks need more, such as sed: they come last, and there an image can lie. What the harness sees for itself (files
  beside the workspace, what reaches this machine, what the person is asked, what a terminal gets) it can never hide. Workspaces
  that a person is made to agree to are written by the harness, out of every sandbox's reach.

`

// writeAttacksDoc makes docs/attacks.md of the catalogue.
func writeAttacksDoc(all []attacks.Attack) string {
	var b, known strings.Builder
	b.WriteString(attacksDocHead)
	area := ""
	for _, a := range all {
		if a.Area != area {
			area = a.Area
			fmt.Fprintf(&b, "\n## %s\n\n| Attack | Goal | Lazaret | Plain podman | Also shown by |\n|---|---|---|---|---|\n", area)
		}
		lazaret, plain, by := "withstood", a.Plain, a.Control
		switch {
		case a.Test != "":
			lazaret, plain, by = "withstood, in a test", "", a.Test
		case a.Known != "":
			lazaret = "**succeeds**"
			fmt.Fprintf(&known, "- %s: %s.\n", a.ID, a.Known)
		}
		if by != "" {
			by = "`" + by + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.ID, strings.ReplaceAll(a.Goal, "|", `\|`), lazaret, plain, by)
	}
	fmt.Fprintf(&b, "\n## What succeeds\n\n%s", known.String())
	return strings.Replace(b.String(), "\n\n\n", "\n\n", -1)
}

// TestAttacksDoc: docs/attacks.md is what the catalogue says. LAZARET_UPDATE=1
// writes it anew.
func TestAttacksDoc(t *testing.T) {
	want := writeAttacksDoc(loadAttacks(t))
	if os.Getenv("LAZARET_UPDATE") == "1" {
		if err := os.WriteFile(attacksDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(attacksDoc); string(got) != want {
		t.Error("docs/attacks.md is not what testdata/attacks says: LAZARET_UPDATE=1 go test ./cmd/lazaret -run TestAttacksDoc")
	}
}
