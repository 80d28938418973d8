package launch

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"lazaret/escalate"
	"lazaret/gitshadow"
	"lazaret/lock"
	"lazaret/lock/config"
)

// EscalationTest is what would become of a request.
type EscalationTest struct {
	escalate.Decision
	Marks     []escalate.Mark
	Dir       string
	Time      time.Duration // how long it may take
	MaxOutput int64
}

// TestEscalation tells what would become of a request of a profile's sandbox:
// the only profile's where profile is "". It runs nothing, and needs neither
// podman nor runsc.
func TestEscalation(f *lock.File, profile string, e Env, command string, stdin bool) (EscalationTest, error) {
	if profile == "" {
		names := slices.Sorted(maps.Keys(f.Profiles))
		if len(names) != 1 {
			return EscalationTest{}, refuse("name one: --profile NAME", "which profile? The lock has %s", strings.Join(names, ", "))
		}
		profile = names[0]
	}
	p, err := f.Profile(profile)
	if err != nil {
		return EscalationTest{}, err
	}
	if !p.Escalation.Enabled {
		return EscalationTest{}, refuse("set enabled = true in [escalation]", "profiles.%s may ask for nothing: escalation is off", profile)
	}
	needs, err := f.Needs(profile)
	if err != nil {
		return EscalationTest{}, err
	}
	h := Host{Home: e.Getenv("HOME"), RuntimeDir: e.Getenv("XDG_RUNTIME_DIR"), Lazaret: e.Lazaret}
	if h.Workspace, err = workspace(e.Workspace, h.Home); err != nil {
		return EscalationTest{}, err
	}
	h.ownDirs(e)
	if h.DataRoot, err = dataRoot(needs.DataRoot, h); err != nil {
		return EscalationTest{}, err
	}
	if h.Sources, err = sources(needs, profile, h); err != nil {
		return EscalationTest{}, err
	}
	if p.Git.Mode == gitshadow.Writeback {
		if h.Git.Repo, err = probeRepo(h.Workspace, os.Getuid()); err != nil {
			return EscalationTest{}, err
		}
	}
	l := escalate.NewLookup(h.Path, h.reach(p), h.Lazaret)
	l.Home = h.Home
	t := EscalationTest{
		Decision: escalate.Decide(whitelist(p.Escalation), l, command, stdin),
		Dir:      h.Workspace, Time: escalate.DefaultCommandTime, MaxOutput: p.Escalation.MaxOutput,
	}
	if t.Auto {
		t.Dir = "an empty directory"
	} else {
		t.Marks = escalate.Marker{Lookup: l, Dir: h.Workspace, Banned: config.Banned}.Marks(t.Argv)
	}
	return t, nil
}
