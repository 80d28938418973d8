package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// desktop is a terminal of the person's, which tmux plays, with windows in it.
type desktop struct {
	t   *testing.T
	s   *sandboxed
	dir string
}

func newDesktop(t *testing.T, s *sandboxed) *desktop {
	d := &desktop{t, s, t.TempDir()}
	t.Cleanup(func() { d.tmux("kill-server") })
	return d
}

func (d *desktop) tmux(args ...string) string {
	c := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", filepath.Join(d.dir, "t")}, args...)...)
	c.Dir = d.s.ws
	c.Env = append(slices.Clone(d.s.env), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash")
	out, _ := c.CombinedOutput()
	return string(out)
}

// open opens a window with a plain shell.
func (d *desktop) open(name string) {
	d.t.Helper()
	shell := "env PS1='host$ ' bash --norc --noprofile"
	if !strings.Contains(d.tmux("list-sessions"), "windows") {
		if out := d.tmux("new-session", "-d", "-x", "100", "-y", "30", "-n", name, shell); out != "" {
			d.t.Fatalf("tmux: %s", out)
		}
		// As a terminal that lets programs write the clipboard.
		d.tmux("set-option", "-s", "set-clipboard", "on")
	} else {
		d.tmux("new-window", "-d", "-n", name, shell)
	}
	d.wait(name, `host\$$`)
}

func (d *desktop) keys(window string, keys ...string) {
	d.tmux(append([]string{"send-keys", "-t", window}, keys...)...)
}

func (d *desktop) line(window, text string) {
	d.tmux("send-keys", "-t", window, "-l", text)
	d.keys(window, "Enter")
}

func (d *desktop) screen(window string) string {
	return strings.TrimRight(d.tmux("capture-pane", "-p", "-t", window), "\n ")
}

// wait waits until the screen matches.
func (d *desktop) wait(window, pattern string) (screen string) {
	d.t.Helper()
	re := regexp.MustCompile(pattern)
	if !eventually(func() bool { screen = d.screen(window); return re.MatchString(screen) }) {
		d.t.Fatalf("window %s does not show %s:\n%s", window, pattern, screen)
	}
	return screen
}

// shows waits until all of these stand on the screen together.
func (d *desktop) shows(window string, texts ...string) {
	d.t.Helper()
	screen := ""
	missing := func(text string) bool { return !strings.Contains(screen, text) }
	if !eventually(func() bool { screen = d.screen(window); return !slices.ContainsFunc(texts, missing) }) {
		d.t.Fatalf("window %s does not show all of %q:\n%s", window, texts, screen)
	}
}

// until gives a window a line again and again, until the screen matches: what the
// line is about may come to the sandbox later than the line.
func (d *desktop) until(window, line, pattern string) {
	d.t.Helper()
	re := regexp.MustCompile(pattern)
	if !eventually(func() bool {
		d.line(window, line)
		for range 20 {
			if re.MatchString(d.screen(window)) {
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false
	}) {
		d.t.Fatalf("window %s does not show %s:\n%s", window, pattern, d.screen(window))
	}
}

// state is everything that tmux knows of a terminal: what it shows and in which
// colours, the cursor, and the modes.
func (d *desktop) state(window string) string {
	const flags = "alternate #{alternate_on} cursor #{cursor_x},#{cursor_y} shown #{cursor_flag} insert #{insert_flag} keys #{keypad_cursor_flag} keypad #{keypad_flag} " +
		"mouse #{mouse_any_flag} #{mouse_all_flag} #{mouse_button_flag} #{mouse_standard_flag} sgr #{mouse_sgr_flag} origin #{origin_flag} wrap #{wrap_flag} region #{scroll_region_upper},#{scroll_region_lower}"
	return d.tmux("capture-pane", "-e", "-p", "-t", window) + d.tmux("display-message", "-p", "-t", window, flags)
}

// same waits until a window is as it was.
func (d *desktop) same(window, was string) {
	d.t.Helper()
	is := ""
	if !eventually(func() bool { is = d.state(window); return is == was }) {
		d.t.Errorf("the screen is\n%s\nwas\n%s", is, was)
	}
}

// settled is how a window is once nothing has changed in it for a second.
func (d *desktop) settled(window string) (is string) {
	d.t.Helper()
	was, since := "", time.Now()
	if !eventually(func() bool {
		if is = d.state(window); is != was {
			was, since = is, time.Now()
		}
		return time.Since(since) > time.Second
	}) {
		d.t.Fatalf("window %s does not come to rest:\n%s", window, is)
	}
	return is
}

// left waits until a terminal is left as it should be.
func (d *desktop) left(window, pattern string) {
	d.t.Helper()
	re, is := regexp.MustCompile(pattern), ""
	if !eventually(func() bool { is = d.state(window); return re.MatchString(is) }) {
		d.t.Errorf("the terminal is left as\n%s", is)
	}
}

const promptConfig = `[storage]
data_root = %q
[network]
default_allow = []
default_deny = []
[escalation]
enabled = true
timeout = %q
socket_dir = "{runtime_dir}/lazaret-prompt"
[profiles.shell]
image = "oci:%s"
command = ["bash", "--norc"]
`

// asks has the sandbox run a script, which asks, beside whatever it runs.
func (d *desktop) asks(window, script string) {
	d.t.Helper()
	d.put(script)
	d.wait(window, `asks(.|\n)*\[Q\]`) // what is drawn last
}

// put has the sandbox run a script.
func (d *desktop) put(script string) {
	d.t.Helper()
	os.Remove(filepath.Join(d.s.ws, "answered"))
	tmp := filepath.Join(d.s.ws, ".ask")
	if err := os.WriteFile(tmp, []byte(script+"\n"), 0o644); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(d.s.ws, "ask")); err != nil {
		d.t.Fatal(err)
	}
}

// answered is what the script that asked printed, and its status.
func (d *desktop) answered() string {
	d.t.Helper()
	waitForFile(d.t, filepath.Join(d.s.ws, "answered"))
	b, err := os.ReadFile(filepath.Join(d.s.ws, "answer"))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func (d *desktop) unanswered() {
	d.t.Helper()
	if _, err := os.Stat(filepath.Join(d.s.ws, "answered")); err == nil {
		b, _ := os.ReadFile(filepath.Join(d.s.ws, "answer"))
		d.t.Fatalf("the request is answered: %s", b)
	}
}

// ready is a key of the prompt's that has a background: it counts now.
var ready = regexp.MustCompile(`\x1b\[[0-9;]*48;[0-9;]+m\[E\]`)

// press waits until the prompt shows that keys count, and presses one.
func (d *desktop) press(window, key string) {
	d.t.Helper()
	times := 0 // in a row: a screen can be half drawn
	if !eventually(func() bool {
		if times++; !ready.MatchString(d.tmux("capture-pane", "-e", "-p", "-t", window)) {
			times = 0
		}
		return times == 2
	}) {
		d.t.Fatalf("window %s takes no keys:\n%s", window, d.screen(window))
	}
	d.keys(window, key)
}

// TestEndToEndPrompt sits at the terminal of a sandbox that asks.
func TestEndToEndPrompt(t *testing.T) {
	needE2E(t)
	layout := os.Getenv("LAZARET_DEBIAN")
	config := ""
	s := newSandboxedWith(t, func(data string) string {
		config = fmt.Sprintf(promptConfig, data, "10m", layout)
		return fmt.Sprintf(promptConfig, data, "5s", layout)
	}, "--platform", "linux/amd64")
	d := newDesktop(t, s)
	d.open("one")

	t.Run("no answer", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.line("one", `clear; lazaret launch shell -- sh -c 'lazaret-escalate -- true; echo "status $?"'`)
		if got := d.wait("one", `status \d+\n(.|\n)*host\$$`); !strings.Contains(got, "status 75\n") || strings.Contains(got, "person") {
			t.Errorf("timed out: %s", got)
		}
	})
	if err := os.WriteFile(filepath.Join(s.ws, "lazaret.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("lock", "--platform", "linux/amd64")
	s.must("trust", "--yes")

	before := s.quiet()
	d.line("one", "clear; lazaret launch shell")
	d.wait("one", `#$`)
	d.line("one", `PS1='box# '; while sleep 0.1; do echo >>/workspace/tick; if mv /workspace/ask /workspace/asking 2>/dev/null; then sh /workspace/asking >/workspace/answer 2>&1; echo "status $?" >>/workspace/answer; touch /workspace/answered; fi; done & sleep 0.5; clear`)
	d.wait("one", `^box#$`)

	t.Run("main screen", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.line("one", `printf 'above\n\033[1;31mred\033[44m on blue\033[0m\n\033[2;20r\033[10;3H\033[35m'`)
		d.wait("one", `red on blue(.|\n)*\n  box#$`)
		was := d.state("one")
		d.asks("one", "lazaret-escalate --reason 'to see' -- printf 'hello %s' host")
		d.shows("one", "The sandbox says:", "┃ to see", "│ 0  printf", "│ 1  hello %s", "/usr/bin/printf", "[A] approve and run", "times out in ")
		if strings.Contains(d.screen("one"), "red on blue") {
			t.Error("the sandbox's screen is not covered")
		}
		d.press("one", "a")
		if got := d.answered(); got != "hello hoststatus 0\n" {
			t.Errorf("approved: %q", got)
		}
		d.wait("one", "red on blue")
		d.same("one", was)
		d.line("one", `printf '\033[r\033[m'; clear`)
		d.wait("one", `^box#$`)
	})

	for _, tt := range []struct{ program, ready, quit string }{
		{"vi -c 'set mouse=a' /etc/passwd", "root:x:0:0", ":q!\n"},
		{"less -M /etc/services", "services", "q"},
	} {
		t.Run(strings.Fields(tt.program)[0], func(t *testing.T) {
			d := &desktop{t, s, d.dir}
			if strings.HasPrefix(tt.program, "less") {
				tt.program = "less -M /etc/passwd"
				tt.ready = "root:x:0:0"
			}
			d.line("one", tt.program)
			d.wait("one", tt.ready)
			d.keys("one", "j", "j")
			was := d.settled("one")
			if !strings.Contains(was, "alternate 1") {
				t.Fatalf("it is not on the alternate screen: %s", was)
			}
			d.asks("one", "lazaret-escalate -- true")
			d.press("one", "d")
			if got := d.answered(); !strings.Contains(got, "denied") || !strings.HasSuffix(got, "status 77\n") {
				t.Errorf("denied: %q", got)
			}
			d.wait("one", tt.ready)
			d.same("one", was)
			d.keys("one", "k")
			d.tmux("send-keys", "-t", "one", "-l", strings.TrimSuffix(tt.quit, "\n"))
			if strings.HasSuffix(tt.quit, "\n") {
				d.keys("one", "Enter")
			}
			d.wait("one", `box#$`)
		})
	}

	t.Run("htop, resized", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.line("one", "htop -d 100")
		head := regexp.MustCompile(`(?m)^.*PID.*Command.*$`)
		keys := regexp.MustCompile(`(?m)^.*F1.*Quit.*$`)
		d.wait("one", `PID.*Command(.|\n)*F10\S*Quit`)
		was := d.settled("one")
		d.asks("one", "lazaret-escalate -- echo "+strings.Repeat("word ", 60))
		d.tmux("resize-window", "-t", "one", "-x", "40", "-y", "20")
		d.shows("one", "to read", "[A]", "[D]", "[E]", "[Q]")
		d.press("one", "a") // not read to the end
		time.Sleep(500 * time.Millisecond)
		d.unanswered()
		d.tmux("resize-window", "-t", "one", "-x", "100", "-y", "30")
		d.press("one", "d")
		d.answered()
		is := ""
		if keys.FindString(was) == "" || !eventually(func() bool {
			is = d.state("one")
			return head.FindString(is) == head.FindString(was) && keys.FindString(is) == keys.FindString(was)
		}) {
			t.Errorf("the screen is\n%s\nwas\n%s", is, was)
		}
		d.keys("one", "q")
		d.wait("one", `box#$`)
	})

	t.Run("typing approves nothing", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.line("one", "cat >/workspace/typed")
		type_ := func(n int) {
			for range n {
				d.keys("one", "a")
				time.Sleep(40 * time.Millisecond)
			}
		}
		type_(10)
		os.WriteFile(filepath.Join(s.ws, ".ask"), []byte("lazaret-escalate -- touch "+s.ws+"/approved\n"), 0o644)
		os.Remove(filepath.Join(s.ws, "answered"))
		os.Rename(filepath.Join(s.ws, ".ask"), filepath.Join(s.ws, "ask"))
		type_(60)
		d.wait("one", `asks(.|\n)*\[Q\]`)
		d.unanswered()
		if _, err := os.Stat(filepath.Join(s.ws, "approved")); err == nil {
			t.Fatal("it was approved")
		}
		d.press("one", "d")
		d.answered()
		// Until the prompt is gone, keys are for it.
		var typed []byte
		if !eventually(func() bool {
			d.keys("one", "Enter")
			typed, _ = os.ReadFile(filepath.Join(s.ws, "typed"))
			return strings.Contains(string(typed), "\n")
		}) {
			t.Fatal("nothing is typed to the sandbox any more")
		}
		d.keys("one", "C-d")
		d.wait("one", `box#$`)
		if !strings.HasPrefix(string(typed), "aaaaaaaaaa") || strings.Trim(string(typed), "a\n") != "" {
			t.Errorf("what was typed to the sandbox arrived as %q", typed)
		}
	})

	t.Run("edit", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.asks("one", "lazaret-escalate -- rm -rf /nothing")
		d.press("one", "e")
		d.wait("one", "what to run instead")
		d.keys("one", "C-u")
		d.tmux("send-keys", "-t", "one", "-l", "echo 'of my own'")
		d.keys("one", "Enter")
		d.wait("one", `your command(.|\n)*of my own(.|\n)*/usr/bin/echo`)
		d.unanswered()
		d.press("one", "a")
		if got := d.answered(); !strings.Contains(got, "of my own\n") || !strings.HasSuffix(got, "status 0\n") {
			t.Errorf("edited: %q", got)
		}
	})

	t.Run("what it says acts on nothing", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		const evil = `"$(printf 'a\033[2J\033[H\033]0;evil\007\r\033[2Kb\nc\342\200\256d\302\240\302\240e\010\010')"`
		d.asks("one", "lazaret-escalate --reason "+evil+" -- echo "+evil+" '│ ╭──╮' --gіt")
		d.shows("one", `a\x1b[2J\x1b[H\x1b]0;evil\x07\r\x1b[2Kb\nc\u{202e}d\u{a0}\u{a0}e\x08\x08`, "asks to run a command", `\u{2502}`, "looks like a Latin letter", "[A] approve and run")
		if title := d.tmux("display-message", "-p", "-t", "one", "#{pane_title}"); strings.Contains(title, "evil") {
			t.Errorf("the window is called %s", title)
		}
		d.press("one", "d")
		d.answered()
	})

	t.Run("from another terminal", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		d.open("two")
		d.line("two", "lazaret approve --list; echo listed")
		d.wait("two", `COMMAND(.|\n)*listed`)
		d.asks("one", "lazaret-escalate -- echo elsewhere")
		d.line("two", "clear; lazaret approve; echo status $?")
		d.wait("two", `│ 1  elsewhere`)
		d.press("two", "a")
		if got := d.answered(); got != "elsewhere\nstatus 0\n" {
			t.Errorf("approved elsewhere: %q", got)
		}
		d.wait("one", `box#$`)
		if got := d.wait("two", `status 0\nhost\$$`); strings.Contains(got, ";") && strings.Contains(got, "R") {
			t.Errorf("answers of the terminal are left:\n%s", got)
		}
	})

	t.Run("terminal", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		attack := `printf '\033]52;c;%s\007\033]0;evil\007\033Ptmux;\033\033]52;c;%s\007\033\\' $(printf evil | base64) $(printf evil | base64)`
		d.line("one", "clear; "+attack+"; echo done")
		d.wait("one", `(?m)^done`)
		if got := d.tmux("show-buffer"); strings.Contains(got, "evil") {
			t.Errorf("the sandbox has set the clipboard: %q", got)
		}
		if title := d.tmux("display-message", "-p", "-t", "one", "#{pane_title}"); !strings.HasPrefix(title, "lazaret shell: evil") {
			t.Errorf("the window is called %q", title)
		}
		// The same without lazaret: this terminal does let programs do that.
		d.line("two", "clear; "+attack+"; echo done")
		d.wait("two", `(?m)^done`)
		if got := d.tmux("show-buffer"); !strings.Contains(got, "evil") {
			t.Errorf("the attack does not work here, so that nothing was shown: %q", got)
		}
	})

	t.Run("abort", func(t *testing.T) {
		d := &desktop{t, s, d.dir}
		// The file only grows: one that is written anew can stand still empty.
		ticks := func() int { b, _ := os.ReadFile(filepath.Join(s.ws, "tick")); return len(b) }
		d.asks("one", "lazaret-escalate -- true; lazaret-escalate -- true")
		d.press("one", "q")
		d.wait("one", "stands still")
		time.Sleep(200 * time.Millisecond)
		was := ticks()
		time.Sleep(time.Second)
		if ticks() != was {
			t.Error("the sandbox goes on")
		}
		d.press("one", "r")
		if got := d.answered(); strings.HasSuffix(got, "status 0\n") {
			t.Errorf("after an abort: %q", got)
		}
		d.wait("one", `box#$`)
		if !eventually(func() bool { return ticks() > was }) {
			t.Fatal("the sandbox does not go on")
		}
	})

	// Whatever the sandbox leaves behind, the person's shell finds its terminal
	// as it was, and nothing typed into it.
	d.line("one", `kill %1; printf '\033[?1049h\033[?1003h\033[?25l\033[5;9r\033[?2004h\033[?1004h\033[31m\033]11;#300000\007\033[c\033[6n\033[>c\033[6n'; exit 3`)
	d.wait("one", `host\$$`)
	d.line("one", "echo status $?")
	end := d.wait("one", `status 3\nhost\$$`)
	// What the last lines are depends on what else was told.
	if regexp.MustCompile(`[0-9;]+[Rc]`).MatchString(end[max(0, strings.LastIndex(end, "asked  ")):]) {
		t.Errorf("answers of the terminal are typed into the shell:\n%s", end)
	}
	d.left("one", `alternate 0 .* shown 1 insert 0 keys 0 keypad 0 mouse 0 0 0 0 .*wrap 1 region 0,29`)
	d.line("one", `clear; lazaret launch shell -- bash -c 'printf "\033[?1049h\033[?1003h\033[?25l"; sleep 0.3; kill -9 $$'; echo status $?; stty -a | grep -o '[-]*echo '`)
	d.wait("one", `status 137\necho\s*\nhost\$$`)
	d.left("one", `alternate 0 .* shown 1 .* mouse 0 0 0 0 `)
	// Lazaret itself is killed: its helper puts the terminal back.
	d.line("one", `clear; bash -c 'echo $$ >pid; exec lazaret launch shell'`)
	d.wait("one", `#$`)
	d.line("one", `printf '\033[?1049h\033[?1003h\033[?25l\033[5;9r'; echo raw`)
	d.wait("one", `(?m)^raw`)
	if err := syscall.Kill(awaitNumber(t, filepath.Join(s.ws, "pid")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.left("one", `alternate 0 .* shown 1 .* mouse 0 0 0 0 .* region 0,29`)
	d.until("one", "echo again", `(?m)^again\nhost\$$`)
	s.must("clean")
	for _, name := range []string{"ask", "asking", "answer", "answered", "tick", "typed", "pid"} {
		os.Remove(filepath.Join(s.ws, name))
	}
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// TestEndToEndTerminfo: terminals that the image has never heard of.
func TestEndToEndTerminfo(t *testing.T) {
	needE2E(t)
	layout := os.Getenv("LAZARET_DEBIAN")
	s := newSandboxedWith(t, func(data string) string { return fmt.Sprintf(promptConfig, data, "1m", layout) }, "--platform", "linux/amd64")
	dir := t.TempDir()
	src, err := exec.Command("infocmp", "-x", "xterm-256color").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"xterm-ghostty", "xterm-kitty", "alacritty"}
	for _, name := range names {
		text := regexp.MustCompile(`(?m)^xterm-256color\|[^,]*,`).ReplaceAllString(string(src), name+"|a terminal,")
		tic := exec.Command("tic", "-x", "-o", filepath.Join(dir, name), "/dev/stdin")
		tic.Stdin = strings.NewReader(text)
		if out, err := tic.CombinedOutput(); err != nil {
			t.Fatalf("tic: %v\n%s", err, out)
		}
	}
	d := newDesktop(t, s)
	d.open("one")
	for _, name := range names {
		// The same names without what lazaret hands in are unknown to the image.
		d.line("one", "clear; TERM="+name+" TERMINFO="+filepath.Join(dir, name)+` COLORTERM=truecolor lazaret launch shell -- bash -c 'echo "$TERM $COLORTERM $LANG $(tput colors) $(tput setaf 1 | wc -c)"; clear >/dev/null && echo cleared; TERM=screen tput cols >/dev/null && echo own too; TERMINFO_DIRS= tput colors; touch $TERMINFO_DIRS/x'`)
		d.wait("one", name+` truecolor C.UTF-8 256 \d+\ncleared\nown too\ntput: unknown terminal "`+name+`"(.|\n)*host\$$`)
	}
	d.line("one", `clear; TERM=never-heard-of lazaret launch shell -- bash -c 'echo "$TERM $(tput colors)"; printf "─│é\n"'`)
	d.wait("one", `note: there is no terminfo entry for never-heard-of on this machine, so the sandbox is told\s+xterm-256color\n(.|\n)*xterm-256color 256\n─│é`)
}
