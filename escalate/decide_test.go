package escalate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	shellquote "github.com/kballard/go-shellquote"
	"golang.org/x/sys/unix"

	"lazaret/escalate/wire"
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
		AutoApproveExact: [][]string{{"aws", "whoami"}, {"ls", d.dir}, {"ls", d.ws}, {"ls", "--of=" + d.dir + "/volume/mine"}},
		Banned:           config.Banned,
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
	loop := filepath.Join(d.bin, "loop")
	os.Symlink(loop, loop)
	if _, _, err := d.find(loop); err == nil {
		t.Error("a loop was found")
	}
}

// TestMarks: a person sees what of a command the sandbox can change, and what
// does not show.
func TestMarks(t *testing.T) {
	d := newDeciding(t)
	script := filepath.Join(d.ws, "x.sh")
	os.WriteFile(script, nil, 0o644)
	os.Symlink("/etc/shadow", filepath.Join(d.ws, "report.txt"))
	os.Symlink(script, filepath.Join(d.dir, "leads-in"))
	os.MkdirAll(filepath.Join(d.dir, "home/sub"), 0o755)
	os.MkdirAll(filepath.Join(d.ws, "a/b/c"), 0o755)
	for _, name := range []string{"home/id_key", "ws/id_key", "ws/a/x"} {
		os.WriteFile(filepath.Join(d.dir, name), []byte(name), 0o644)
	}
	for from, to := range map[string]string{
		"ws/docs": filepath.Join(d.dir, "home/sub"), "ws/@key": filepath.Join(d.dir, "home/id_key"), "ws/<key": filepath.Join(d.dir, "home/id_key"),
		"ws/deep": "a/b", "ws/new-key": filepath.Join(d.dir, "home/none"), "ws/loop": "loop", "away": "home/sub",
	} {
		if err := os.Symlink(to, filepath.Join(d.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	// What a text says and the kernel does are not the same.
	if b, err := os.ReadFile(d.ws + "/docs/../id_key"); string(b) != "home/id_key" {
		t.Fatalf("the attack does not work: %q, %v", b, err)
	}
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	for _, tt := range []struct {
		argv []string
		want string // "arg:kind …"
	}{
		{[]string{"aws", "sts", "get-caller-identity"}, ""},
		{[]string{"aws", "x.sh"}, "1:writable"},
		{[]string{"aws", "./x.sh", script, "not/there"}, "1:writable 2:writable 3:writable"},
		{[]string{"aws", "--file=x.sh", "-fx.sh", "file://" + script, "@x.sh", "k=v,src=x.sh:ro"}, "1:writable 2:writable 3:writable 4:writable 5:writable"},
		{[]string{"aws", "report.txt"}, "1:link"},
		{[]string{"aws", "@key", "<key", "--x=@key", "@other"}, "1:link 2:link 3:link"}, // a link can have such a name
		{[]string{"aws", filepath.Join(d.dir, "leads-in")}, "1:writable"},
		{[]string{"aws", filepath.Join(d.dir, "volume", "new")}, "1:writable"},
		{[]string{"aws", "/workspace/x.sh", "/run/lazaret/certs"}, "1:inside 2:inside"},
		{[]string{"aws", "/etc/passwd", "../outside"}, ""},
		// As the kernel goes, not as the text reads.
		{[]string{"aws", "docs/../id_key", "docs/../../bin/aws", "--key=docs/../id_key"}, "1:link 2:link 3:writable 3:link"},
		{[]string{"aws", "deep/../../x", "deep/c/../../x.sh"}, "1:link 2:link"},
		{[]string{"aws", "bin/../../home/id_key", "nothing/../../home/id_key", "."}, "1:writable 2:writable 3:writable"},
		{[]string{"aws", filepath.Join(d.dir, "leads-in") + "/..", filepath.Join(d.dir, "away") + "/../ws/x.sh"}, "1:writable 2:writable"},
		{[]string{"aws", "new-key", "loop", "/proc/self/cwd/x.sh", "/proc/thread-self/cwd/new"}, "1:link 2:writable 3:writable 4:writable"},
		{[]string{"aws", "-odocs/../id_key", "@docs/../id_key", "/etc:docs/../id_key:ro", "f=<docs/../id_key;type=x"}, "1:writable 1:link 2:link 3:link 4:writable 4:link"},
		{[]string{"aws", strings.Repeat("a,", 100) + "report.txt"}, "1:writable"},
		{[]string{"aws", "a\u202eb", "a\u200b", "x\x1b[2K", "a\nb", "caf\u00e9", "\u00a0\u00a0"}, "1:hidden 2:hidden 3:hidden 4:hidden 6:hidden"},
		{[]string{"aws", "p\u0430ypal", "\u0434\u0430", "a\u2215b", "\uff41"}, "1:alike 3:alike 4:alike"},
		{[]string{"bash", "x.sh"}, "1:writable 0:runs"},
		{[]string{"ctx"}, "0:runs"},
		{[]string{"env", "X=1", "git", "push"}, "2:writable 0:runs"}, // there is a file git
		{[]string{"git", "push"}, "0:runs"},
	} {
		var got []string
		for _, k := range m.Marks(tt.argv) {
			got = append(got, string(rune('0'+k.Arg))+":"+string(k.Kind))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %q, want %q", tt.argv, got, tt.want)
		}
	}
	many := m.Marks(append([]string{"ls"}, slices.Repeat([]string{"x.sh"}, 30000)...))
	if n := len(many); n != argsLook || many[n-1].Arg != argsLook || !strings.Contains(many[n-1].Text, "all that follow") {
		t.Errorf("%d marks, the last %+v", n, many[n-1])
	}
	// Nor does looking take longer than that, whatever the links are.
	at := d.ws
	for i := range 30 {
		os.Symlink(strings.Repeat("./bin/../", 400), filepath.Join(d.ws, fmt.Sprint("l", i)))
		at += fmt.Sprint("/l", i)
	}
	start := time.Now()
	slow := m.Marks(append([]string{"ls"}, slices.Repeat([]string{at}, argsLook-1)...))
	if n := len(slow); n != argsLook-1 || !strings.Contains(slow[n-1].Text, "too much to look at") || time.Since(start) > 20*time.Second {
		t.Errorf("%d marks after %v, the last %+v", n, time.Since(start), slow[n-1])
	}
	all := m.all(wire.Request{Command: "ls \u202e", Justification: "please\nx\u200b", Stdin: []byte("a\x1b[2K\n")}, []string{"ls"})
	var got []int
	for _, k := range all {
		got = append(got, k.Arg)
	}
	if !slices.Equal(got, []int{MarkReason, MarkRaw, MarkStdin}) {
		t.Errorf("%+v", all)
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

// FuzzMarks: no argument makes marking fail, or names an argument that is none;
// and a path leads where the kernel says.
func FuzzMarks(f *testing.F) {
	d := newDeciding(f)
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	os.MkdirAll(filepath.Join(d.ws, "a/b/c"), 0o755)
	for from, to := range map[string]string{"ws/l": "a/b/c", "ws/o": d.bin, "ws/a/u": "../..", "ws/a/r": "//" + d.dir + "/./volume", "ws/loop": "loop", "ws/a/b/i": "../../l/../i2", "ws/a/i2": "u"} {
		if err := os.Symlink(to, filepath.Join(d.dir, from)); err != nil {
			f.Fatal(err)
		}
	}
	for _, s := range []string{"l/../../a", "o/../ws/l", "a/u/volume", "a/r/mine", "loop/..", "l/../i/../bin", "a/b/i/ws/./l//..", "x", "a=b:c,d", "@", "file://", "\x00", "/..//", strings.Repeat("=:,", 50)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, k := range m.Marks([]string{"ls", s}) {
			if k.Arg < 0 || k.Arg > 1 || k.Text == "" {
				t.Fatalf("%q: %+v", s, k)
			}
		}
		fd, err := unix.Open(d.ws+"/"+s, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil || s == "" || s[0] == '/' || strings.ContainsRune(s, 0) || len(s) > 1000 {
			unix.Close(fd)
			return
		}
		defer unix.Close(fd)
		real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		left := filesLook
		if got := m.lead(s, &left); err == nil && got.end != real && !strings.HasPrefix(real, "/proc/") {
			t.Fatalf("%q leads to %s, and not to %s", s, real, got.end)
		}
	})
}
