package escalate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	shellquote "github.com/kballard/go-shellquote"
)

// Policy says which commands may run without a question.
type Policy struct {
	AutoApprove      [][]string // a request that begins with one
	AutoApproveExact [][]string // a request that is one
	// Banned tells whether no whitelist may hold a vector, and why: reason
	// reads on after "it".
	Banned func(argv []string) (reason string, banned bool)
}

// metacharacters are what a shell would act on. Here is no shell; but a command
// that holds one was written for a shell, or to be taken for something else.
const metacharacters = ";|&$()`<>\\"

// Decision is what becomes of a request before a person sees it.
type Decision struct {
	Argv    []string
	Program string // as Ask.Program
	Found   string // Program before its symlinks were followed
	Trouble string // why it cannot be run as it is
	Auto    bool   // run it without a question
	Why     string // the whitelist's entry, or why it is asked about
	Refused string // why it is denied without a question; "" if it is not
}

// Decide decides about a command as it was sent.
func Decide(p Policy, l Lookup, raw string, stdin bool) Decision {
	argv, err := shellquote.Split(raw)
	switch {
	case err != nil:
		return Decision{Refused: "the command holds a quote that is not closed"}
	case len(argv) == 0 || argv[0] == "":
		return Decision{Argv: argv, Refused: "the command names no program"}
	}
	d := Decision{Argv: argv}
	if d.Found, d.Program, err = l.find(argv[0]); err != nil {
		d.Trouble = err.Error()
	}
	if l.isSelf(argv[0], d.Found, d.Program) {
		d.Refused = "lazaret is not run for a sandbox: it decides what sandboxes may do"
		return d
	}
	entry, why := p.match(argv)
	switch c, held := firstUnplain(raw); {
	case held:
		d.Why = fmt.Sprintf("it holds %s", c)
	case why != "":
		d.Why = why
	case stdin:
		d.Why = "it comes with input, which no whitelist knows"
	case d.Trouble != "":
		d.Why = d.Trouble
	default:
		d.Auto, d.Why = true, shellquote.Join(entry...)
	}
	if !d.Auto {
		return d
	}
	// Again, and on what the name leads to: /usr/local/bin/tool -> /bin/bash.
	for _, name := range []string{argv[0], d.Found, d.Program} {
		if reason, banned := p.Banned(append([]string{name}, argv[1:]...)); banned {
			d.Auto, d.Why = false, fmt.Sprintf("%s is never run without a question: it %s", name, reason)
			return d
		}
	}
	// Nor on what the sandbox can lead elsewhere, though the entry names it. Other
	// names than absolute ones are looked up in an empty directory.
	m, left := Marker{Lookup: l}, filesLook
	for i, a := range argv {
		if marks := m.pathMarks(i, a, &left); i > 0 && len(marks) > 0 {
			d.Auto, d.Why = false, fmt.Sprintf("argument %d %s", i, marks[0].Text)
			return d
		}
	}
	return d
}

// match finds the whitelist's entry that a vector falls under, or tells why
// there is none.
func (p Policy) match(argv []string) (entry []string, why string) {
	for _, e := range p.AutoApproveExact {
		if len(e) > 0 && slices.Equal(e, argv) {
			return e, ""
		}
	}
	why = "no entry of auto_approve begins like it"
	for _, e := range p.AutoApprove {
		if len(e) == 0 || len(argv) < len(e) || !slices.Equal(e, argv[:len(e)]) {
			continue
		}
		// What was added could name any file to read, or an address to send to.
		if slices.ContainsFunc(argv[len(e):], namesPlace) {
			why = fmt.Sprintf("auto_approve has %q, but not with a path or an address after it", shellquote.Join(e...))
			continue
		}
		return e, ""
	}
	return nil, why
}

// namesPlace tells whether an argument can name what is not in the directory
// where the command runs.
func namesPlace(a string) bool {
	list, _, _ := paths(a)
	return strings.Contains(a, "/") || slices.Contains(list, "..")
}

// isSelf tells whether any of a program's names is lazaret.
func (l Lookup) isSelf(names ...string) bool {
	self, err := os.Stat(l.Self)
	return slices.ContainsFunc(names, func(n string) bool {
		if n == "" || strings.EqualFold(filepath.Base(n), "lazaret") {
			return n != ""
		}
		fi, ferr := os.Stat(n)
		return err == nil && ferr == nil && filepath.IsAbs(n) && os.SameFile(self, fi)
	})
}

// firstUnplain finds the first character of a command that keeps it from
// running without a question.
func firstUnplain(s string) (what string, held bool) {
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return fmt.Sprintf("the byte %#02x, which is no text", s[i]), true
		case strings.ContainsRune(metacharacters, r):
			return fmt.Sprintf("%q, which a shell would act on", r), true
		case Hidden(r):
			return fmt.Sprintf("the character %U, which does not show", r), true
		}
	}
	return "", false
}

// Hidden tells whether r cannot be trusted on a screen: control characters,
// spaces that are no space, marks that reorder text, characters that show as
// nothing.
func Hidden(r rune) bool {
	return r == utf8.RuneError ||
		!unicode.IsPrint(r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// Resolve tells what a vector would run for a person who approves it.
func (l Lookup) Resolve(argv []string, marks func([]string) []Mark) Resolved {
	if len(argv) == 0 {
		return Resolved{Trouble: "there is no command"}
	}
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return Resolved{Trouble: "an argument holds a NUL, which none can"}
		}
	}
	found, real, err := l.find(argv[0])
	if l.isSelf(argv[0], found, real) {
		err = errors.New("lazaret is not run for a sandbox")
	}
	if err != nil {
		return Resolved{Trouble: err.Error(), Marks: marks(argv)}
	}
	return Resolved{Program: real, Marks: marks(argv)}
}
