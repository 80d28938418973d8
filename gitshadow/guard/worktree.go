package guard

import (
	"path"
	"strings"
)

// submodules looks at a .gitmodules: git takes from it where to fetch from,
// and which directory to write to.
func (w *walker) submodules(at string, data []byte, digest string, ino uint64) {
	add := func(severity Severity, what, why string) {
		w.add(Finding{Kind: Submodules, Severity: severity, Path: Name(at), What: Name(what), Why: why, Digest: digest, Repair: Aside, Inode: ino})
	}
	add(seen, "", "")
	settings, err := parseConfig(data)
	if err != nil {
		add(Warning, err.Error(), "git cannot read it, and neither can this")
	}
	for _, s := range settings {
		what := s.key() + " = " + s.value
		switch {
		case s.section != "submodule":
			continue
		case oddName(s.sub):
			add(Danger, what, "a submodule's name that leads git to another directory")
		case s.name == "url" && oddURL(s.value):
			add(Danger, what, "git submodule update runs what this url names")
		case s.name == "url" && (strings.HasPrefix(s.value, "/") || strings.HasPrefix(s.value, "file:")):
			add(Warning, what, "git submodule update fetches from a directory of this machine")
		case s.name == "url" && secretValue.MatchString(s.value):
			add(Note, "submodule."+s.sub+".url", "it holds credentials")
		case s.name == "path" && oddPath(s.value):
			add(Danger, what, "git submodule update writes outside of the submodule's directory")
		case s.name == "update" && strings.HasPrefix(s.value, "!"):
			add(Danger, what, "git submodule update runs it")
		}
	}
}

// oddName tells whether a submodule's name means another place below
// .git/modules. Git refuses those, unless it is old.
func oddName(name string) bool {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/")
}

func oddPath(p string) bool {
	c := path.Clean(p)
	if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "-") || c == ".." || strings.HasPrefix(c, "../") || strings.ContainsAny(p, "\n\r\x00") {
		return true
	}
	for _, part := range strings.Split(c, "/") {
		if strings.EqualFold(strings.TrimRight(part, " ."), ".git") {
			return true
		}
	}
	return false
}

// attributes looks at a .gitattributes: it names the filters, diff and merge
// drivers, defined in the person's own configuration, that git runs for a file.
func (w *walker) attributes(at string, data []byte, digest string, ino uint64) {
	w.add(Finding{Kind: Attributes, Severity: seen, Path: Name(at)})
	for _, d := range driversIn(data) {
		f := Finding{Kind: Attributes, Severity: Warning, Path: Name(at), What: Name(d), Digest: digest, Repair: Aside, Inode: ino,
			Why: "git runs the driver of that name for these files, where your configuration has one"}
		if d == "filter=lfs" || d == "diff=lfs" || d == "merge=lfs" {
			f.Severity = Note
		}
		w.add(f)
	}
}

// plainDrivers are built into git and run nothing. Other names of built-in
// diff drivers run something only where the configuration says so.
var plainDrivers = map[string]bool{
	"merge=text": true, "merge=binary": true, "merge=union": true,
	"diff=ada": true, "diff=bash": true, "diff=bibtex": true, "diff=cpp": true, "diff=csharp": true, "diff=css": true, "diff=dts": true,
	"diff=elixir": true, "diff=fortran": true, "diff=fountain": true, "diff=golang": true, "diff=html": true, "diff=java": true,
	"diff=kotlin": true, "diff=markdown": true, "diff=matlab": true, "diff=objc": true, "diff=pascal": true, "diff=perl": true,
	"diff=php": true, "diff=python": true, "diff=ruby": true, "diff=rust": true, "diff=scheme": true, "diff=tex": true, "diff=ini": true,
}

// driversIn lists the drivers that a file of git attributes names, each once.
func driversIn(data []byte) (out []string) {
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		// A pattern may be quoted; what matters are the words after it, and a
		// word of a pattern taken for one does no harm.
		for i, field := range strings.Fields(line) {
			name, value, ok := strings.Cut(field, "=")
			if i == 0 && !strings.HasPrefix(line, "[attr]") || !ok || value == "" {
				continue
			}
			if (name == "filter" || name == "diff" || name == "merge") && !plainDrivers[field] && !seen[field] {
				seen[field] = true
				out = append(out, field)
			}
		}
	}
	return out
}
