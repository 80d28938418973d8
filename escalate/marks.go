package escalate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Marker finds what a person should see about a request before approving it.
type Marker struct {
	Lookup Lookup
	Dir    string // where the command would run
	Banned func(argv []string) (reason string, banned bool)
}

// Marks marks the arguments of a vector.
func (m Marker) Marks(argv []string) (out []Mark) {
	looked := 0
	for i, a := range argv {
		out = append(out, textMarks(i, a)...)
		switch looked++; {
		case i == 0:
		case looked <= argsLook:
			out = append(out, m.pathMarks(i, a)...)
		case looked == argsLook+1:
			out = append(out, Mark{i, MarkWritable, "may lie in what the sandbox can change, like all that follow: there are too many to look at"})
		}
	}
	if m.Banned == nil || len(argv) == 0 {
		return out
	}
	names := []string{argv[0]}
	if found, real, err := m.Lookup.find(argv[0]); err == nil {
		names = append(names, found, real)
	}
	for _, n := range names {
		if reason, banned := m.Banned(append([]string{n}, argv[1:]...)); banned {
			return append(out, Mark{0, MarkRuns, reason})
		}
	}
	return out
}

// argsLook is how many arguments are looked for on the disk: a request has room
// for tens of thousands.
const argsLook = 300

// textMarks marks what does not show, or shows as something else.
func textMarks(arg int, s string) (out []Mark) {
	for i, r := range s {
		if Hidden(r) && (arg >= 0 || r != '\n' && r != '\t') {
			out = append(out, Mark{arg, MarkHidden, fmt.Sprintf("holds %U at byte %d, which does not show", r, i)})
			break
		}
	}
	if r, mixed := alike(s); mixed {
		out = append(out, Mark{arg, MarkAlike, fmt.Sprintf("holds %q (%U), which looks like a Latin letter and is none", r, r)})
	}
	return out
}

// alike finds a letter of a script whose letters pass for Latin ones, in a text
// that has Latin letters too.
func alike(s string) (found rune, mixed bool) {
	latin, never := false, false // never: nobody writes a language in them
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Latin, r) && r < 0x250:
			latin = true
			continue
		case r >= 0xff01 && r <= 0xff5e, // full-width forms
			r >= 0x1d400 && r <= 0x1d7ff, // mathematical alphabets
			r >= 0x250 && unicode.Is(unicode.Latin, r),
			strings.ContainsRune("‐‑‒–—−⁄∕⧸․‚∶", r): // hyphens, slashes, a dot, a comma, a colon
			never = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Cherokee, unicode.Armenian, unicode.Coptic, unicode.Lisu):
		default:
			continue
		}
		if found == 0 {
			found = r
		}
	}
	return found, found != 0 && (latin || never)
}

// pathMarks marks an argument that names something that the sandbox can change.
func (m Marker) pathMarks(arg int, a string) (out []Mark) {
	seen := map[MarkKind]bool{}
	for _, p := range paths(a) {
		mark, ok := m.pathMark(p)
		if ok && !seen[mark.Kind] {
			seen[mark.Kind] = true
			mark.Arg = arg
			out = append(out, mark)
		}
	}
	return out
}

// paths are the parts of an argument that a program may take for a path.
func paths(a string) []string {
	list := []string{a}
	if _, v, ok := strings.Cut(a, "="); ok {
		list = append(list, v)
	}
	if len(a) > 2 && a[0] == '-' && a[1] != '-' {
		list = append(list, a[2:]) // -ofile
	}
	// Mounts, lists, maps.
	list = append(list, strings.FieldsFunc(a, func(r rune) bool { return strings.ContainsRune("=:,;", r) })...)
	for i, v := range list {
		for _, prefix := range []string{"file://", "fileb://", "@"} {
			v = strings.TrimPrefix(v, prefix)
		}
		list[i] = v
	}
	return list[:min(len(list), 64)]
}

func (m Marker) pathMark(p string) (Mark, bool) {
	if p == "" || strings.ContainsRune(p, 0) || len(p) > 4096 {
		return Mark{}, false
	}
	if p == "/workspace" || strings.HasPrefix(p, "/workspace/") || strings.HasPrefix(p, "/run/lazaret/") {
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			return Mark{Kind: MarkInside, Text: "is a path of the sandbox's; on the host there is none"}, true
		}
	}
	path := p
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.Dir, p)
	}
	path = filepath.Clean(path)
	_, err := os.Lstat(path)
	if err != nil && !strings.Contains(p, "/") {
		return Mark{}, false // a word, not a path
	}
	place, within := m.Lookup.place(path)
	real, rerr := filepath.EvalSymlinks(path)
	if within && rerr == nil {
		if _, still := m.Lookup.place(real); !still {
			return Mark{Kind: MarkLink, Text: fmt.Sprintf("leads from %s, which the sandbox can write to, to %s", place.What, real)}, true
		}
	}
	if !within && rerr == nil {
		place, within = m.Lookup.place(real)
	}
	if !within {
		return Mark{}, false
	}
	return Mark{Kind: MarkWritable, Text: fmt.Sprintf("lies in %s: the sandbox can change it, also after your yes", place.What)}, true
}
