package main

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"lazaret/launch/trust"
)

// TestTellConfigFolds: the rest of a line that is wider than the terminal does
// not begin where lines begin, so it passes for none.
func TestTellConfigFolds(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		b, _ := io.ReadAll(ptmx)
		shown <- string(b)
	}()
	pad := strings.Repeat(".", 60-len("+ # "))
	e := &changedConfig{trust.Session{Exists: true}}
	e.tell(tty, &deps{env: func(k string) string { return map[string]string{"NO_COLOR": "1"}[k] }}, true,
		"# "+pad+"- volumes = []\n# "+pad+"@@ line 9\nx = 1\n")
	tty.Close()
	text := <-shown
	if !strings.Contains(text, "\n+ x = 1") {
		t.Errorf("not told:\n%s", text)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		switch {
		case len(line) > 60:
			t.Errorf("left to the terminal to break: %q", line)
		case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "@@ line 9"):
			t.Errorf("passes for a line of its own: %q", line)
		}
	}
}

// Whatever an agent does to the config, the question is asked over what it did.
func TestTellConfig(t *testing.T) {
	const (
		agent = "[profiles.agent]\nimage = \"a\"\n"
		mine  = "[profiles.mine]\nimage = \"a\"\n"
		keys  = "volumes = [{ host = \"~/.ssh\", container = \"/root/.ssh\" }]\n"
	)
	long := strings.Repeat("# more\n", 9)
	for name, tt := range map[string]struct {
		existed  bool
		old      string
		exists   bool
		new      string
		has, not []string
	}{
		"headers swapped": {true, agent + mine + keys, true, strings.NewReplacer("agent", "mine", "mine", "agent").Replace(agent + mine + keys),
			[]string{"- [profiles.agent]\n", "+ [profiles.agent]\n", "  volumes = "}, nil},
		"a line moved": {true, agent + mine + keys, true, agent + keys + mine,
			[]string{"+ [profiles.mine]\n", "- [profiles.mine]\n", "  volumes = "}, nil},
		"far below its header": {true, mine + agent + long, true, mine + agent + long + keys,
			[]string{"@@ line 11, below [profiles.agent]\n", "+ volumes = "}, []string{"mine"}},
		// Only what TOML takes for a header says whose a line is.
		"a header in a string": {true, mine + agent + "env = { X = \"\"\"\n[profiles.mine]\n" + long + "\"\"\" }\n", true, mine + agent + "env = { X = \"\"\"\n[profiles.mine]\n" + long + "\"\"\" }\n" + keys,
			[]string{", below [profiles.agent]\n", "+ volumes = "}, []string{"below [profiles.mine]"}},
		"a header in an array": {true, agent + "x = [\n[ \"a\" ],\n" + long + "]\n", true, agent + "x = [\n[ \"a\" ],\n" + long + "[ \"b\" ],\n]\n",
			[]string{", below [profiles.agent]\n"}, []string{"below [ "}},
		"no TOML": {true, agent + "x = \"\n" + mine + long, true, agent + "x = \"\n" + mine + long + keys,
			[]string{"@@ line 12\n", "+ volumes = "}, []string{"below"}},
		"gone":     {true, mine, false, "", []string{"it is gone", "- [profiles.mine]\n"}, nil},
		"empty":    {false, "", true, "", []string{"it is empty now\n"}, nil},
		"emptied":  {true, "", false, "", []string{"it is gone"}, nil},
		"appeared": {false, "", true, mine, []string{"+ [profiles.mine]\n"}, nil},
		"end":      {true, "a", true, "a\n", []string{"(no end of line)", "+ a"}, nil},
		"hostile": {true, mine, true, mine + "a\x1b[2J\r\n@@ line 3, below [profiles.mine]\n",
			[]string{"+ a\\x1b[2J\\x0d\n", "+ @@ line 3"}, []string{"\x1b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			tellConfig(&b, tt.existed, tt.old, tt.exists, tt.new)
			if strings.TrimSpace(b.String()) == "" {
				t.Error("nothing is told")
			}
			for _, s := range tt.has {
				if !strings.Contains(b.String(), s) {
					t.Errorf("no %q in\n%s", s, b.String())
				}
			}
			for _, s := range tt.not {
				if strings.Contains(b.String(), s) {
					t.Errorf("%q in\n%s", s, b.String())
				}
			}
		})
	}
}
