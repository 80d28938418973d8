// Package attacks is the catalogue of what an agent, an image or a repository
// may try against a sandbox: data, one file an area, and what it takes to read
// it. It runs nothing; "lazaret doctor --attack" does.
package attacks

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

//go:embed *.toml
var files embed.FS

// Attack is one entry of the catalogue. It is tried by its steps, or carried by
// a test that needs a world of its own (an image, an internet, a terminal).
type Attack struct {
	Area string `toml:"-"` // the file's name
	ID   string `toml:"id"`
	Goal string `toml:"goal"` // what the attacker wants, in one sentence

	// Steps are a shell script, run by the agent in /workspace. It ends by
	// calling won, held or cannot (see Prelude): without one of these the attack
	// was not tried, whatever its status.
	Steps string   `toml:"steps"`
	Needs []string `toml:"needs"` // programs beyond a POSIX shell and the usual ones
	// Terminal has the steps run at a terminal, the harness's own; what matches
	// Leaks must not arrive there.
	Terminal bool   `toml:"terminal"`
	Leaks    string `toml:"leaks"`
	// Later is a script of the next sandbox: that of the same profile, of
	// another one where Other is set, or of Trap, in place of Steps.
	Later string `toml:"later"`
	Other bool   `toml:"other"`
	Trap  *Trap  `toml:"trap"`
	// Host is what another user of the machine, or the person, does meanwhile: a
	// check of the harness, by name.
	Host string `toml:"host"`
	// Test carries the attack in place of Steps.
	Test string `toml:"test"`

	Won   string   `toml:"won"`   // what shows that it succeeded
	Where []string `toml:"where"` // what withstands it: FILE:FUNCTION
	Cases []string `toml:"cases"` // what it stems from: a public report, or by number (H1 …) a hole found while lazaret was designed
	Plain string   `toml:"plain"` // how plain podman does: Succeeds, Holds or Untried
	Why   string   `toml:"why"`   // why, where plain podman is not shown to fall
	// Writeback: it succeeds where the profile shares the repository itself (git =
	// "writeback"), because that is what was asked for.
	Writeback bool `toml:"writeback"`
	// Control is what shows it succeeding without the protection, where plain
	// podman does not: a test, or podman with more flags ("podman run …", with
	// {ARENA} for the harness's directory).
	Control string `toml:"control"`
	Known   string `toml:"known"` // it succeeds: what that means, and what the person can do
}

// Trap is a workspace as a hostile repository would have it, in which a person
// agreed to launch. The harness makes it itself, where no sandbox has written:
// what is agreed to on this machine is never of a sandbox's making. The lock and
// the config of the attacked workspace are in it, unless it says otherwise.
// {ARENA} stands for the harness's directory, {VOLUME} for the directory of the
// workspace that the profile mounts at {TARGET} too.
type Trap struct {
	Files map[string]string `toml:"files"` // a directory where the name ends in a slash
	Links map[string]string `toml:"links"` // where each leads
	// Edit is a regular expression and what takes the place of each match in the
	// lock. Pad is how many bytes of comment come after it.
	Edit []string `toml:"edit"`
	Pad  int      `toml:"pad"`
	// Unagreed has the person launch without having agreed.
	Unagreed bool `toml:"unagreed"`
	// Swapped are files that come to be there after the person has agreed.
	Swapped map[string]string `toml:"swapped"`
	// Refused is a regular expression: what lazaret says when it refuses such a
	// launch for this, and not for something else.
	Refused string `toml:"refused"`
}

func (t *Trap) check() error {
	if t == nil {
		return nil
	}
	if _, err := regexp.Compile(t.Refused); err != nil || t.Refused == "" {
		return fmt.Errorf("refused, a regular expression, is needed")
	}
	if len(t.Edit) == 0 {
		return nil
	}
	if _, err := regexp.Compile(t.Edit[0]); err != nil || len(t.Edit) != 2 {
		return fmt.Errorf("edit is a regular expression and what takes its place")
	}
	return nil
}

// How plain podman does.
const (
	Succeeds = "succeeds"
	Holds    = "holds"
	Untried  = "not tried"
)

// Prelude comes before every script.
const Prelude = `won() { printf '\nwon: %s\n' "$*"; exit 0; }
held() { printf '\nheld: %s\n' "$*"; exit 0; }
cannot() { printf '\ncannot: %s\n' "$*"; exit 0; }
`

