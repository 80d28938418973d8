package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lazaret/launch"
	"lazaret/launch/trust"
	"lazaret/lock"
	"lazaret/lock/config"
)

// lockFile is a lock as it was read, once.
type lockFile struct {
	path, shown string
	given       string // --lock, or ""
	file        *lock.File
	data        []byte
}

// inquiry is what the person has to agree to before a lock is obeyed, and what
// they should know when they do.
type inquiry struct {
	trust.Question
	lock   lockFile
	store  trust.Store
	before *trust.Record
	since  time.Time

	sources map[string]map[string]string
	leads   map[string][]launch.Lead
	failed  map[string]error // profiles that could not be looked at
	shared  []sharedState
	notes   []string // one line each
}

// sharedState is state that another workspace has used.
type sharedState struct {
	profile, dir string
	others       []string // none: lazaret does not know who filled it
}

func (in inquiry) empty() bool { return in.Question.Empty() && len(in.shared) == 0 }

// inquireAll asks about all profiles of a lock.
func (d *deps) inquireAll(l lockFile) (inquiry, error) {
	in, err := d.newInquiry(l)
	if err != nil {
		return in, err
	}
	if err := in.look(d, profileNames(l.file)); err != nil {
		return in, err
	}
	in.Question = trust.Ask(in.before, l.file, l.data, in.sources)
	return in, nil
}

// newInquiry finds what was agreed to before.
func (d *deps) newInquiry(l lockFile) (inquiry, error) {
	in := inquiry{lock: l, sources: map[string]map[string]string{}, leads: map[string][]launch.Lead{}, failed: map[string]error{}}
	var err error
	if in.store, err = d.trustStore(); err != nil {
		return in, err
	}
	in.before, err = in.store.Get(d.cwd, l.path)
	var unsafe *trust.UnsafeError
	switch {
	case errors.As(err, &unsafe):
		return in, err
	case err != nil:
		in.notes = append(in.notes, config.Show(err.Error())+", so it counts for nothing")
	}
	if in.before != nil {
		in.since = in.before.Since
	}
	return in, nil
}

// look finds where the mounts of profiles lead. A profile that cannot be
// looked at is refused when it is launched.
func (in *inquiry) look(d *deps, profiles []string) error {
	env, err := d.launchEnv()
	if err != nil {
		return err
	}
	for _, name := range profiles {
		if _, done := in.sources[name]; done {
			continue
		}
		leads, state, err := launch.Leads(in.lock.file, name, env)
		if err != nil {
			in.failed[name] = err
			continue
		}
		in.sources[name], in.leads[name] = map[string]string{}, leads
		for _, l := range leads {
			in.sources[name][l.Target] = l.Path
		}
		if err := in.lookState(d, name, state); err != nil {
			return err
		}
	}
	return nil
}

// lookState finds out whether a profile's state has been used elsewhere. State
// that nobody used yet becomes this workspace's with the first launch; a
// directory that is still empty may be filled by a sandbox that runs now.
func (in *inquiry) lookState(d *deps, profile string, s launch.State) error {
	if s.Dir == "" {
		return nil
	}
	used, err := in.store.Users(s.Dir)
	if err != nil {
		in.notes = append(in.notes, config.Show(err.Error())+", so it counts for nothing")
		used = nil
	}
	if !slices.Contains(used, d.cwd) && (s.Known || len(used) > 0) {
		in.shared = append(in.shared, sharedState{profile, s.Dir, used})
	}
	return nil
}

