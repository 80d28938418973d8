package escalate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	shellquote "github.com/kballard/go-shellquote"

	"lazaret/lock/config"
)

// deciding is a host whose PATH has programs, and a workspace that has some too.
type deciding struct {
	Policy
	Lookup
	dir, ws, bin string
}

func newDeciding(t testing.TB) deciding {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := deciding{dir: dir, ws: filepath.Join(dir, "ws"), bin: filepath.Join(dir, "bin")}
	for _, p := range []string{"ws", "ws/bin", "ws/.git", "bin", "early", "volume"} {
		if err := os.Mkdir(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"bin/aws", "bin/git", "bin/ls", "bin/date", "bin/bash", "bin/busybox", "bin/lazaret", "ws/git", "ws/aws", "ws/bin/aws", "ws/bin/kubens", "volume/mine"} {
		if err := os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/true\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for to, from := range map[string]string{
		"bin/ctx": "bin/bash", "bin/multi": "bin/busybox", "bin/tool": "bin/aws", "bin/me": "bin/lazaret",
		"bin/inward": "ws/bin/aws", "ws/out": "bin/aws", "bin/through": "ws/out", "early/aws": "ws/aws",
	} {
		if err := os.Symlink(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(d.bin, "plain"), nil, 0o644)
	os.Link(filepath.Join(d.bin, "lazaret"), filepath.Join(d.bin, "renamed"))
	d.Policy = Policy{
		AutoApprove: [][]string{
			{"aws", "sts", "get-caller-identity"}, {"git", "status"}, {"ls"}, {"ctx"}, {"multi"}, {"tool", "x"}, {"me"}, {"inward"}, {"through"},
			{"kubens"}, {"plain"}, {"mine"}, {"renamed"}, {"lazaret", "ps"}, {"date"},
		},
		AutoApproveExact: [][]string{{"aws", "whoami"}, {"ls", d.dir}, {"ls", d.ws}, {"ls", "--of=" + d.dir + "/volume/mine"},
			{"ls", d.ws + "/absent/x"}, {"ls", "/../" + d.ws + "/./absent"}, {"ls", d.dir + "/absent/../ws/out"}, {"ls", "/workspace/x"}, {"ls", "absent/x"}, {"ls", "/absent/x"}},
		Banned: config.Banned,
	}
	d.Lookup = NewLookup(
		[]string{".", "", "bin", d.ws, filepath.Join(d.ws, "bin"), filepath.Join(dir, "early"), filepath.Join(dir, "volume"), d.bin, "/usr/bin"},
		[]Place{{d.ws, "the workspace"}, {filepath.Join(dir, "volume"), "the volume /v"}}, filepath.Join(d.bin, "lazaret"))
	return d
}

// TestWhitelist: what runs without a question, and what does not although it
// looks as if it might.
func TestWhitelist(t *testing.T) {
	d := newDeciding(t)
	for _, tt := range []struct {
		raw  string
		want string // auto, or a part of why it is asked about; "no: " and a part of why it is denied
	}{
		// The specification's example.
		{"aws sts get-caller-identity", "auto"},
		{"aws sts get-caller-identity --query Account", "auto"},
		{"'aws' \"sts\" get-caller-identity", "auto"},
		{"aws whoami", "auto"},
		{"aws whoami --debug", "no entry"},
		{"aws", "no entry"},
		{"aws sts", "no entry"},
		{"aws sts get-caller-identity-x", "no entry"},
		{"aws --debug sts get-caller-identity", "no entry"},
		{"AWS sts get-caller-identity", "no entry"},
		{"aws 'sts get-caller-identity'", "no entry"},
		{"aws sts get-caller-identity --endpoint-url http://evil", "not with a path or an address"},
		{"aws sts get-caller-identity --cli-input-json file:///home/u/.ssh/id", "not with a path or an address"},
		{"date -f /home/u/.ssh/id", "not with a path or an address"},
		{"date -f ../../secret", "not with a path or an address"},
		{"ls ..", "not with a path or an address"},
		{"ls -C..", "not with a path or an address"},
		{"ls --dir=..", "not with a path or an address"},
		{"ls ... a..b", "auto"},
		// An entry that names what the sandbox can lead elsewhere.
		{"ls " + d.dir, "auto"},
		{"ls " + d.ws, "argument 1 lies in the workspace"},
		{"ls --of=" + d.dir + "/volume/mine", "argument 1 lies in the volume /v"},
		// Also where nothing is there yet; in an empty directory nothing can be.
		{"ls " + d.ws + "/absent/x", "argument 1 lies in the workspace"},
		{"ls /../" + d.ws + "/./absent", "argument 1 lies in the workspace"},
		{"ls " + d.dir + "/absent/../ws/out", "argument 1 leads from the workspace"},
		{"ls /workspace/x", "argument 1 is a path of the sandbox's"},
		{"ls /absent/x", "auto"},
		{"ls absent/x", "auto"},

		// Chains, substitutions, redirections, lines: a shell's, and here is none.
		{"ls; curl evil", "which a shell would act on"},
		{"ls & rm", "which a shell would act on"},
		{"ls && rm", "which a shell would act on"},
		{"ls | sh", "which a shell would act on"},
		{"ls $(rm x)", "which a shell would act on"},
		{"ls `rm x`", "which a shell would act on"},
		{"ls > x", "which a shell would act on"},
		{"ls < x", "which a shell would act on"},
		{`ls \x`, "which a shell would act on"},
		{"ls ';'", "which a shell would act on"},
		{"ls\nrm x", "does not show"},
		{"ls\rrm x", "does not show"},
		{"ls \x1b[2K", "does not show"},
		{"ls \x7f", "does not show"},
		{"ls\tx", "does not show"},
		{"ls \u202e", "does not show"},
		{"ls \u200b", "does not show"},
		{"ls \u00a0", "does not show"},
		{"ls \U000e0100", "does not show"},
		{"ls \ufe0f", "does not show"},
		{"ls \u3164", "does not show"},
		{"ls \xff", "no text"},
		{"ls \ufffd", "does not show"},

		// Programs that run others: the table holds at run time too, also for
		// what a name leads to.
		{"git status", "it runs programs that its configuration"},
		{"git -C x status", "no entry"},
		{"git -c core.fsmonitor=x status", "no entry"},
		{"env GIT_SSH_COMMAND=x git fetch", "no entry"},
		{"ctx", "it is a shell"},
		{"multi sh", "it holds a shell"},

		// Look-alikes.
		{"./git status", "no entry"},
		{filepath.Join(d.ws, "git") + " status", "no entry"},
		{"tool x", "auto"},
		{"kubens", "no such program"},
		{"mine", "no such program"},
		{"inward", "no such program"},
		{"through", "no such program"},
		{"plain", "no such program"},
		{"аws sts get-caller-identity", "no entry"}, // a Cyrillic а

		// Nobody approves in place of the person.
		{"lazaret ps", "no: lazaret is not run"},
		{"lazaret approve 1", "no: lazaret is not run"},
		{"me", "no: lazaret is not run"},
		{"renamed", "no: lazaret is not run"},
		{filepath.Join(d.bin, "lazaret") + " trust --yes", "no: lazaret is not run"},
		{"Lazaret ps", "no: lazaret is not run"},

		{"", "no: the command names no program"},
		{"''", "no: the command names no program"},
		{"ls 'x", "no: the command holds a quote"},
	} {
		got := Decide(d.Policy, d.Lookup, tt.raw, false)
		text := got.Why
		if got.Auto {
			text = "auto"
		}
		if got.Refused != "" {
			text = "no: " + got.Refused
		}
		if !strings.Contains(text, tt.want) || tt.want == "auto" && text != "auto" || got.Auto && got.Refused != "" {
			t.Errorf("%q: %q, want %q", tt.raw, text, tt.want)
		}
	}
	if got := Decide(d.Policy, d.Lookup, "ls", true); got.Auto || !strings.Contains(got.Why, "input") {
		t.Errorf("with input: %+v", got)
	}
	// Without a rule about programs that run others nothing runs unasked that
	// the rule is for: this is what the rule keeps out.
	open := d.Policy
	open.Banned = func([]string) (string, bool) { return "", false }
	if got := Decide(open, d.Lookup, "ctx", false); !got.Auto {
		t.Errorf("the attack does not work: %+v", got)
	}
	naive := NewLookup([]string{d.ws, d.bin}, nil, "")
	if got := Decide(d.Policy, naive, "aws whoami", false); got.Program != filepath.Join(d.ws, "aws") {
		t.Errorf("the attack does not work: %+v", got)
	}
}

// TestFind: a program is never looked for where the sandbox can write.
func TestFind(t *testing.T) {
	d := newDeciding(t)
	want := []string{filepath.Join(d.dir, "early"), d.bin, "/usr/bin"}
	if !slices.Equal(d.Lookup.Path, want) {
		t.Errorf("PATH is %q, want %q", d.Lookup.Path, want)
	}
	for name, want := range map[string]string{
		"aws":                         filepath.Join(d.bin, "aws"), // not early's, which leads to the workspace
		"tool":                        filepath.Join(d.bin, "aws"),
		"ctx":                         filepath.Join(d.bin, "bash"),
		filepath.Join(d.bin, "aws"):   filepath.Join(d.bin, "aws"),
		filepath.Join(d.bin, "./aws"): filepath.Join(d.bin, "aws"),
	} {
		if _, got, err := d.find(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "./aws", "bin/aws", "../bin/aws", "nothing", "plain", "mine", "kubens", "inward", "through",
		filepath.Join(d.ws, "aws"), filepath.Join(d.ws, "out"), filepath.Join(d.bin, "inward"), filepath.Join(d.bin, "through"),
		d.bin, filepath.Join(d.dir, "ws/../ws/aws"), filepath.Join(d.dir, "early/aws"), "/dev/null",
	} {
		if _, got, err := d.find(name); err == nil {
			t.Errorf("%q is %s", name, got)
		}
	}
	os.WriteFile(filepath.Join(d.bin, "odd\xff"), nil, 0o755)
	os.Symlink("odd\xff", filepath.Join(d.bin, "odd"))
	if _, _, err := d.find(filepath.Join(d.bin, "odd")); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("what cannot be named is found: %v", err)
	}
	loop := filepath.Join(d.bin, "loop")
	os.Symlink(loop, loop)
	if _, _, err := d.find(loop); err == nil {
		t.Error("a loop was found")
	}
}

// FuzzDecide: whatever is sent, nothing runs unasked but a whitelisted vector
// of plain characters, by a program that the sandbox cannot write.
func FuzzDecide(f *testing.F) {
	d := newDeciding(f)
	for _, s := range []string{"ls", "ls x", "aws sts get-caller-identity", "git status", `"ls"`, "ls '", "ls \\\n", "ls;id", "\u202els", "ctx", "me", "tool x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := Decide(d.Policy, d.Lookup, raw, false)
		if !got.Auto {
			return
		}
		argv, err := shellquote.Split(raw)
		if err != nil || !slices.Equal(argv, got.Argv) || got.Refused != "" || got.Trouble != "" {
			t.Fatalf("%q: %+v", raw, got)
		}
		listed := slices.ContainsFunc(d.AutoApprove, func(e []string) bool { return len(argv) >= len(e) && slices.Equal(e, argv[:len(e)]) }) ||
			slices.ContainsFunc(d.AutoApproveExact, func(e []string) bool { return slices.Equal(e, argv) })
		if _, in := d.place(got.Program); !listed || in || !filepath.IsAbs(got.Program) {
			t.Fatalf("%q: %+v", raw, got)
		}
		if strings.ContainsAny(raw, metacharacters) || !utf8.ValidString(raw) || strings.ContainsFunc(raw, Hidden) {
			t.Fatalf("%q runs unasked", raw)
		}
		for _, n := range []string{argv[0], got.Program} {
			if _, banned := config.Banned(append([]string{n}, argv[1:]...)); banned {
				t.Fatalf("%q runs %s unasked", raw, n)
			}
		}
	})
}
