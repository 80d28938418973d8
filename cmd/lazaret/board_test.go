package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"lazaret/internal/step"
)

// scene is a launch as its board sees it.
type scene struct {
	*board
	now time.Time
}

func newScene(facts map[string]string) *scene {
	var steps []step.Step
	for _, name := range []string{"conf", "state", "helper", "image", "image.root", "network.image", "network.router", "git.shadow", "overlay /root", "escalate.socket", "sandbox"} {
		steps = append(steps, step.Step{Name: name})
	}
	return &scene{newBoard("claude", "~/proj", steps, facts), time.UnixMilli(1_000_000)}
}

func (s *scene) after(ms int) *scene {
	s.now = s.now.Add(time.Duration(ms) * time.Millisecond)
	return s
}

func (s *scene) see(kind string, names ...string) *scene {
	for _, n := range names {
		s.event(step.Event{Kind: kind, Step: n}, s.now)
	}
	return s
}

func (s *scene) did(ms int, names ...string) *scene {
	return s.see(step.Begin, names...).after(ms).see(step.Done, names...)
}

func text(lines []drawn) string {
	var b strings.Builder
	for _, d := range lines {
		b.WriteString(strings.TrimRight(d.text, " ") + "\n")
	}
	return b.String()
}

var someFacts = map[string]string{
	rowImage: "ghcr.io/someone/agent:1 0123456789ab", rowNetwork: "2 hosts allowed, 1 range denied",
	rowGit: "lazaret/agent-claude", rowState: "/root /usr/local", rowAsks: "commands of this machine, you decide", rowSandbox: "gVisor 20260905.0",
}

