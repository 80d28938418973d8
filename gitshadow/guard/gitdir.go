package guard

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// dotGit looks at a name .git: the directory of a repository, or a file or
// link that says where that is.
func (w *walker) dotGit(dirfd int, rel string, kind uint8, p where) {
	at := path.Join(rel, ".git")
	f := Finding{Kind: Repository, Path: Name(at), Repair: Aside, Live: true, Severity: Note,
		Why: "git in this directory obeys what it says"}
	var st unix.Stat_t
	if unix.Fstatat(dirfd, ".git", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		f.Inode = st.Ino
	}
	switch kind {
	case unix.DT_DIR:
		fd, err := openDir(dirfd, ".git")
		if err != nil {
			w.gap(at, err)
			return
		}
		defer unix.Close(fd)
		w.looksInto(fd)
		has := map[string]bool{}
		for _, e := range w.list(fd, at) {
			has[e.name] = true
		}
		if !has["HEAD"] || !(has["objects"] && has["refs"]) && !has["commondir"] {
			return // nothing yet that git takes for a repository
		}
		w.repository(f, p)
		// What git reads from may be listed again: it is small.
		if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err == nil {
			w.gitDir(fd, at, rel, p, map[string]bool{})
		}
	case unix.DT_REG:
		data, digest, err := w.readAt(dirfd, ".git")
		if err != nil {
			w.gap(at, err)
			return
		}
		to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
		if !ok {
			return // git does not know what to do with it
		}
		f.Digest, f.What = digest, Name("gitdir: "+to)
		switch {
		case w.inside(rel, to):
		case inSandbox(to):
			f.Severity, f.Live, f.Why = Warning, false, "git in this directory looks for what only a sandbox has there"
		default:
			if f.Severity = Danger; rel == "" {
				f.Severity = Warning // a worktree of the person's, most likely
			}
			f.Why = "git in this directory obeys a repository that lies elsewhere"
		}
		w.add(f)
	case unix.DT_LNK:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(dirfd, ".git", buf)
		if err != nil {
			w.gap(at, err)
			return
		}
		f.Severity, f.What, f.Why = Danger, Name("symlink to "+string(buf[:n])), "git in this directory obeys what lies at the link's end"
		w.add(f)
	default:
		w.special(at, kind)
	}
}

// looksInto tells who watches of a directory of git's.
func (w *walker) looksInto(fd int) {
	if w.o.directory != nil {
		w.o.directory(fd, true)
	}
}

// repository tells of one.
func (w *walker) repository(f Finding, p where) {
	if p.lower {
		f.Live = false
	}
	w.add(f)
}

// bare looks at a directory that git takes for a repository from within.
func (w *walker) bare(fd int, rel string, p where) {
	var st unix.Stat_t
	unix.Fstat(fd, &st)
	w.repository(Finding{Kind: Repository, Path: Name(rel), What: "without a .git: the directory itself", Repair: Aside, Live: true, Severity: Note, Inode: st.Ino,
		Why: "git started in it obeys what it says"}, p)
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err == nil {
		w.gitDir(fd, rel, rel, p, map[string]bool{})
	}
	// It may hold other things, too: to git it is a repository, to the rest a
	// directory.
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return
	}
	for _, e := range w.list(fd, rel) {
		switch e.name {
		case "HEAD", "objects", "refs", "logs", "hooks", "info", "worktrees", "modules":
		default:
			w.entry(fd, rel, e, p)
		}
	}
}

