package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lazaret/image"
)

// guest is the binary under test, built as users have it: the tests start
// hundreds of processes, which with the race detector in each takes minutes.
var guest string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lazaret-guest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	guest = filepath.Join(dir, "lazaret-guest")
	build := exec.Command("go", "build", "-o", guest, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	status := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the guest: %v\n%s", err, out)
	} else {
		status = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// room is a directory with every applet in bin, and nothing else on PATH.
func room(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bin", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range applets() {
		if err := os.Symlink(guest, filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sh(dir string, args ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: filepath.Join(dir, "bin/sh"),
		Args: append([]string{"sh"}, args...),
		Env:  []string{"PATH=" + filepath.Join(dir, "bin"), "HOME=/root", "TZ=UTC"},
		Dir:  filepath.Join(dir, "work"),
	}
}

func TestEveryLinkIsAnApplet(t *testing.T) {
	for _, name := range strings.Fields(image.Applets) {
		if applets()[name] == nil {
			t.Errorf("the image has /bin/%s, which the guest does not know", name)
		}
	}
	for name := range applets() {
		if !strings.Contains(" "+strings.Join(strings.Fields(image.Applets), " ")+" ", " "+name+" ") {
			t.Errorf("the guest has %s, for which the image has no link", name)
		}
	}
}

func TestShell(t *testing.T) {
	dir := room(t)
	for _, test := range []struct {
		script string
		out    string // standard output
		status int
		err    string // a part of standard error
	}{
		// What launch promises about statuses.
		{"exit 7", "", 7, ""},
		{"true", "", 0, ""},
		{"/bin/nothing-there", "", 127, "no such file"},
		{"nothing-there", "", 127, "nothing-there: not found"},
		{"echo x >f; ./f", "", 126, "permission denied"},
		{"mkdir d; ./d", "", 126, "is a directory"},
		{"kill -INT $$; echo not reached", "", 130, ""},
		{"kill -TERM $$; echo not reached", "", 143, ""},
		{"sh -c 'kill -KILL $$'", "", 137, ""},
		{"false; echo $?", "1\n", 0, ""},
		{"if", "", 2, "sh"},

		// The language.
		{"echo a b | wc -w", "2\n", 0, ""},
		{"for i in 1 2 3; do echo $i; done | tail -n 1", "3\n", 0, ""},
		{"echo out; echo err >&2", "out\n", 0, "err"},
		{"echo one >f; echo two >>f; cat <f; cat f | head -1", "one\ntwo\none\n", 0, ""},
		{"cat <<E\nx $((1+2))\nE", "x 3\n", 0, ""},
		{"f() { echo $1-$#; }; f a b", "a-2\n", 0, ""},
		{"case abc in a*) echo yes;; esac", "yes\n", 0, ""},
		{"x=$(echo deep | tr a-z A-Z); echo \"$x\"", "DEEP\n", 0, ""},
		{"set -e; false; echo not reached", "", 1, ""},
		{"cd / && pwd", "/\n", 0, ""},
		{"umask 077; touch mask; stat -c %a mask; umask", "600\n0077\n", 0, ""},
		{"printf '%s-%d\\n' a 3", "a-3\n", 0, ""},
		{"[ a = a ] && test -d . && echo ok", "ok\n", 0, ""},
		{"(exit 3) || echo $?", "3\n", 0, ""},
		{"(sleep 0.05; echo late) & echo early; wait", "early\nlate\n", 0, ""},
		{"trap 'echo bye' EXIT; exit 4", "bye\n", 4, ""},
		{"trap 'echo got; exit 9' TERM; kill -TERM $$; true; sleep 0; sleep 0", "got\n", 9, ""},
		{"trap '' TERM; kill -TERM $$; echo alive; trap - TERM; kill -TERM $$", "alive\n", 143, ""},
		{"printf 'echo $0 $1\\n' >s; chmod +x s; ./s arg", "", 0, ""},
		{"printf '#!PATH/sh\\necho script $1\\n' >s; chmod +x s; ./s arg; rm s", "script arg\n", 0, ""},

		// exec is real: the same process goes on as the program.
		{"exec sh -c 'echo $PPID' | cat >/dev/null; echo still", "still\n", 0, ""},
		{"(exec echo sub); echo parent", "sub\nparent\n", 0, ""},
		{"exec echo replaced >f; echo not reached", "", 0, ""},
		{"echo $$ >p; exec sh -c '[ $$ = $(cat p) ] && echo same'", "same\n", 0, ""},
		{"(exec sh -c 'echo out; echo err >&2') 2>&1 >f | cat; exec sh -c 'echo out; echo err >&2' 2>&1 >f", "err\nerr\n", 0, ""},
		{"exec sh -c 'echo a >&2; cat' 2>f <f", "a\n", 0, ""},
		{"printf '\\177ELF\\0' >elf; chmod +x elf; ./elf", "", 126, "exec format"},
		{"printf '\\177ELF\\0' >elf; chmod +x elf; exec ./elf", "", 126, "exec format"},
		{"exec nothing-there; echo not reached", "", 127, "not found"},
		{"true && exec sh -c 'exit 5'", "", 5, ""},
		{"x=1; export x; exec env | grep ^x=", "x=1\n", 0, ""},

		// The programs.
		{"mkdir -p a/b/c && touch a/b/c/f && find a -name f", "a/b/c/f\n", 0, ""},
		{"find a -type d -maxdepth 1; find a -name f -exec echo got {} ';'; find a -type f -exec echo {} +; find a ! -name 'b*' -type d", "a\na/b\ngot a/b/c/f\na/b/c/f\na\na/b/c\n", 0, ""},
		{"echo 1 2 3 | xargs echo n", "n 1 2 3\n", 0, ""},
		{"rm -rf a; ls a", "", 1, "no such file"},
		{"mkdir l; touch l/b l/a l/.h; ls l; ls -A l", "a\nb\n.h\na\nb\n", 0, ""},
		{"ls -ld bin 2>/dev/null || ls -d l", "l\n", 0, ""},
		{"echo x >m1; mv m1 m2; cp m2 m3; cat m2 m3", "x\nx\n", 0, ""},
		{"mv -f m2 m4; cp -r l l2; ls l2", "a\nb\n", 0, ""},
		{"ln -s target link; readlink link; ln m3 hard; stat -c %h hard; ln -sf other link; readlink link", "target\n2\nother\n", 0, ""},
		{"chmod 751 m3; stat -c '%a %A' m3; chmod u-x m3; stat -c %a m3", "751 -rwxr-x--x\n651\n", 0, ""},
		{"seq 3 | sort -r | head -n 2", "3\n2\n", 0, ""},
		{"printf 'b\\na\\nb\\n' | sort | uniq -c", "      1 a\n      2 b\n", 0, ""},
		{"printf 'a:b:c\\n' | cut -d : -f 1,3", "a:c\n", 0, ""},
		{"printf 'x1\\ny\\n' | grep -n '[0-9]'; echo y | grep -q x; echo $?", "1:x1\n1\n", 0, ""},
		{"seq 100 | tail -n +99; seq 9 | tail -2", "99\n100\n8\n9\n", 0, ""},
		{"echo a | tee t1 | cat; cat t1", "a\na\n", 0, ""},
		{"env -i A=b env", "A=b\n", 0, ""},
		{"env nothing-there", "", 127, "not found"},
		{"which sh >/dev/null && which nothing-there", "", 1, ""},
		{"basename /a/b.c .c; dirname /a/b.c; dirname /; dirname a", "b\n/a\n/\n.\n", 0, ""},
		{"date -u +%Y | wc -c", "5\n", 0, ""},
		{"echo abc | sha256sum", "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb  -\n", 0, ""},
		{"printf abcdef | dd bs=2 count=2 status=none", "abcd", 0, ""},
		{"yes | head -n 1", "y\n", 0, ""},
		{"timeout 0.1 sleep 5; echo $?; timeout 5 sh -c 'exit 6'; echo $?", "124\n6\n", 0, ""},
		{"tty", "not a tty\n", 1, ""},
		{"sleep 0.01 && uname", "Linux\n", 0, ""},
		{"cat nothing-there", "", 1, "cat: open"},
		{"test -s m3 && rmdir l2; echo $?", "1\n", 0, "rmdir"},
		{"ps | grep -c 'sh -c'", "1\n", 0, ""},
	} {
		script := strings.ReplaceAll(test.script, "PATH", filepath.Join(dir, "bin"))
		cmd := sh(dir, "-c", script)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		status := wait(t, cmd)
		if test.out == "" && strings.Contains(script, "echo $0") { // prints where it is
			if out.String() != "" && !strings.HasSuffix(out.String(), "s arg\n") {
				t.Errorf("%s\nprints %q", script, out.String())
			}
			continue
		}
		if strings.HasPrefix(script, "ps ") {
			if strings.TrimSpace(out.String()) == "0" {
				t.Error("ps does not list the shell it runs in")
			}
			continue
		}
		if out.String() != test.out || status != test.status || !strings.Contains(errs.String(), test.err) || test.err == "" && errs.Len() > 0 {
			t.Errorf("%s\nprints %q, status %d, error %q\nwant   %q, status %d, error …%q…", script, out.String(), status, errs.String(), test.out, test.status, test.err)
		}
	}
}

// wait runs cmd and returns its status as a shell would see it.
func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }).Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}