// record keeps the yes.
func (in inquiry) record(d *deps) error {
	if !in.Question.Empty() {
		if err := in.recordLock(d); err != nil {
			return err
		}
	}
	for _, s := range in.shared {
		if err := in.store.AddUser(s.dir, d.cwd, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (in inquiry) recordLock(d *deps) error {
	r := trust.Record{Workspace: d.cwd, Lock: in.lock.path, Since: time.Now().Truncate(time.Second), Text: string(in.lock.data), Sources: in.sources}
	return in.store.Put(r)
}

// checkLaunch lets a launch of one profile go on, or asks. host is what the
// launch will use: what is agreed to is what was probed, and nothing is looked
// up again.
func (d *deps) checkLaunch(l lockFile, profile string, host launch.Host) (inquiry, error) {
	in, err := d.newInquiry(l)
	if err != nil {
		return in, err
	}
	in.sources[profile] = map[string]string{}
	for target, s := range host.Sources {
		in.sources[profile][target] = s.Path
	}
	if err := in.lookState(d, profile, host.State(l.file, profile)); err != nil {
		return in, err
	}
	pinned, err := d.pinned(l)
	if err != nil {
		return in, err
	}
	if !pinned {
		in.Question = trust.Ask(in.before, l.file, l.data, in.sources)
	}
	if in.Question.Empty() {
		return in, nil
	}
	// The yes will be for the whole lock, so all of it is asked about.
	in.leads[profile] = host.Leads(l.file, profile)
	if err := in.look(d, profileNames(l.file)); err != nil {
		return in, err
	}
	in.Question = trust.Ask(in.before, l.file, l.data, in.sources)
	return in, nil
}

// claimState records that the state of a profile that is about to be launched
// is this workspace's too.
func (in inquiry) claimState(d *deps, profile string, host launch.Host) error {
	s := host.State(in.lock.file, profile)
	if s.Dir == "" {
		return nil
	}
	return in.store.AddUser(s.Dir, d.cwd, time.Now())
}

// trustVar allows one content without a record, where nobody can be asked.
const trustVar = "LAZARET_TRUST"

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// pinned reports whether the environment allows just this lock. A variable
// that allows another one is an error, whatever was agreed to: whoever set it
// meant that one.
func (d *deps) pinned(l lockFile) (bool, error) {
	want := d.env(trustVar)
	switch {
	case want == "":
		return false, nil
	case !digestPattern.MatchString(want):
		return false, hinted{fmt.Errorf("%s is not sha256: and 64 digits", trustVar), `"lazaret trust show" prints what it may be`}
	case want != trust.Digest(l.data):
		return false, hinted{
			fmt.Errorf("%s is not the lock that %s allows\n    found:   %s\n    allowed: %s", config.Show(l.shown), trustVar, trust.Digest(l.data), want),
			`review the difference, then set it to what "lazaret trust show" prints`,
		}
	}
	return true, nil
}

// credential matches a value or the name of a key in git's configuration that
// gives access to something.
var (
	credentialValue = regexp.MustCompile(`(?i)https?://[^/\s@]+@`)
	credentialKey   = regexp.MustCompile(`(?i)(extraheader|pass|password|token|secret)$`)
)

// gitConfigs lists the git configurations that the sandbox reads.
func (in inquiry) gitConfigs(d *deps) []string {
	paths := []string{filepath.Join(d.cwd, ".git", "config")}
	for _, leads := range in.leads {
		for _, l := range leads {
			if l.Git {
				paths = append(paths, filepath.Join(l.Path, "config"))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// fromHere shows a path below the workspace without it.
func (d *deps) fromHere(path string) string {
	if rel, err := filepath.Rel(d.cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return d.tilde(path)
}

// gitCredentials lists the keys of a git configuration that hold credentials.
// Values are never shown.
func gitCredentials(path string) []string {
	data, err := config.ReadFile(path)
	if err != nil {
		return nil
	}
	var keys []string
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ReplaceAll(strings.Trim(strings.SplitN(line, "]", 2)[0], "[]"), " ", ".")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !strings.HasPrefix(key, "#") && (credentialKey.MatchString(key) || credentialValue.MatchString(value) || credentialValue.MatchString(section)) {
			keys = append(keys, credentialValue.ReplaceAllString(section, "…")+"."+key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
