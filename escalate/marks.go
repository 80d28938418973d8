package escalate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Marker finds what a person should see about a request before approving it.
type Marker struct {
	Lookup Lookup
	Dir    string // where the command would run; "": only absolute paths are looked at
	Banned func(argv []string) (reason string, banned bool)
}

// Marks marks the arguments of a vector.
func (m Marker) Marks(argv []string) (out []Mark) {
	left, room := filesLook, marksText
	for i, a := range argv {
		marks, rest := textMarks(i, a), Mark{i, MarkWritable, "may lie in what the sandbox can change, like all that follow: there is too much to look at"}
		switch {
		case i == argsLook:
			marks = append(marks, rest)
		case i > 0 && i < argsLook:
			marks = append(marks, m.pathMarks(i, a, &left)...)
		}
		for _, k := range marks {
			room -= len(k.Text)
		}
		if room < 0 {
			if i <= argsLook {
				out = append(out, rest)
			}
			break // what does not show, the prompt says by itself
		}
		out = append(out, marks...)
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

// marksText is how many bytes the marks of the arguments may have: each that leads
// elsewhere repeats where, which a few symlinks make as long as thousands of names.
const marksText = 64 << 10

// filesLook is how many names are looked up for one request: a path has room
// for thousands of them, and each may be a symlink to thousands more.
const filesLook = 20_000

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

// nothing tells whether an error says that there is no such file, nor can be.
func nothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENAMETOOLONG)
}

// pathMark marks a path. left is how many names may still be looked up.
func (m Marker) pathMark(p string, left *int) (Mark, bool) {
	if p == "" || strings.ContainsRune(p, 0) || len(p) > 4096 || m.Dir == "" && !filepath.IsAbs(p) {
		return Mark{}, false
	}
	if p == "/workspace" || strings.HasPrefix(p, "/workspace/") || strings.HasPrefix(p, "/run/lazaret/") {
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			return Mark{Kind: MarkInside, Text: "is a path of the sandbox's; on the host there is none"}, true
		}
	}
	return m.leadMark(p, left)
}

// leadMark marks a path by where it leads.
func (m Marker) leadMark(p string, left *int) (Mark, bool) {
	mark, ok := m.lead(p, left).mark()
	if mark.Kind != MarkLink && slices.Contains(strings.Split(p, "/"), "..") {
		// Some programs take .. out of the text before they open anything.
		if other, also := m.lead(filepath.Clean(p), left).mark(); !ok || other.Kind == MarkLink {
			return other, also
		}
	}
	return mark, ok
}

// mark says what a trail means to a person.
func (t trail) mark() (Mark, bool) {
	switch {
	case t.word:
		return Mark{}, false
	case t.unknown:
		return Mark{Kind: MarkWritable, Text: "may lie in what the sandbox can change: there is too much to look at"}, true
	case t.turned || t.linked && t.in == "":
		return Mark{Kind: MarkLink, Text: fmt.Sprintf("leads from %s, which the sandbox can write to, to %s", t.from, legible(t.end))}, true
	case t.in != "":
		return Mark{Kind: MarkWritable, Text: fmt.Sprintf("lies in %s: the sandbox can change it, also after your yes", t.in)}, true
	case t.from != "":
		return Mark{Kind: MarkWritable, Text: fmt.Sprintf("leads through %s: the sandbox can change where to, also after your yes", t.from)}, true
	}
	return Mark{}, false
}

// pathText is how much of a path a mark repeats, in bytes.
const pathText = 300

// legible is a path as a mark names it: one that is not UTF-8 would come back as
// another text from whoever answers through JSON. Of a long one it is the beginning,
// and what tells it from all others with that: two marks are compared.
func legible(path string) string {
	if len(path) > pathText {
		return fmt.Sprintf("%q… (%d bytes, sha256 %x)", path[:pathText], len(path), sha256.Sum256([]byte(path)))
	}
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

// trail is what a path came by.
type trail struct {
	end     string // where it leads
	in      string // the place of the sandbox's that this lies in
	from    string // the first that it came through
	linked  bool   // by a symlink there
	turned  bool   // and then up again
	word    bool   // nothing of it is there, nor need a path be meant: a branch, an address
	unknown bool   // there was too much to look at
}

// lead follows a path to where it leads, or would if it were there.
func (m Marker) lead(p string, left *int) (t trail) {
	w := newWay(m.Dir, p)
	if filepath.IsAbs(p) {
		w.at = "/"
	}
	w.cwd = m.Dir
	// Where a relative path begins with no name that is there, the sandbox can still
	// make one; that, it could of any word, and it is seen when it has.
	word := !filepath.IsAbs(p) && !slices.Contains(w.rest, "..")
	for first := true; len(w.rest) > 0; first = false {
		if *left--; *left < 0 {
			t.unknown = true
			return t
		}
		s, err := w.next()
		if errors.Is(err, errTooLong) {
			t.unknown = true
			return t
		}
		// The sandbox does not replace a place itself, only what is in it.
		if place, in := m.Lookup.place(s.entry); in && s.entry != place.Path {
			if t.from == "" {
				t.from = place.What
			}
			t.linked = t.linked || s.link
		}
		t.turned = t.turned || t.linked && s.up
		if err != nil {
			t.word = word && first && nothing(err)
			w.at = filepath.Join(s.entry, filepath.Join(w.rest...))
			break
		}
	}
	t.end = w.at
	if place, in := m.Lookup.place(t.end); in {
		t.in = place.What
	}
	return t
}
