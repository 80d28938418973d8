package prompt

import (
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// FuzzAnswers: whatever keys come when, in whatever window, nothing is approved
// but by an A that stood alone: silence before it, silence after it, all of the
// request seen, and the request the same all the while.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{20, 0}, byte(0))
	f.Add([]byte{20, 0, 20, 0}, byte(0))
	f.Add([]byte{1, 0, 1, 0, 20, 4, 20, 3, 20, 0}, byte(3))
	f.Add([]byte{20, 2, 20, 7, 20, 6, 20, 0}, byte(0))
	f.Add([]byte{20, 9, 20, 0, 20, 8, 1, 0}, byte(9))
	keys := []tea.Msg{
		letters("a")[0], letters("d")[0], letters("e")[0], letters("x")[0], code(tea.KeyDown), code(tea.KeyEnd), code(tea.KeyEnter), code(tea.KeyBackspace),
		tea.KeyPressMsg{Code: 'a', Text: "a", IsRepeat: true}, tea.PasteMsg{Content: "a"}, tea.KeyPressMsg{Code: 'A', Text: "A"}, code(tea.KeyEscape), tea.KeyPressMsg{Code: 'a', Mod: tea.ModCtrl},
	}
	f.Fuzz(func(t *testing.T, plan []byte, size byte) {
		if len(plan) > 200 {
			return
		}
		long := []string{"aws"}
		for range 40 {
			long = append(long, "an argument of some length")
		}
		p := sit(t, 20+int(size)%100, 6+int(size)%30, ask(1, long...), ask(2, "ls"))
		last := p.at // of the last key, or of another request
		for ; len(plan) >= 2 && !p.quit; plan = plan[2:] {
			pause := time.Duration(plan[0]) * 50 * time.Millisecond
			shown := p.m.ask.Seq
			p.wait(pause)
			if p.m.ask.Seq != shown {
				last = p.at
			}
			key := keys[int(plan[1])%len(keys)]
			silent := p.at.Sub(last) >= quietFor
			p.send(key)
			last = p.at
			before, armed, m := len(p.desk.said), silent && (key == keys[0] || key == keys[10]), p.m
			// If no other key comes, the key counts a moment later.
			if plan[0]%3 != 0 {
				p.at = p.at.Add(aloneFor)
				p.send(aloneMsg{p.m.turn})
			}
			for _, said := range p.desk.said[before:] {
				if !slices.Contains([]byte(said), 'k') || said[2:8] != "kind=1" {
					continue
				}
				if !armed || m.obstacle() != "" || m.stage != asking {
					t.Fatalf("%v at %v: %s, after a silence: %v, obstacle %q", key, pause, said, silent, m.obstacle())
				}
			}
			if p.m.ask.Seq != m.ask.Seq {
				last = p.at
			}
			p.look()
		}
	})
}
