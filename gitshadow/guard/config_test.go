package guard

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// configs are files that git reads in ways one might not expect.
var configs = []string{
	"", "\n\n", "[core]\n\tfsmonitor = id\n", "[core] fsmonitor = id", "[CORE]\nFsMonitor=id", "[core]fsmonitor=id # x", "[core]\nfsmonitor=\"id # x\"\n",
	"[core]\n\tfsmonitor = a \\\n  b\n", "[core]\n\tfsmonitor = a\\\\b\n", "[core]\nfsmonitor = \"a\\\"b\"c\n", "[core]\nfsmonitor\n", "[core]\nfsmonitor ; x\n",
	"\ufeff[core]\nfsmonitor = id\n", "[core]\r\nfsmonitor = id\r\n", "[filter \"p q\"]\nclean = id", "[filter \"p\\\"q\"]\nclean = id", "[filter \"p.q]\"]\nclean = id\n",
	"[filter.P]\nclean = id\n", "[diff]\n external = id\n[diff]\n external =\n", "# [core]\n; x\n[a]\n b = c ; d\n", "[a]\nb = \"c\nd = e\n", "[a]\nb = \\x\nd = e\n",
	"[a]\nb = c \" d \" e \n", "[a]\nb = \"\" \n", "[a \"x\"] b = c\n[a]d=e", "[a]\nb = c\\\n", "[a]\nb = c\\", "[a]\nb-c = 1\n", "[a]\n1b = 1\n", "[a]\nb_c = 1\n", "[a b]\nc = d\n",
	"[a \"b\nc\"]\nd = e\n", "[a\n", "[]\nb = c\n", "[a.]\nb = c\n", "[.b]\nc = d\n", "[a] ]\n", "b = c\n", "[a]\nb = c\x00d\n", "[a]\n\tb = \tc\td\t\n", "[a]\nb =c\\n\\t\\bd\n", "[a]\nb = é\xff\n",
	"[a]\nb\\\n= c\n", "[ \"\"]A", "[a]\nb = c#d\n[e \"#\"]\nf = g\n", "[a]\n\x0bb = c\n", "[core]\n\tpager = \" \"\n",
}

// TestConfigAsGit: whatever git reads from a file, this reads too. It may read
// more, where git gives up.
func TestConfigAsGit(t *testing.T) {
	for _, text := range configs {
		if missed := missedByUs(t, text); len(missed) > 0 {
			t.Errorf("%q: git reads %q, and this does not", text, missed)
		}
	}
}

func missedByUs(t testing.TB, text string) (missed []string) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := git(t, "/", "config", "--no-includes", "--list", "-z", "--file", path)
	ours := map[string]bool{}
	settings, _ := parseConfig([]byte(text))
	for _, s := range settings {
		v := s.key() + "\n" + s.value
		if s.bare {
			v = s.key()
		}
		ours[squeeze(v)] = true
	}
	for _, v := range strings.Split(out, "\x00") {
		if v != "" && !strings.HasPrefix(v, "fatal: ") && !strings.HasPrefix(v, "error: ") && !ours[squeeze(v)] {
			missed = append(missed, v)
		}
	}
	return missed
}

var dots = regexp.MustCompile(`\.+`)

// squeeze makes all runs of spaces one: versions of git differ there.
func squeeze(s string) string {
	name, value, ok := strings.Cut(s, "\n")
	name = strings.Trim(dots.ReplaceAllString(name, "."), ".") // "[.a.]" has empty parts
	if !ok {
		return name
	}
	return name + "\n" + strings.Join(strings.Fields(value), " ")
}

func FuzzConfig(f *testing.F) {
	for _, c := range configs {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, _ := parseConfig([]byte(text))
		for _, s := range settings {
			if s.name == "" || strings.ToLower(s.name) != s.name {
				t.Errorf("%+v", s)
			}
			dangerOf(s)
			credential(s)
		}
	})
}

// FuzzConfigAsGit is for longer runs: it starts git for each input.
func FuzzConfigAsGit(f *testing.F) {
	for _, c := range configs {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if missed := missedByUs(t, text); len(missed) > 0 {
			t.Errorf("git reads %q", missed)
		}
	})
}

func FuzzAttributes(f *testing.F) {
	f.Add("*.x filter=p\n")
	f.Add("[attr]m diff=q\n\"a b\" merge=x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range driversIn([]byte(text)) {
			if !strings.Contains(d, "=") {
				t.Errorf("%q", d)
			}
		}
	})
}

// TestAttributesAsGit: every driver that git finds for a file is found.
func TestAttributesAsGit(t *testing.T) {
	for _, text := range []string{"f filter=p", "* diff=p merge=q\n", "\tf filter=p", "f\tfilter=p", "\"f\" filter=p", "[attr]m filter=p\nf m", "f filter=a filter=p", "f -text filter=p\r\n", "# f filter=p\nf filter=q"} {
		dir := tree(t, map[string]string{".gitattributes": text, "f": ""})
		must(t, dir, "init", "-q")
		ours := driversIn([]byte(text))
		for _, line := range strings.Split(must(t, dir, "check-attr", "filter", "diff", "merge", "--", "f"), "\n") {
			p := strings.Split(line, ": ")
			if len(p) == 3 && p[2] != "unspecified" && p[2] != "set" && p[2] != "unset" && !slices.Contains(ours, p[1]+"="+strings.TrimRight(p[2], "\r")) {
				t.Errorf("%q: git finds %q, this finds %q", text, line, ours)
			}
		}
	}
}

// TestDanger: values of settings that run something, and those that do not.
func TestDanger(t *testing.T) {
	for line, want := range map[string]bool{
		"[core] fsmonitor = true": false, "[core] fsmonitor": false, "[core] fsmonitor = x": true, "[core] pager = less": false, "[core] pager = \"less; id\"": true,
		"[core] hooksPath = x": true, "[core] editor = vi": true, "[core] autocrlf = true": false, "[user] name = command": false, "[user] helper = x": false,
		"[pager] log = false": false, "[pager] log = id": true, "[credential] helper = cache": false, "[credential] helper = /x": true, "[credential \"https://x\"] helper = !id": true,
		"[alias] a = log": false, "[alias] a = !id": true, "[remote \"o\"] url = git@github.com:a/b": false, "[remote \"o\"] url = https://[::1]/a": false,
		"[remote \"o\"] url = ext::id": true, "[remote \"o\"] url = -x": true, "[remote \"o\"] url = ssh://-oProxyCommand=id/x": true, "[remote \"o\"] url = -oProxyCommand=id:x": true, "[remote \"o\"] url = a@-oProxyCommand=id:x": true,
		"[remote \"o\"] uploadpack = git-upload-pack": false, "[url \"x\"] insteadOf = y": true, "[http] sslVerify = false": true, "[http] sslVerify = true": false,
		"[submodule \"a\"] update = checkout": false, "[submodule \"a\"] update = !id": true, "[lfs \"extension.x\"] clean = id": true, "[new] thingCommand = id": true, "[newer \"x\"] hook = id": true,
		"[includeIf \"gitdir:/x\"] path = y": true, "[filter \"lfs\"] required = true": false, "[hook \"x\"] command = id": true, "[trailer \"x\"] cmd = id": true, "[merge] tool = vimdiff": false,
	} {
		settings, err := parseConfig([]byte(line))
		if err != nil || len(settings) != 1 {
			t.Fatalf("%s: %v %v", line, settings, err)
		}
		if _, _, got := dangerOf(settings[0]); got != want {
			t.Errorf("%s: danger is %v", line, got)
		}
	}
}
