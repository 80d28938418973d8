package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"lazaret/lock"
	"lazaret/lock/config"
)

// notTrusted is a lock that nobody here has agreed to.
type notTrusted struct {
	what string
	lock lockFile
	said bool // the person was asked, and said no
}

func (e *notTrusted) Error() string { return e.what }

// Hint is the next command.
func (e *notTrusted) Hint() string {
	if e.said {
		return ""
	}
	run := "lazaret trust"
	if e.lock.given != "" {
		run += " --lock " + config.Show(e.lock.given)
	}
	return fmt.Sprintf("review it with %q; on a terminal it asks, and --yes agrees without asking", run)
}

// what says in one line why there is a question.
func (in inquiry) what(d *deps) string {
	shown := config.Show(in.lock.shown)
	switch {
	case in.First:
		return fmt.Sprintf("%s: you have not agreed to what it grants in %s", shown, config.Show(d.tilde(d.cwd)))
	case len(in.Changes) > 0:
		n := lock.Alarms(in.Changes)
		more := ""
		if n > 0 {
			more = fmt.Sprintf(", %d of them grant more of this machine", n)
			if n == 1 {
				more = ", 1 of them grants more of this machine"
			}
		}
		return fmt.Sprintf("%s: it is not what you agreed to on %s: %s%s", shown, when(in.Since), count(len(in.Changes), "change"), more)
	case len(in.Moved) > 0:
		return fmt.Sprintf("%s: what it mounts leads elsewhere than when you agreed to it on %s", shown, when(in.since))
	}
	s := in.shared[0]
	return fmt.Sprintf("profile %s keeps its state in %s, %s", s.profile, config.Show(d.tilde(s.dir)), s.by(d))
}

func (s sharedState) by(d *deps) string {
	if len(s.others) == 0 {
		return "where something lies that no workspace is known to have put there"
	}
	names := make([]string, len(s.others))
	for i, o := range s.others {
		names[i] = config.Show(d.tilde(o))
	}
	return "which was used in " + strings.Join(names, ", ")
}

// ask asks on the terminal. Without one, or without a yes, it is an error.
func (in inquiry) ask(cmd *cobra.Command, d *deps) error {
	stdin, _, _ := files(cmd)
	if stdin == nil || !term.IsTerminal(int(stdin.Fd())) {
		return &notTrusted{what: in.what(d), lock: in.lock}
	}
	// A question goes to the terminal, wherever the output goes.
	to, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return &notTrusted{what: in.what(d), lock: in.lock}
	}
	defer to.Close()
	in.tell(to, d)
	switch ok, err := confirm(stdin, to, "Do you agree?"); {
	case err != nil:
		return err
	case ok:
		return nil
	}
	return &notTrusted{what: "you did not agree, so nothing was done", lock: in.lock, said: true}
}

// confirm asks and reads one line from the terminal. Whatever is not yes is no.
func confirm(stdin *os.File, to io.Writer, question string) (bool, error) {
	// What was typed before the question was there is no answer to it.
	if err := unix.IoctlSetInt(int(stdin.Fd()), unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return false, fmt.Errorf("asking: %w", err)
	}
	fmt.Fprintf(to, "%s [y/N] ", question)
	answer := make([]byte, 64)
	n, err := stdin.Read(answer)
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	said := strings.ToLower(strings.TrimSpace(string(answer[:n])))
	return said == "y" || said == "yes", nil
}

// tell writes what is to be agreed to. What grants something of this machine
// is never left out.
func (in inquiry) tell(w io.Writer, d *deps) {
	io.WriteString(w, d.lines(w, in.what(d)+"\n"))
	marked := 0
	if len(in.Changes) > 0 {
		list, left, folded := digest(in.Changes)
		marked = lock.Alarms(list)
		if len(list) > 0 {
			fmt.Fprintf(w, "\n%s", d.lines(w, lock.Text(list)))
		}
		more := ""
		if folded {
			more += "  … and each of those that are only counted: lazaret trust show\n"
		}
		if left > 0 {
			more += fmt.Sprintf("  … and %s without grants on this machine: lazaret trust show\n", count(left, "more line"))
		}
		if more != "" {
			fmt.Fprintf(w, "\n%s", d.lines(w, more))
		}
	}
	in.tellHost(w, d)
	if marked > 0 {
		fmt.Fprintf(w, "\n%s marked ! %s of this machine.\n", count(marked, "line"), map[bool]string{true: "grants something", false: "grant something"}[marked == 1])
	}
	fmt.Fprintln(w)
}

