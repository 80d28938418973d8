package config

import (
	"strings"
	"testing"
)

// Every program here was found to run another program, or code, for whoever
// may choose its arguments.
func TestBannedPrograms(t *testing.T) {
	for name := range strings.FieldsSeq(`
		git sh bash dash zsh fish env sudo doas su xargs find ssh scp rsync tar awk gawk mawk sed perl
		python python2 python3 python3.12 python3-dbg python3.13t pypy3 node nodejs node24 deno bun ruby ruby3.3 php php8.2 lua lua5.4 luajit-2.1.0-beta3
		make cmake npm npx pnpm yarn pip pip3 pip3.12 cargo cargo-fmt go go1.27rc1 docker docker-compose podman nerdctl kubectl helm terraform
		systemctl systemd-run systemd-inhibit crontab at nohup timeout nice strace gdb vim vim.basic vim.tiny vi nano emacs less more man tee dd curl wget
		ld.so ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-musl-x86_64.so.1 busybox busybox.static bash-static
		setsid flock watch script parallel stdbuf rustc gh psql sqlite3 gpg gpg2 tmux nix just uv emacsclient
		gcc gcc-12 g++-14 clang-19 x86_64-linux-gnu-gcc x86_64-linux-gnu-gcc-12 aarch64-linux-gnu-g++ arm-none-eabi-gcc x86_64-w64-mingw32-gcc
		git-lfs git-upload-pack git-shell lazaret lazaret-escalate nc.traditional nc.openbsd socat cp mv ln install
		GIT Bash PYTHON3`) {
		for _, program := range []string{name, "/usr/bin/" + name, "/opt/x y/" + name} {
			if _, banned := Banned([]string{program, "x"}); !banned {
				t.Errorf("%s is not banned", program)
			}
		}
	}
}

func TestBannedSeesThroughPrefixes(t *testing.T) {
	for _, c := range []struct{ argv, reason string }{
		{"env A=1 git status", "starts git, which runs programs that its configuration, hooks, aliases and -c options name"},
		{"/usr/bin/env -i -u HOME -C /tmp A=1 B= git", "starts git, which runs programs that its configuration, hooks, aliases and -c options name"},
		{"env -- git", "starts git, which runs programs that its configuration, hooks, aliases and -c options name"},
		{"env env env bash", "starts bash, which is a shell"},
		{"GIT_SSH_COMMAND=x git fetch", "starts git, which runs programs that its configuration, hooks, aliases and -c options name"},
		{"A=1 aws sts", "starts with a variable's value, which only a shell understands"},
		{"env", "runs the program that its arguments name"},
		{"env A=1", "runs the program that its arguments name"},
		{"env aws sts", "runs the program that its arguments name"},
		{"./git status", "is named by a relative path, which may lead to a file of the sandbox"},
		{"bin/tool", "is named by a relative path, which may lead to a file of the sandbox"},
		{"~/bin/tool", "is named by a relative path, which may lead to a file of the sandbox"},
		{strings.Repeat("a", 256), "is too long to be a program's name"},
	} {
		reason, banned := Banned(strings.Fields(c.argv))
		if !banned || reason != c.reason {
			t.Errorf("%s: got %q, %v; want %q", c.argv, reason, banned, c.reason)
		}
	}
	if reason, banned := Banned([]string{"env", "-S", "A=1 git status"}); !banned || !strings.HasPrefix(reason, "starts git") {
		t.Errorf("env -S: got %q", reason)
	}
	for _, argv := range [][]string{nil, {}, {""}, {"", "x"}} {
		if reason, banned := Banned(argv); !banned || reason != "names no program" {
			t.Errorf("%q: got %q, %v", argv, reason, banned)
		}
	}
}

func TestNotBanned(t *testing.T) {
	for name := range strings.FieldsSeq("aws date hostname uname id whoami gcloud az jq cat ls grep base64 sha256sum uptime df /usr/local/bin/aws b3sum notify-send x86_64-linux-gnu-strings") {
		if reason, banned := Banned([]string{name}); banned {
			t.Errorf("%s is banned: %s", name, reason)
		}
	}
}

// A word that stands twice in the table hides a second reason.
func TestBannedTable(t *testing.T) {
	seen := map[string]string{}
	for _, g := range bannedPrograms {
		for p := range strings.FieldsSeq(g.programs) {
			if p != strings.ToLower(p) {
				t.Errorf("%s is not lower case and so never found", p)
			}
			if was, ok := seen[p]; ok {
				t.Errorf("%s is listed as one that %s and one that %s", p, was, g.reason)
			}
			seen[p] = g.reason
		}
	}
}

func TestParseCommand(t *testing.T) {
	for in, want := range map[string][]string{
		"aws sts get-caller-identity": {"aws", "sts", "get-caller-identity"},
		`a "b c" 'd "e"' f''g`:        {"a", "b c", `d "e"`, "fg"},
		"  a  ''  ":                   {"a", ""},
		"a *.x ~ {b} #c !d":           {"a", "*.x", "~", "{b}", "#c", "!d"},
	} {
		got, err := ParseCommand(in)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q gives %q, %v; want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{
		"", " ", "''", "'' x", `a "b`, "a 'b", "a;b", "a|b", "a&b", "a$b", "a(b", "a)b", "a`b", "a<b", "a>b", `a\ b`, `a\`, "a\nb", "a\rb", "a\tb", "a\x00b", "a\x1bb", "a\u202eb",
		"a 'b;c'", `a "$b"`, "a\u200bb", "a\xffb",
	} {
		if argv, err := ParseCommand(bad); err == nil {
			t.Errorf("%q gives %q", bad, argv)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, seed := range []string{"aws sts get-caller-identity", `a "b c" 'd'`, "a;b", "env A=1 git", "'", "a\u202e", "x86_64-linux-gnu-gcc-12"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		argv, err := ParseCommand(s)
		if err != nil {
			return
		}
		if len(argv) == 0 || argv[0] == "" {
			t.Fatalf("%q names no program: %q", s, argv)
		}
		for _, arg := range argv {
			if strings.ContainsAny(arg, metacharacters) || checkVisible(arg, "") != nil {
				t.Fatalf("%q let %q through", s, arg)
			}
		}
		reason, banned := Banned(argv)
		if banned != (reason != "") {
			t.Fatalf("%q: %q, %v", argv, reason, banned)
		}
		// A prefix cannot make a banned program acceptable.
		if banned {
			if _, still := Banned(append([]string{"env", "A=1"}, argv...)); !still {
				t.Fatalf("env makes %q acceptable", argv)
			}
			if strings.Contains(argv[0], "/") {
				return
			}
			if _, still := Banned(append([]string{"/usr/bin/" + argv[0]}, argv[1:]...)); !still && !assignment.MatchString(argv[0]) {
				t.Fatalf("a path makes %q acceptable", argv)
			}
		}
	})
}