func TestShellReads(t *testing.T) {
	dir := room(t)
	cmd := sh(dir)
	// The command after "read" is not swallowed by the shell's own reading.
	cmd.Stdin = strings.NewReader("read x\nvalue\necho got $x\nif true\nthen cat\nfi\nrest of the input\n")
	out, err := cmd.Output()
	if err != nil || string(out) != "got value\nrest of the input\n" {
		t.Errorf("from standard input: %q, %v", out, err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo $0 $# $2; exit 3"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd = sh(dir, script, "a", "b c")
	out, _ = cmd.Output()
	if want := script + " 2 b c\n"; string(out) != want || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("from a file: %q, status %d", out, cmd.ProcessState.ExitCode())
	}
	for name, want := range map[string]int{"missing": 127, ".": 1} {
		cmd = sh(dir, filepath.Join(dir, name))
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() < want {
			t.Errorf("sh %s: status %d", name, cmd.ProcessState.ExitCode())
		}
	}
	out, _ = sh(dir, "-eu", "-c", "echo $1; echo $nothing; echo not reached", "name", "arg").Output()
	if string(out) != "arg\n" {
		t.Errorf("-eu prints %q", out)
	}
}

func TestUnderItsOwnName(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run([]string{"/x/lazaret-guest", "--help"}, nil, &out, &errs); status != 0 || !strings.Contains(out.String(), "whoami") {
		t.Errorf("--help: %d %q", status, out.String())
	}
	out.Reset()
	if status := run([]string{"lazaret-guest", "basename", "a/b"}, nil, &out, &errs); status != 0 || out.String() != "b\n" {
		t.Errorf("basename: %d %q", status, out.String())
	}
	if status := run([]string{"lazaret-guest", "nope"}, nil, &out, &errs); status != 127 {
		t.Errorf("nope: %d", status)
	}
	if out.Reset(); run([]string{"-sh", "-c", "echo login"}, nil, &out, &errs) != 0 || out.String() != "login\n" {
		t.Errorf("-sh: %q", out.String())
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-ab x", "a b | x"},
		{"-nv5 x -a", "n=v5 | x -a"},
		{"-n 5 -- -a", "n=5 | -a"},
		{"-", "| -"},
		{"-z", "error"},
		{"-n", "error"},
		{"-:", "error"},
	} {
		opts, rest, err := parse(strings.Fields(test.args), "abn:")
		got := ""
		for _, f := range []byte("abn") {
			if opts.has(f) {
				got += string(f)
				if v := opts.value(f, ""); v != "" {
					got += "=" + v
				}
				got += " "
			}
		}
		got += strings.TrimSpace("| " + strings.Join(rest, " "))
		if err != nil {
			got = "error"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.args, got, test.want)
		}
	}
	if fmt.Sprint(strftime("%F %T %%", time.Unix(0, 0).UTC())) != "1970-01-01 00:00:00 %" {
		t.Error("date formats wrongly")
	}
}
