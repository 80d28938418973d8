package lock

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lazaret/lock/config"
)

// under is what the parts of configs that documents show are parts of.
const under = `
[storage]
data_root = "~/.local/share/lazaret"
[network]
default_allow = []
default_deny = ["10.0.0.0/8"]
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.claude]
image = "docker.io/library/node:24"
`

var (
	fenced    = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	indented  = regexp.MustCompile(`(?m)(?:^ {4}.*\n(?:[ \t]*\n)*)+`)
	startsKey = regexp.MustCompile(`^(?:\[[a-z]|[a-z_]+ = )`)
)

// tomlBlocks gives the blocks of a document that are TOML. Keys without a table
// are a profile's.
func tomlBlocks(text string) (out []string) {
	blocks := indented.FindAllString(fenced.ReplaceAllString(text, ""), -1)
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		if m[1] == "toml" {
			blocks = append(blocks, m[2])
		}
	}
	for _, b := range blocks {
		b = strings.ReplaceAll("\n"+b, "\n    ", "\n")[1:]
		switch {
		case !startsKey.MatchString(b):
		case b[0] == '[':
			out = append(out, b)
		default:
			out = append(out, "[profiles.claude]\n"+b)
		}
	}
	return out
}

// lockOver locks text as a project's config over the one that it is a part of.
func lockOver(t *testing.T, text string) error {
	t.Helper()
	c, err := config.Load([]config.Layer{
		{Kind: config.Workspace, Name: "lazaret.toml", Data: []byte(under)},
		{Kind: config.Override, Name: "part.toml", Data: []byte(text)},
	})
	if err != nil {
		return err
	}
	req := request(t, under, &registry{})
	req.Config = c
	_, _, err = Build(context.Background(), req)
	return err
}

// TestDocsTOML: what documents show of a config can be locked.
func TestDocsTOML(t *testing.T) {
	files := []string{"../README.md", "../CONTRIBUTING.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range tomlBlocks(string(text)) {
			found++
			if err := lockOver(t, b); err != nil {
				t.Errorf("%s:\n%s\n%v", file, b, err)
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d parts of configs were found", found)
	}
	whole, err := os.ReadFile("../example.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := lockOver(t, string(whole)); err != nil {
		t.Errorf("example.toml: %v", err)
	}
}

// The check finds what it is there for.
func TestDocsTOMLCatches(t *testing.T) {
	text := "Say\n\n    ports = [\"80\"]\n\nor\n\n    [profiles.claude]\n    image = \"x\"\n\n    [profiles.claude.env]\n    A = \"b\"\n\nand\n\n    lazaret lock\n\n```toml\nmemory = 1\n```\n"
	blocks := tomlBlocks(text)
	if len(blocks) != 3 || !strings.Contains(blocks[1], "A = \"b\"") || blocks[2] != "[profiles.claude]\nmemory = 1\n" {
		t.Errorf("blocks are %q", blocks)
	}
	for _, bad := range []string{"[profiles.claude]\nallow_host = []", "[profiles.claude]\nallow_hosts = [\"*\"]", "[profiles.claude\n"} {
		if lockOver(t, bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