// digestLines is how much is told one by one before what is alike is folded.
const digestLines = 60

// digest leaves out what grants nothing here, folds what is too much to be read,
// and cuts lines that are too long. What grants something of this machine is
// never cut: the end of a command is where its harm is.
func digest(all []lock.Change) (list []lock.Change, left int, folded bool) {
	const columns = 1000
	for _, c := range all {
		if !c.Alarm && (c.Quiet() || ofThisBuild(c)) {
			left++
			continue
		}
		list = append(list, c)
	}
	list, folded = lock.Fold(list, digestLines)
	for i, c := range list {
		if text := []rune(c.Text); len(text) > columns && !c.Alarm {
			const end = columns / 4
			list[i].Text = fmt.Sprintf("%s… (%d more characters) …%s", string(text[:columns-end]), len(text)-columns, string(text[len(text)-end:]))
		}
	}
	return list, left, folded
}

// ofThisBuild reports whether the change is about the pins of lazaret's own
// programs. Launch takes this build's, or asks about others by themselves.
func ofThisBuild(c lock.Change) bool {
	key := c.Parts[0].Key
	return strings.HasPrefix(key, "sidecar.") || strings.HasPrefix(key, "escalate.")
}

// tellHost says what the lock's words mean on this machine, where that is more
// than they say.
func (in inquiry) tellHost(w io.Writer, d *deps) {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, m := range in.Moved {
		if m.Was == "" {
			say("! + %s: %s leads to %s", m.Profile, config.Show(m.Target), config.Show(m.Is))
		} else {
			say("! ~ %s: %s led to %s, leads to %s", m.Profile, config.Show(m.Target), config.Show(m.Was), config.Show(m.Is))
		}
	}
	for _, profile := range profileNames(in.lock.file) {
		for _, l := range in.leads[profile] {
			if l.Linked {
				say("! %s: %s leads to %s, by a symlink", profile, config.Show(l.Source), config.Show(l.Path))
			}
			if l.Git {
				say("! %s: the sandbox reads git's directory %s", profile, config.Show(l.Path))
			}
			if l.Socket {
				say("! %s: %s is a socket: the sandbox can give orders to what listens there", profile, config.Show(l.Path))
			}
			for _, s := range l.Inside {
				say("! %s: %s holds the socket %s: the sandbox can give orders to what listens there", profile, config.Show(l.Path), config.Show(s))
			}
		}
		if err := in.failed[profile]; err != nil {
			say("  %s: cannot be launched as things are: %s", profile, config.Show(err.Error()))
		}
	}
	for _, s := range in.shared {
		say("! %s: state in %s, %s: what an agent left there is read and run here, and the other way round", s.profile, config.Show(d.tilde(s.dir)), s.by(d))
	}
	for _, x := range foreignTo(in.lock.file, runtime.GOOS+"/"+runtime.GOARCH) {
		say("! its %s is another lazaret's, %s: launch asks about that by itself", x.Kind, x.Digest)
	}
	reads := func(name string) bool { return in.lock.file.Profiles[name].Git.Mode != "none" }
	if slices.ContainsFunc(profileNames(in.lock.file), reads) {
		for _, path := range in.gitConfigs(d) {
			for _, key := range gitCredentials(path) {
				say("! the sandbox reads %s, and %s there holds credentials", config.Show(d.fromHere(path)), config.Show(key))
			}
		}
	}
	for _, n := range in.notes {
		say("  %s", n)
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s", d.lines(w, "on this machine\n"+strings.Join(lines, "\n")+"\n"))
	}
}
