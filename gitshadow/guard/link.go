package guard

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// link looks at a symlink: where it leads, and whether a tool looks for its
// name.
func (w *walker) link(dirfd int, at, name string, p where) {
	var st unix.Stat_t
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(dirfd, name, buf)
	if err == nil {
		err = unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			w.gap(at, err)
		}
		return
	}
	to := string(buf[:n])
	// The kernel says whether it leads out, by way of whatever other links.
	fd, err := w.openIn(at, unix.O_PATH)
	if err == nil {
		defer unix.Close(fd)
	}
	if errors.Is(err, unix.EXDEV) {
		w.leadsOut(at, to, st.Ino, ruleFor(at, name, p), p)
		return
	}
	if err != nil {
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR): // it leads nowhere
		default:
			w.gap(at, err)
		}
		return
	}
	if p.linked {
		return
	}
	whole := wholeDir(at, name, p)
	r := ruleFor(at, name, p)
	if whole == nil && r == nil {
		return // nobody looks for it
	}
	var target unix.Stat_t
	if unix.Fstat(fd, &target) != nil {
		return
	}
	switch {
	case target.Mode&unix.S_IFMT == unix.S_IFDIR && whole != nil:
		// Tools look into it as if it were there.
		dir, err := w.openIn(at, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return
		}
		defer unix.Close(dir)
		p.under, p.group, p.linked = whole, at, true
		p.depth++
		w.dir(dir, at, p)
	case r != nil:
		data, digest, err := w.readIn(at)
		if errors.Is(err, errNotFile) {
			return
		}
		if err != nil {
			w.gap(at, err)
			return
		}
		w.matched(r, at, data, digest+">"+to, st.Ino, p)
	}
}

// leadsOut tells of a link out of the root.
func (w *walker) leadsOut(at, to string, ino uint64, r *rule, p where) {
	f := Finding{Kind: Link, Severity: Warning, Path: Name(at), What: Name(to), Repair: Aside, Inode: ino,
		Why: "it leads out of the directory: what writes to it writes there, and what copies it copies from there"}
	clean := path.Clean(to)
	switch {
	case r != nil && !p.lower && r.severity > Note && r.kind != Program && r.kind != Submodules && r.kind != Attributes:
		f.Severity, f.Why, f.Live = r.severity, r.why()+", and it leads out of the directory", r.live
	case isAside(path.Base(at)):
		f.Severity, f.Repair = Note, NoRepair
	case systemPath(clean):
		f.Severity, f.Why = Note, "it leads to the system's own files"
	case inSandbox(clean):
		f.Severity, f.Why = Note, fmt.Sprintf("it leads to %q, which is the workspace in a sandbox only", "/workspace")
	}
	w.add(f)
}

// inSandbox tells whether a path is the workspace's as a sandbox sees it.
func inSandbox(p string) bool { return within(path.Clean(p), "/workspace") }

// systemPath tells whether a path is of the system, which ordinary users
// cannot write to.
func systemPath(p string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/etc/alternatives"} {
		if within(p, dir) {
			return true
		}
	}
	return p == "/dev/null"
}