// gitDir looks at what git reads from its directory at, which is open. work is
// the directory it belongs to, below the root.
func (w *walker) gitDir(fd int, at, work string, p where, seen map[string]bool) {
	if w.stop(at) || p.depth > w.o.Limits.Depth || seen[at] {
		return
	}
	seen[at] = true
	p.depth++
	w.looksInto(fd)
	for _, e := range w.list(fd, at) {
		here := path.Join(at, e.name)
		if e.kind == unix.DT_LNK {
			// Git writes through HEAD, refs and logs; what it reads through
			// others is not looked at here.
			w.gitLink(fd, here, e.name)
			if e.name != "config" && e.name != "config.worktree" {
				continue
			}
		}
		switch e.name {
		case "config", "config.worktree":
			w.gitConfig(here, at, work, 0)
		case "hooks":
			w.within(fd, e, here, func(fd int) { w.hooks(fd, here) })
		case "objects":
			w.within(fd, e, here, func(fd int) { w.objects(fd, here) })
		case "refs", "logs":
			w.within(fd, e, here, func(fd int) { w.refs(fd, here, e.name, p.depth) })
		case "packed-refs":
			w.packedRefs(fd, here)
		case "commondir":
			w.commonDir(fd, here, at)
		case "info":
			w.within(fd, e, here, func(fd int) {
				if data, digest, err := w.readAt(fd, "attributes"); err == nil {
					w.attributes(path.Join(here, "attributes"), data, digest, 0)
				}
			})
		case "rebase-merge", "rebase-apply", "sequencer":
			w.within(fd, e, here, func(fd int) { w.todo(fd, here) })
		case "worktrees", "modules":
			w.within(fd, e, here, func(fd int) { w.gitDirs(fd, here, work, p, seen) })
		default:
			if strings.HasSuffix(e.name, ".lock") {
				w.leftLock(here)
			} else if e.kind != unix.DT_REG && e.kind != unix.DT_DIR && e.kind != unix.DT_UNKNOWN {
				w.special(here, e.kind)
			}
		}
	}
}

// within opens a directory of another and lets f look at it.
func (w *walker) within(dirfd int, e entry, at string, f func(fd int)) {
	if e.kind != unix.DT_DIR && e.kind != unix.DT_UNKNOWN {
		if e.kind != unix.DT_REG {
			w.special(at, e.kind)
		}
		return
	}
	fd, err := openDir(dirfd, e.name)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			w.gap(at, err)
		}
		return
	}
	defer unix.Close(fd)
	f(fd)
}

// gitDirs looks for the directories of worktrees and submodules, which may lie
// deeper: a submodule's name can have slashes.
func (w *walker) gitDirs(fd int, at, work string, p where, seen map[string]bool) {
	if p.depth++; w.stop(at) || p.depth > w.o.Limits.Depth {
		w.gap(at, "too many directories below one another")
		return
	}
	entries := w.list(fd, at)
	for _, e := range entries {
		if e.name == "HEAD" {
			if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err == nil {
				w.gitDir(fd, at, at, p, seen)
			}
			return
		}
	}
	for _, e := range entries {
		here := path.Join(at, e.name)
		switch e.kind {
		case unix.DT_DIR, unix.DT_UNKNOWN:
			w.within(fd, e, here, func(fd int) { w.gitDirs(fd, here, work, p, seen) })
		case unix.DT_LNK:
			w.gitLink(fd, here, e.name)
		}
	}
}

// gitLink tells of a symlink in a git directory.
func (w *walker) gitLink(dirfd int, at, name string) {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(dirfd, name, buf)
	if err != nil {
		return
	}
	var st unix.Stat_t
	unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	w.add(Finding{Kind: Link, Severity: Danger, Path: Name(at), What: Name(buf[:n]), Inode: st.Ino,
		Why: "git reads through it, and writes through it to what lies there"})
}

// commonDir tells of a repository whose settings lie elsewhere, but for git's
// own worktrees, which say so.
func (w *walker) commonDir(fd int, here, at string) {
	data, digest, err := w.readAt(fd, "commondir")
	if err != nil {
		w.gap(here, err)
		return
	}
	to := strings.TrimRight(string(data), "\r\n")
	if to == "../.." && path.Base(path.Dir(at)) == "worktrees" {
		return
	}
	w.add(Finding{Kind: GitConfig, Severity: Danger, Path: Name(here), What: Name(to), Digest: digest,
		Why: "git takes settings and hooks of this repository from there"})
}

func (w *walker) leftLock(at string) {
	w.add(Finding{Kind: Lock, Severity: Note, Path: Name(at),
		Why: "git waits for it or gives up; where no git is at work, it was left behind"})
}