// usual are the programs that a script may use without saying so. An image has
// them, or the attack cannot be tried: nothing is held for want of a program.
var usual = strings.Fields("cat chmod cmp cp cut dd df grep head ln ls mkdir mv od readlink rm rmdir sed sha1sum sleep sort tee touch tr wc")

// wordPattern finds what may be the name of a program.
var wordPattern = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// Script is a script as the sandbox gets it, with facts for it to know.
func (a Attack) Script(facts, text string) string {
	var b strings.Builder
	b.WriteString(Prelude + facts)
	if slices.Contains(wordPattern.FindAllString(text, -1), "probe") {
		b.WriteString("[ \"$(probe self '')\" = works ] || cannot 'the harness does not run in this image'\n")
	}
	for _, n := range a.Programs(text) {
		fmt.Fprintf(&b, "command -v %s >/dev/null 2>&1 || cannot 'the image has no %s'\n", n, n)
	}
	return b.String() + text
}

// Programs are what a script of the attack starts, beyond a shell.
func (a Attack) Programs(text string) []string {
	words := wordPattern.FindAllString(text, -1)
	return append(slices.DeleteFunc(slices.Clone(usual), func(n string) bool { return !slices.Contains(words, n) }), a.Needs...)
}

// Loose gives the flags for podman of an attack's control, if that is its kind.
func (a Attack) Loose() (flags string, ok bool) { return strings.CutPrefix(a.Control, "podman run ") }

// Runnable tells whether the attack is tried by a script or a check, and not by a
// test.
func (a Attack) Runnable() bool { return a.Test == "" }

// Load reads the catalogue: in the order of the files' names, and in each as it
// stands there.
func Load() ([]Attack, error) { return load(files) }

func load(in fs.FS) ([]Attack, error) {
	names, err := fs.Glob(in, "*.toml")
	if err != nil {
		return nil, err
	}
	var all []Attack
	seen := map[string]bool{}
	for _, name := range names {
		var file struct {
			Attack []Attack `toml:"attack"`
		}
		data, err := fs.ReadFile(in, name)
		if err != nil {
			return nil, err
		}
		meta, err := toml.Decode(string(data), &file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if u := meta.Undecoded(); len(u) > 0 {
			return nil, fmt.Errorf("reading %s: unknown key %s", name, u[0])
		}
		for _, a := range file.Attack {
			a.Area = strings.TrimSuffix(path.Base(name), ".toml")
			if err := a.check(); err != nil {
				return nil, fmt.Errorf("%s: attack %q: %w", name, a.ID, err)
			}
			if seen[a.ID] {
				return nil, fmt.Errorf("%s: attack %q is there twice", name, a.ID)
			}
			seen[a.ID] = true
			all = append(all, a)
		}
	}
	return all, nil
}

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func (a Attack) check() error {
	kinds := 0
	for _, is := range []bool{a.Steps != "", a.Host != "", a.Test != "", a.Trap != nil} {
		if is {
			kinds++
		}
	}
	_, badLeaks := regexp.Compile(a.Leaks)
	switch {
	case !idPattern.MatchString(a.ID) || !strings.HasPrefix(a.ID, a.Area+"-"):
		return fmt.Errorf("its id is not %s-NAME", a.Area)
	case a.Goal == "" || a.Won == "" || len(a.Where) == 0 || len(a.Cases) == 0:
		return fmt.Errorf("goal, won, where and cases are all needed")
	case kinds != 1:
		return fmt.Errorf("one of steps, host, test and trap is needed")
	case a.Terminal != (a.Leaks != "") || badLeaks != nil:
		return fmt.Errorf("terminal and leaks go together, and leaks is a regular expression")
	case a.Later != "" && a.Steps == "" && a.Trap == nil || a.Terminal && a.Steps == "":
		return fmt.Errorf("later and terminal need steps")
	case (a.Other || a.Trap != nil) && a.Later == "" || a.Other && a.Trap != nil:
		return fmt.Errorf("other and trap say where later runs, and exclude one another")
	case !slices.Contains([]string{Succeeds, Holds, Untried}, a.Plain):
		return fmt.Errorf("plain is %q, %q or %q", Succeeds, Holds, Untried)
	case a.Plain != Succeeds && a.Test == "" && (a.Why == "" || a.Control == ""):
		return fmt.Errorf("where plain podman is not shown to fall, why and control are needed")
	}
	return a.Trap.check()
}
