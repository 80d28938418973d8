package guard

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// hooks tells of the programs in a hooks directory that git runs.
func (w *walker) hooks(fd int, at string) {
	w.looksInto(fd)
	for _, e := range w.list(fd, at) {
		here := path.Join(at, e.name)
		if strings.HasSuffix(e.name, ".sample") || isAside(e.name) {
			continue
		}
		w.hook(fd, here, e.name, "git runs it as the hook "+e.name)
	}
}

func (w *walker) hook(dirfd int, here, name, why string) {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	f := Finding{Kind: Hook, Severity: Danger, Path: Name(here), Why: why, Repair: Aside, Inode: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, 4096)
		n, _ := unix.Readlinkat(dirfd, name, buf)
		f.What = Name("symlink to " + string(buf[:max(n, 0)]))
		if _, digest, err := w.readIn(here); err == nil {
			f.Digest = digest
		}
	case unix.S_IFREG:
		if st.Mode&0o111 == 0 {
			return // git passes over it
		}
		_, digest, err := w.readAt(dirfd, name)
		if err != nil {
			w.gap(here, err)
			return
		}
		f.Digest = digest
	default:
		return
	}
	w.add(f)
}

// objects looks for links among a repository's objects, and for those that it
// borrows.
func (w *walker) objects(fd int, at string) {
	for _, e := range w.list(fd, at) {
		here := path.Join(at, e.name)
		if e.kind == unix.DT_LNK {
			w.gitLink(fd, here, e.name)
			continue
		}
		if len(e.name) != 2 && e.name != "info" && e.name != "pack" {
			continue
		}
		w.within(fd, e, here, func(fd int) {
			for _, o := range w.list(fd, here) {
				switch {
				case o.kind == unix.DT_LNK:
					w.gitLink(fd, path.Join(here, o.name), o.name)
				case o.kind != unix.DT_REG && o.kind != unix.DT_DIR && o.kind != unix.DT_UNKNOWN:
					w.special(path.Join(here, o.name), o.kind)
				case e.name == "info" && (o.name == "alternates" || o.name == "http-alternates"):
					data, digest, err := w.readAt(fd, o.name)
					if err != nil {
						w.gap(path.Join(here, o.name), err)
						continue
					}
					w.add(Finding{Kind: Alternates, Severity: Warning, Path: Name(path.Join(here, o.name)), What: Name(strings.TrimSpace(string(data[:min(len(data), 1000)]))), Digest: digest, Repair: Aside,
						Why: "git reads objects from there, and a fetch can bring them here"})
				}
			}
		})
	}
}

// todo tells of commands that "git rebase --continue" would run.
func (w *walker) todo(fd int, at string) {
	for _, name := range []string{"git-rebase-todo", "todo"} {
		data, digest, err := w.readAt(fd, name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "exec" || word == "x" {
				w.add(Finding{Kind: Todo, Severity: Danger, Path: Name(path.Join(at, name)), What: Name(strings.TrimSpace(rest)), Digest: digest,
					Why: "git rebase --continue runs it"})
			}
		}
	}
}
