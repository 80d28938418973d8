package guard

import (
	"path"
	"strings"
)

// unpacked are directories that hold other people's files as they came: tools
// do not act on what is in there unless somebody goes there.
var unpacked = map[string]bool{"node_modules": true, "site-packages": true, "vendor": true, ".venv": true, "venv": true}

// The rules by what finds them at once: nearly all files match none.
var (
	byName  = map[string][]*rule{} // the last element
	byDir   = map[string]*rule{}   // everything below
	byGlob  []*rule
	actsDir = map[string]bool{} // directories that a two-element rule names
)

func init() {
	for i := range rules {
		r := &rules[i]
		if r.kind == "" {
			r.kind = Tool
		}
		dir, base := path.Split(r.name)
		switch {
		case base == "**":
			byDir[path.Clean(dir)] = r
		case strings.ContainsAny(base, "*?["):
			byGlob = append(byGlob, r)
		default:
			byName[base] = append(byName[base], r)
		}
		if dir != "" {
			actsDir[path.Base(dir)] = true
		}
	}
}

// wholeDir is the rule for everything below the directory at, whose parent is
// p, if there is one.
func wholeDir(at, name string, p where) *rule {
	if r := byDir[name]; r != nil && (!r.top || p.repo) {
		return r
	}
	if r := byDir[path.Join(path.Base(path.Dir(at)), name)]; r != nil && (!r.top || p.repoChild) {
		return r
	}
	return nil
}

// actsIn tells whether any file in this directory may match a rule.
func actsIn(at string) bool {
	name := path.Base(at)
	return actsDir[name] || name == "hooks" || isEnvironment(at)
}

// ruleFor is the rule for a file, or nil.
func ruleFor(at, name string, p where) *rule {
	if isAside(name) {
		return nil // no tool looks for that
	}
	parent := path.Base(path.Dir(at))
	for _, r := range byName[name] {
		if dir := path.Dir(r.name); dir != "." && dir != parent {
			continue
		}
		if r.top && !p.repo {
			continue
		}
		if r.kind == Lazaret && path.Dir(at) == "." {
			continue
		}
		return r
	}
	switch name {
	case ".gitmodules":
		return &gitmodules
	case ".gitattributes":
		return &gitattributes
	}
	for _, r := range byGlob {
		dir, base := path.Split(r.name)
		if dir != "" && path.Clean(dir) != parent {
			continue
		}
		if ok, _ := path.Match(base, name); ok && (!r.top || p.repo) {
			return r
		}
	}
	if strings.HasPrefix(name, "python") && isEnvironment(path.Dir(at)) {
		return &interpreter
	}
	return p.under
}

// interpreter is the python of a virtual environment, where that is a file of
// its own or leads to one in the tree.
var interpreter = rule{name: "bin/python*", severity: Danger, tool: "VS Code and other editors", does: "run the interpreter of an environment they find", live: true, kind: Program}

// environments are the names that virtual environments have.
var environments = map[string]bool{".venv": true, "venv": true, "env": true, ".env": true}

// isEnvironment tells whether a directory has the programs of one.
func isEnvironment(at string) bool {
	return path.Base(at) == "bin" && environments[path.Base(path.Dir(at))]
}

// The two files of git's in a work tree are looked at by what they say.
var (
	gitmodules    = rule{name: ".gitmodules", kind: Submodules}
	gitattributes = rule{name: ".gitattributes", kind: Attributes}
)

// matched tells of a file that a rule is about.
func (w *walker) matched(r *rule, at string, data []byte, digest string, ino uint64, p where) {
	switch r.kind {
	case Submodules:
		w.submodules(at, data, digest, ino)
		return
	case Attributes:
		w.attributes(at, data, digest, ino)
		return
	}
	f := Finding{Kind: r.kind, Severity: r.severity, Path: Name(at), Why: r.why(), Digest: digest, Live: r.live, Repair: Aside, Inode: ino}
	if p.under != nil {
		f.Group = Name(p.group)
	}
	if p.lower && r.kind != Program {
		f.Severity, f.Live = Note, false
	}
	w.add(f)
}

// mayMatter tells whether something of this name can be a finding, for who is
// told of names only.
func mayMatter(name string) bool {
	switch name {
	case ".git", "HEAD", "config", "config.worktree", "commondir", "objects", "refs", "hooks", ".gitmodules", ".gitattributes":
		return true
	}
	if len(byName[name]) > 0 || byDir[name] != nil {
		return true
	}
	for _, r := range byGlob {
		if ok, _ := path.Match(path.Base(r.name), name); ok {
			return true
		}
	}
	return false
}
