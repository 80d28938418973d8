package escalate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pathMarks marks an argument that names something that the sandbox can change.
func (m Marker) pathMarks(arg int, a string, left *int) (out []Mark) {
	seen := map[MarkKind]bool{}
	add := func(mark Mark, ok bool) {
		if ok && !seen[mark.Kind] {
			seen[mark.Kind] = true
			mark.Arg = arg
			out = append(out, mark)
		}
	}
	list, written, more := paths(a)
	for _, p := range list {
		add(m.pathMark(p, left))
	}
	for _, p := range written {
		if m.begins(m.Dir, p, left) {
			add(m.pathMark(p, left))
		}
	}
	within, many := m.within(a, left)
	for _, p := range within {
		add(m.leadMark(p, left))
	}
	if (more || many) && !seen[MarkWritable] {
		add(Mark{Kind: MarkWritable, Text: "may name what the sandbox can change: it has too many parts to look at"}, true)
	}
	return out
}

// partsLook is how many parts of an argument are looked for on the disk.
const partsLook = 64

// paths are the parts of an argument that a program may take for a path; more
// tells that there are others. written are those that only are where their first
// name is there: as they are written, with what some programs take off, and what
// follows options of one letter.
func paths(a string) (list, written []string, more bool) {
	list = []string{a}
	if _, v, ok := strings.Cut(a, "="); ok {
		list = append(list, v)
	}
	if len(a) > 2 && a[0] == '-' && a[1] != '-' {
		list = append(list, a[2:]) // -ofile
	}
	// Mounts, lists, maps.
	list = append(list, strings.FieldsFunc(a, func(r rune) bool { return strings.ContainsRune("=:,;", r) })...)
	if more = len(list) > partsLook; more {
		list = list[:partsLook]
	}
	for i, v := range list {
		if len(v) > 2 && v[0] == '-' && v[1] != '-' && (i == 0 || v != a) {
			written = append(written, clustered(v)...) // -xzffile
		}
		forms := peel(v)
		list[i], forms = forms[len(forms)-1], forms[:len(forms)-1]
		written = append(written, forms...)
	}
	return list, written, more
}

// peel is a text as it is, and after each thing that some programs take off.
func peel(v string) []string {
	forms := []string{v}
	for again := true; again; {
		again = false
		for _, prefix := range []string{"file://", "fileb://", "@", "<"} {
			if rest, ok := strings.CutPrefix(v, prefix); ok {
				v, again = rest, true
				forms = append(forms, v)
			}
		}
	}
	return forms
}

// clustered are the paths that may follow options of one letter each.
func clustered(v string) (out []string) {
	first, _, _ := strings.Cut(v, "/")
	// No name is longer than 255 bytes.
	for i := max(2, len(first)-255-len("fileb://")); i < len(first); i++ {
		out = append(out, peel(v[i:])...)
	}
	return out
}

// ends are what ends a path in a text that holds more than it.
const ends = "\"'`,;:=?#&|<>()[]{} \t\r\n"

// within are the paths that begin inside of an argument, whatever stands before
// them: absolute ones, those below the home directory, and those with a leading dot.
// Only what is there counts: nearly every text with a slash would be one else.
func (m Marker) within(a string, left *int) (list []string, more bool) {
	add := func(dir, p string) {
		p = p[:min(len(p), 4096)]
		from := 0
		if place, in := m.Lookup.place(p); in {
			from = len(place.Path) // which may hold any of them
		}
		short := p
		if i := strings.IndexAny(p[from:], ends); i >= 0 {
			short = p[:from+i]
		}
		for _, p := range slices.Compact([]string{p, short}) {
			if p != a && !strings.ContainsRune(p, 0) && m.begins(dir, strings.TrimLeft(p, "/"), left) {
				list = append(list, p)
			}
		}
	}
	for i := range len(a) {
		if len(list) > partsLook || *left < 0 {
			return list[:min(len(list), partsLook)], true
		}
		before := byte(0)
		if i > 0 {
			before = a[i-1]
		}
		switch {
		case a[i] == '/' && before != '/':
			add("/", a[i:])
			if m.Lookup.isHome(a[:i]) {
				add("/", m.Lookup.Home+a[i:])
			}
		case a[i] == '.' && before != '/' && before != '.' && (strings.HasPrefix(a[i:], "./") || strings.HasPrefix(a[i:], "../")):
			add(m.Dir, a[i:])
		}
	}
	return list, false
}

// isHome tells whether a text ends in what programs take for the home directory.
func (l Lookup) isHome(s string) bool {
	return l.Home != "" && slices.ContainsFunc([]string{"~", "~" + filepath.Base(l.Home), "$HOME", "${HOME}", "%d"}, func(end string) bool {
		return strings.HasSuffix(s, end)
	})
}

// begins tells whether the first name of a path in a directory is there.
func (m Marker) begins(dir, p string, left *int) bool {
	first, _, _ := strings.Cut(p, "/")
	if *left--; *left < 0 || dir == "" || first == "" || len(first) > 255 {
		return false
	}
	_, err := os.Lstat(filepath.Join(dir, first))
	return !nothing(err)
}
