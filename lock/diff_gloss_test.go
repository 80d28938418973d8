package lock

import (
	"slices"
	"strings"
	"testing"
)

// TestGlosses: each word of lazaret's that has an explanation is shown with it.
func TestGlosses(t *testing.T) {
	shown := 0
	for _, g := range glosses {
		for word, means := range g.means {
			f := richFile(t)
			p := f.Profiles["claude"]
			switch g.path[len(g.path)-1] {
			case "state":
				p.State = word
			case "mode":
				p.Git.Mode = word
			case "branch":
				p.Git.Branch = word
			case "dns":
				p.Network.DNS = word
			default:
				t.Fatalf("no test for %v", g.path)
			}
			f.Profiles["claude"] = p
			want := " (" + strings.ReplaceAll(means, "{}", "claude") + ")"
			if !slices.ContainsFunc(Grants(f), func(c Change) bool { return c.Profile == "claude" && strings.HasSuffix(c.Text, want) }) {
				t.Errorf("%v = %q is not explained", g.path, word)
			}
			shown++
		}
	}
	if shown < 9 {
		t.Errorf("only %d words were tried", shown)
	}
	// What is taken away needs no explanation.
	for _, c := range Diff(richFile(t), nil) {
		if strings.Contains(c.Text, "made from your HEAD") {
			t.Errorf("explained: %s", c.Text)
		}
	}
}