func TestBoard(t *testing.T) {
	for _, tt := range []struct {
		name    string
		columns int
		still   bool
		do      func(*scene)
		want    string
	}{
		{"nothing has moved yet", 100, false, func(s *scene) { s.see(step.Begin, "image").after(100) }, `
claude  ~/proj
  · image    ghcr.io/someone/agent:1 0123456789ab
  · network  2 hosts allowed, 1 range denied
  · git      lazaret/agent-claude
  · state    /root /usr/local
  · asks     commands of this machine, you decide
  · sandbox  gVisor 20260905.0
`},
		{"what takes long moves, and what was fast has no time", 100, false, func(s *scene) {
			s.did(100, "git.shadow").did(700, "state", "overlay /root").see(step.Begin, "network.image").after(2100)
		}, `
claude  ~/proj
  · image    ghcr.io/someone/agent:1 0123456789ab
  ⠏ network  2 hosts allowed, 1 range denied  2.1 s
  ✓ git      lazaret/agent-claude
  ✓ state    /root /usr/local  0.7 s
  · asks     commands of this machine, you decide
  · sandbox  gVisor 20260905.0
`},
		{"bytes, at 60 columns", 60, false, func(s *scene) {
			s.see(step.Begin, "image").after(5000).event(step.Event{Kind: step.Progress, Step: "image", Attr: map[string]string{"done": "12000000", "total": "345000000"}}, s.now)
		}, `
claude  ~/proj
  ⠋ image    ghcr.io/someone/agent:1 0123456789ab
             12 of 345 MB
  · network  2 hosts allowed, 1 range denied
  · git      lazaret/agent-claude
  · state    /root /usr/local
  · asks     commands of this machine, you decide
  · sandbox  gVisor 20260905.0
`},
		{"ready, at 40 columns", 40, true, func(s *scene) {
			s.did(10, "conf", "state", "helper", "image", "image.root", "network.image", "network.router", "git.shadow", "overlay /root", "escalate.socket")
			s.see(step.Begin, "sandbox")
			s.ready(1300 * time.Millisecond)
		}, `
claude  ~/proj
  ✓ image    ghcr.io/someone/agent:1
             0123456789ab
  ✓ network  2 hosts allowed, 1 range
             denied
  ✓ git      lazaret/agent-claude
  ✓ state    /root /usr/local
  ✓ asks     commands of this machine,
             you decide
  ✓ sandbox  gVisor 20260905.0
             ready in 1.3 s
`},
		{"one fails, and what ran beside it is broken off", 100, false, func(s *scene) {
			s.see(step.Begin, "image", "network.image", "git.shadow").after(200).see(step.Failed, "image", "network.image", "image.root")
		}, `
claude  ~/proj
  ✗ image    ghcr.io/someone/agent:1 0123456789ab
  – network  2 hosts allowed, 1 range denied
  – git      lazaret/agent-claude
  · state    /root /usr/local
  · asks     commands of this machine, you decide
  · sandbox  gVisor 20260905.0
  ⠹ undoing what was done
`},
		{"interrupted, at 40 columns", 40, true, func(s *scene) {
			s.did(10, "state", "overlay /root").see(step.Begin, "image", "network.image").after(200)
			s.see(step.Failed, "image") // podman got the signal too
			s.interrupt()
			s.see(step.Failed, "network.image")
			s.end(true)
		}, `
claude  ~/proj
  – image    ghcr.io/someone/agent:1
             0123456789ab
  – network  2 hosts allowed, 1 range
             denied
  · git      lazaret/agent-claude
  ✓ state    /root /usr/local
  · asks     commands of this machine,
             you decide
  · sandbox  gVisor 20260905.0
  – interrupted; nothing of it is left
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(someFacts)
			tt.do(s)
			frame := s.frame(s.now, style{columns: tt.columns}, !tt.still)
			if got := "\n" + text(frame); got != tt.want {
				t.Errorf("got:%s", got)
			}
			for _, d := range frame {
				if n := len([]rune(d.text)); n > tt.columns-1 || d.width >= tt.columns {
					t.Errorf("%d characters, %d columns: %q", n, d.width, d.text)
				}
			}
		})
	}
}

// Whatever a lock holds, no line is longer than it is taken for, nothing acts on
// the terminal, and no row takes the screen.
func TestBoardHostile(t *testing.T) {
	facts := map[string]string{}
	for k := range someFacts {
		facts[k] = strings.Repeat("表", 30) + " x" + strings.Repeat("y", 500)
	}
	for columns := 20; columns < 120; columns++ {
		s := newScene(facts)
		s.title, s.place = "claude", "~/"+strings.Repeat("表", 60)
		frame := s.frame(s.now, style{columns: columns, colours: true}, true)
		if len(frame) > 1+mostLines*len(s.rows) {
			t.Fatalf("%d lines at %d columns", len(frame), columns)
		}
		for _, d := range frame {
			bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(d.text, "")
			n := 0
			for _, r := range bare {
				if n++; r == '表' {
					n++
				}
			}
			if n > d.width || columns > factColumn+8 && n >= columns {
				t.Fatalf("at %d columns: %d, taken for %d: %q", columns, n, d.width, bare)
			}
		}
	}
}

// Without colours nothing but text is drawn, and without more than ASCII none
// is; with them, it ends as it began.
func TestStyle(t *testing.T) {
	s := newScene(someFacts)
	s.see(step.Begin, "image").after(1500).see(step.Failed, "network.image")
	plain := text(s.frame(s.now, style{columns: 80, ascii: true}, true))
	for _, r := range plain {
		if r != '\n' && (r < ' ' || r > '~') {
			t.Errorf("%q in:\n%s", r, plain)
		}
	}
	for _, d := range s.frame(s.now, style{columns: 80, colours: true}, true) {
		if strings.Count(d.text, "\x1b[0m") != strings.Count(d.text, "\x1b[")/2 {
			t.Errorf("%q", d.text)
		}
		if regexp.MustCompile(`\x1b\[(3[07]|4|9|38|48)`).MatchString(d.text) {
			t.Errorf("%q is not seen on every background", d.text)
		}
	}
}

func TestRows(t *testing.T) {
	for name, want := range map[string]string{
		"image": rowImage, "image.root": rowImage, "network.router": rowNetwork, "git.shadow": rowGit, "overlay /root": rowState, "state": rowState,
		"setup": rowSetup, "setup.overlay /root": rowSetup, "client": rowAsks, "escalate.socket": rowAsks,
		"helper": rowSandbox, "bind /workspace": rowSandbox, "sandbox": rowSandbox, "a step of tomorrow": rowSandbox,
	} {
		if got := rowOf(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The end of a launch in both forms.
func TestEnding(t *testing.T) {
	tell := func(e *ending) {
		e.ended("claude", 3, 75*time.Second)
		e.list(markDone, "git", "git: from the sandbox:", []item{{"2 commits on lazaret/agent-claude", "to adopt them", "lazaret merge claude"}})
		e.list(markWaiting, "held", "git: held back, each with what applies it:", []item{{"branch main (it is not the sandbox's own)", "", "git fetch"}, {"tag v1 (tags wait)", "", "git tag"}})
		e.list(markNone, "denied", "denied to [profiles.claude]:", []item{{"tcp 10.0.0.1:443, 3 times", "to allow", `allow_egress = ["10.0.0.1/32:443/tcp"]`}})
		e.list(markAlarm, "guard", "warning: it left:", []item{{text: "danger: file .envrc"}})
		e.list(markNone, "none", "nothing:", nil)
	}
	for _, tt := range []struct {
		look  *style
		quiet bool
		want  string
	}{
		{nil, false, `lazaret: git: from the sandbox:
  2 commits on lazaret/agent-claude; to adopt them: lazaret merge claude
lazaret: git: held back, each with what applies it:
  branch main (it is not the sandbox's own): git fetch
  tag v1 (tags wait): git tag
lazaret: denied to [profiles.claude]:
  tcp 10.0.0.1:443, 3 times; to allow: allow_egress = ["10.0.0.1/32:443/tcp"]
lazaret: warning: it left:
  danger: file .envrc
`},
		{nil, true, `lazaret: git: held back, each with what applies it:
  branch main (it is not the sandbox's own): git fetch
  tag v1 (tags wait): git tag
lazaret: warning: it left:
  danger: file .envrc
`},
		{&style{columns: 80}, false, `claude  ended after 1 min 15 s with status 3
  ✓ git      2 commits on lazaret/agent-claude  → lazaret merge claude
  · held     branch main (it is not the sandbox's own)  → git fetch
  ·          tag v1 (tags wait)  → git tag
    denied   tcp 10.0.0.1:443, 3 times
             → allow_egress = ["10.0.0.1/32:443/tcp"]
  ! guard    danger: file .envrc
`},
	} {
		var b bytes.Buffer
		tell(&ending{w: &b, look: tt.look, quiet: tt.quiet})
		if b.String() != tt.want {
			t.Errorf("got:\n%s", b.String())
		}
	}
}
