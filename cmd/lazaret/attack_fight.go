package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	shellquote "github.com/kballard/go-shellquote"

	"lazaret/image"
	"lazaret/testdata/attacks"
)

// fight has one kind of sandbox attacked.
type fight struct {
	arena  *arena
	engine engine
	bar    *progress
	trials map[string]trial
	asked  *denier // nil: plain podman has nobody to ask
}

// bout is one script in one sandbox.
type bout struct {
	attack attacks.Attack
	script string // its name
	later  bool
}

// foreign is how many programs of the image its first script runs, of those that
// the harness does not bring.
func (b bout) foreign() int {
	own := strings.Fields(image.Applets)
	return len(slices.DeleteFunc(b.attack.Programs(b.attack.Steps), func(n string) bool { return slices.Contains(own, n) }))
}

// run tries everything: what needs no more than a sandbox in one, what needs a
// terminal in another, what comes later in those after it, and traps for the
// person last.
func (f *fight) run(ctx context.Context, list []attacks.Attack) error {
	if _, ok := f.engine.(lazaretEngine); ok {
		f.asked = f.arena.deny(ctx)
		defer f.asked.end()
	}
	var now, terminal, later, other []bout
	var traps, checks []attacks.Attack
	for _, a := range list {
		f.trials[a.ID] = trial{shared: f.arena.shared}
		if a.Host != "" {
			checks = append(checks, a)
			continue
		}
		if err := f.write(a); err != nil {
			return err
		}
		if a.Trap != nil {
			traps = append(traps, a)
			continue
		}
		b := bout{a, a.ID, false}
		if a.Terminal {
			terminal = append(terminal, b)
		} else {
			now = append(now, b)
		}
		b.script, b.later = a.ID+".later", true
		switch {
		case a.Later == "":
		case a.Other:
			other = append(other, b)
		default:
			later = append(later, b)
		}
	}
	// The image's own programs come last: what they do to the sandbox is no part
	// of what was found before.
	slices.SortStableFunc(now, func(a, b bout) int { return cmp.Compare(a.foreign(), b.foreign()) })
	for _, r := range []struct {
		profile string
		tty     bool
		bouts   []bout
		checks  []attacks.Attack
	}{{f.arena.profile, false, now, checks}, {f.arena.profile, true, terminal, nil}, {f.arena.profile, false, later, nil}, {f.arena.other, false, other, nil}} {
		if err := f.round(ctx, r.profile, r.tty, r.bouts, r.checks); err != nil {
			return err
		}
	}
	for _, a := range traps {
		f.bar.show("attacking: " + a.ID)
		if err := f.spring(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// write puts an attack's scripts where the sandbox finds them.
func (f *fight) write(a attacks.Attack) error {
	for name, text := range map[string]string{a.ID: a.Steps, a.ID + ".later": a.Later} {
		if text == "" {
			continue
		}
		if err := writeBelow(f.arena.harness(), name, []byte(a.Script(f.facts(), text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// facts are what scripts may know: an attacker would guess as much.
func (f *fight) facts() string {
	a := f.arena
	dns := a.dns
	if _, ok := f.engine.(lazaretEngine); !ok {
		dns = "open" // podman's own
	}
	set := func(k, v string) string { return k + "=" + shellquote.Join(v) + "\n" }
	v4, v6 := "", ""
	for _, addr := range a.ears.addrs {
		switch {
		case addr.Is4() && v4 == "":
			v4 = addr.String()
		case addr.Is6() && v6 == "":
			v6 = addr.String()
		}
	}
	return set("OUTSIDE", filepath.Join(a.dir, "outside")) + set("ARENA", a.dir) + set("HOSTPORT", fmt.Sprint(a.ears.port)) + set("HOSTADDR", v4) + set("HOSTADDR6", v6) +
		set("HOSTUID", fmt.Sprint(a.uid)) + set("PROFILE", a.profile) + set("UPLINK", a.uplink) + set("DNS", dns) + set("READONLY", strings.Join(a.ro, " ")) + "PATH=" + harnessBin + ":$PATH\nprobe() { " + harnessAt + "/lazaret " + probeCommand + " \"$@\"; }\n"
}

// round has scripts run in one sandbox, one after the other, each judged by
// itself. A sandbox that an attack ended is started again for those after it.
func (f *fight) round(ctx context.Context, profile string, tty bool, bouts []bout, checks []attacks.Attack) error {
	var s *session
	for _, b := range bouts {
		t := f.trials[b.attack.ID]
		if b.later && t.lost != "" {
			continue
		}
		if s == nil {
			var err error
			f.bar.show("starting a sandbox to attack")
			if s, err = openSession(ctx, f.engine, f.arena, profile, tty); err != nil {
				return err
			}
		}
		f.bar.show("attacking: " + b.attack.ID)
		began := time.Now()
		text, err := s.try(ctx, b.script)
		if ctx.Err() != nil {
			s.close(ctx)
			return context.Cause(ctx)
		}
		if b.later {
			t.later = text
		} else {
			t.output = text
		}
		t.found = append(t.found, f.seen()...)
		t.took += time.Since(began)
		if b.attack.Leaks != "" {
			if m := regexp.MustCompile(b.attack.Leaks).FindString(text); m != "" {
				t.found = append(t.found, fmt.Sprintf("the terminal got %q", m))
			}
		}
		if err != nil {
			t.lost = fmt.Sprintf("could not be tried: %v: %s", err, lastOf(text+"\n"+s.tail()))
			s.close(ctx)
			s = nil
		}
		f.trials[b.attack.ID] = t
	}
	if err := f.check(ctx, s, profile, checks); err != nil {
		return err
	}
	if s == nil {
		return nil
	}
	s.close(ctx)
	// What comes to light only when the sandbox has ended is said of all.
	if late := f.seen(); len(late) > 0 {
		for _, b := range bouts {
			t := f.trials[b.attack.ID]
			t.found = append(t.found, slices.Clone(late)...)
			f.trials[b.attack.ID] = t
		}
	}
	return nil
}

// seen is what the harness notices after any attack, whatever the attack says.
func (f *fight) seen() []string {
	found := append(f.arena.keep.changed(), f.arena.ears.taken()...)
	if f.asked != nil {
		found = append(found, f.asked.taken()...)
	}
	return found
}
