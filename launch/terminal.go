package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/launch/terminfo"
	"lazaret/lock"
	"lazaret/lock/config"
)

// terminal finds out what the person's terminal is, and its description, which
// the image may not have.
func (h *Host) terminal(e Env) {
	for _, k := range []string{"COLORTERM", "TERM_PROGRAM", "NO_COLOR"} {
		if v, ok := e.LookupEnv(k); ok && len(v) <= 64 && !strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
			h.TermEnv[k] = v
		}
	}
	name := e.Getenv("TERM")
	if !h.Terminal || name == "" {
		if terminfo.Valid(name) {
			h.TermEnv["TERM"] = name
		}
		return
	}
	dirs := terminfo.Dirs(e.Getenv, h.Home)
	find := func(name string) (err error) {
		var entry terminfo.Entry
		if entry, err = terminfo.Find(name, e.Getenv("TERMINFO"), dirs, h.outOfReach); err == nil {
			h.Terminfo = &entry
		}
		return err
	}
	if err := find(name); err != nil {
		h.TermNotice = "there is no terminfo entry for " + config.Show(name) + " on this machine, so the sandbox is told " + terminfo.Fallback
		name = terminfo.Fallback
		find(name) // the image has it, more likely than not
	}
	h.TermEnv["TERM"] = name
}

// outOfReach tells whether nothing that a sandbox of the profile can write
// leads to a path.
func (h Host) outOfReach(path string) bool {
	if within(path, h.Workspace) || within(path, h.DataRoot) {
		return false
	}
	for _, s := range h.Sources {
		if within(path, s.Path) {
			return false
		}
	}
	return true
}

// TerminfoDir is where a sandbox finds the description of the terminal.
const TerminfoDir = "/run/lazaret/terminfo"

// describe adds the description of the terminal.
func (r *resolver) describe() {
	if r.Host.TermNotice != "" {
		r.notice(r.Host.TermNotice)
	}
	if r.Host.Terminfo == nil {
		return
	}
	dir := filepath.Join(r.dir, "terminfo")
	r.step(step.Step{Name: "terminfo", Op: Terminfo{Dir: dir, Name: r.Host.Terminfo.Name, From: r.Host.Terminfo.Path, Data: r.Host.Terminfo.Data}})
	r.fixed = append(r.fixed, podman.Mount{Kind: "bind", Source: dir, Target: TerminfoDir, ReadOnly: true})
}

// terminalEnv is what tells programs in the sandbox of the terminal.
func (r *resolver) terminalEnv(env map[string]string, pinned lock.PlatformImage) {
	for k, v := range r.Host.TermEnv {
		env[k] = v
	}
	if r.Host.Terminfo != nil {
		// What the image has is looked for after it.
		env["TERMINFO_DIRS"] = TerminfoDir + ":/etc/terminfo:/lib/terminfo:/usr/share/terminfo"
	}
	// Without a locale, programs draw lines and letters beyond ASCII as question
	// marks. C.UTF-8 is there wherever a C library is.
	for _, k := range []string{"LANG", "LC_ALL", "LC_CTYPE"} {
		if _, own := r.profile.Env[k]; own || slices.ContainsFunc(pinned.Env, func(kv string) bool { return strings.HasPrefix(kv, k+"=") }) {
			return
		}
	}
	env["LANG"] = "C.UTF-8"
}

// Terminfo writes the description of the terminal to a directory of its own.
type Terminfo struct {
	Dir  string
	Name string
	From string // where it was found
	Data []byte
}

// Do writes it where curses looks, in both layouts.
func (o Terminfo) Do(context.Context, step.Values) (step.Values, error) {
	if !terminfo.Valid(o.Name) {
		return nil, errors.New("the terminal's name is none: " + config.Show(o.Name))
	}
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return nil, err
	}
	for _, p := range terminfo.Paths(o.Name) {
		path := filepath.Join(o.Dir, p)
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, o.Data, 0o644); err != nil {
			return nil, err
		}
		// Whatever the umask: programs of the sandbox run as other users too.
		if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(filepath.Dir(path), 0o755), os.Chmod(o.Dir, 0o755)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Show names the files.
func (o Terminfo) Show() []string {
	from := o.From
	if from == "" {
		from = "the environment"
	}
	return []string{"install terminfo of " + shown(o.Name) + " from " + shown(from) + " in " + shown(o.Dir)}
}
