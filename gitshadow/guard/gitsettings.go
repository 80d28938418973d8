package guard

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// gitConfig looks at a file of git's settings. It is read as git does, through
// links that stay in the root.
func (w *walker) gitConfig(at, gitDir, work string, depth int) {
	if w.configs[at] {
		return
	}
	w.configs[at] = true
	data, digest, err := w.readIn(at)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EXDEV) { // that one is told of as a link
			w.gap(at, err)
		}
		return
	}
	if int64(len(data)) == w.o.Limits.Bytes {
		w.gap(at, fmt.Sprintf("more than %d bytes: the rest was not looked at", len(data)))
	}
	settings, err := parseConfig(data)
	if err != nil {
		w.add(Finding{Kind: GitConfig, Severity: Warning, Path: Name(at), What: Name(err.Error()), Digest: digest,
			Why: "git cannot read it, and neither can this"})
	}
	for _, s := range settings {
		if w.stop(at) {
			return
		}
		if credential(s) {
			w.add(Finding{Kind: Credentials, Severity: Note, Path: Name(at), What: Name(secretValue.ReplaceAllString(s.key(), "://…@")),
				Why: "it holds credentials, and a sandbox that sees this file can read them"})
		}
		w.setting(s, at, gitDir, work, depth)
	}
}

// setting tells of one that is dangerous, and of the files of the tree that it
// has git run.
func (w *walker) setting(s setting, at, gitDir, work string, depth int) {
	if s.section == "core" && s.name == "worktree" {
		if !w.inside(gitDir, s.value) {
			w.add(Finding{Kind: GitConfig, Severity: Danger, Path: Name(at), What: said(s),
				Why: "git works on the files of another directory"})
		}
		return
	}
	severity, why, ok := dangerOf(s)
	if !ok {
		return
	}
	w.add(Finding{Kind: GitConfig, Severity: severity, Path: Name(at), What: said(s), Why: why, Live: s.name == "fsmonitor"})
	switch {
	case s.name == "hookspath":
		if rel, ok := w.below(work, s.value); ok && !w.hooked[rel] {
			w.hooked[rel] = true
			if fd, err := w.openIn(rel, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
				defer unix.Close(fd)
				w.hooks(fd, rel)
			}
		}
	case s.section == "include" || s.section == "includeif":
		if rel, ok := w.below(path.Dir(at), s.value); ok && depth < 10 {
			w.gitConfig(rel, gitDir, work, depth+1)
		}
	default:
		for _, word := range strings.Fields(strings.TrimPrefix(s.value, "!")) {
			word = strings.Trim(word, `"'`)
			if !strings.Contains(word, "/") || strings.Contains(word, "://") {
				continue
			}
			rel, ok := w.below(work, word)
			if !ok || rel == "" {
				continue
			}
			digest, known := w.digests[rel]
			if !known {
				_, digest, _ = w.readIn(rel)
				w.digests[rel] = digest
			}
			if digest != "" {
				w.add(Finding{Kind: Program, Severity: Danger, Path: Name(rel), What: Name(s.key()), Digest: digest,
					Why: why + ", through a setting of " + at})
			}
		}
	}
}

// said is a setting as it can be shown: without passwords.
func said(s setting) Name {
	return Name(secretValue.ReplaceAllString(s.key()+" = "+s.value, "://…@"))
}

// inside tells whether a path that is read relative to rel stays in the root,
// going by its text.
func (w *walker) inside(rel, to string) bool {
	if path.IsAbs(to) {
		return within(path.Clean(to), w.root)
	}
	return within(path.Join(w.root, rel, to), w.root)
}

// below gives the path from the root of what to names, seen from rel.
func (w *walker) below(rel, to string) (string, bool) {
	if !w.inside(rel, to) {
		return "", false
	}
	if !path.IsAbs(to) {
		to = path.Join(w.root, rel, to)
	}
	return strings.TrimPrefix(strings.TrimPrefix(path.Clean(to), w.root), "/"), true
}
