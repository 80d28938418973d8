package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound a scan. What is beyond them is said to be not looked at.
type Limits struct {
	Time     time.Duration
	Entries  int   // names looked at
	Depth    int   // directories below one another
	Findings int   // things found
	Bytes    int64 // of one file
}

// DefaultLimits are more than any tree needs that people work in.
var DefaultLimits = Limits{Time: 30 * time.Second, Entries: 5_000_000, Depth: 200, Findings: 50_000, Bytes: 1 << 20}

// Options say what Scan looks at.
type Options struct {
	Roots  []string // absolute; those below another are looked at with it
	Limits Limits   // zero: DefaultLimits
	Now    time.Time

	// directory, when set, is told of every directory that is looked at. acts
	// says that any file in it may be one that tools act upon.
	directory func(fd int, acts bool)
}

// Scan looks at the roots. It follows no link, opens nothing but directories
// and regular files, runs nothing, and changes nothing.
func Scan(ctx context.Context, o Options) Snapshot {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limits.Time)
	defer cancel()
	s := Snapshot{Taken: o.Now, Findings: []Finding{}}
	for _, root := range outermost(o.Roots) {
		s.Roots = append(s.Roots, Name(root))
		w := &walker{ctx: ctx, o: o, root: root, out: &s, visited: map[inode]bool{},
			configs: map[string]bool{}, hooked: map[string]bool{}, digests: map[string]string{}}
		w.start()
	}
	slices.SortFunc(s.Findings, compare)
	s.Findings = slices.CompactFunc(s.Findings, func(a, b Finding) bool { return a.same(b) })
	return s
}

// outermost drops roots that lie in others.
func outermost(roots []string) []string {
	roots = slices.Clone(roots)
	slices.SortFunc(roots, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var out []string
	for _, r := range roots {
		if !slices.ContainsFunc(out, func(o string) bool { return within(r, o) }) {
			out = append(out, r)
		}
	}
	return out
}

// within tells whether p is dir or lies below it. Both are clean.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

type inode struct{ dev, ino uint64 }

// walker looks at one root.
type walker struct {
	ctx     context.Context
	o       Options
	root    string
	fd      int // of the root
	out     *Snapshot
	open    bool // other users can get to the root
	visited map[inode]bool
	stopped bool
	// What settings of git name is looked at once, however often they do.
	configs, hooked map[string]bool
	digests         map[string]string // of programs; "" for none
}

// where is where in the tree a directory is, as the rules see it.
type where struct {
	depth  int
	under  *rule  // everything below is for this rule's tool
	group  string // the directory that under is about
	lower  bool   // in what package managers unpack: tools do not act there unasked
	linked bool   // reached by a link: its own are not followed
	// The top of a repository or of the root; a directory in it.
	repo, repoChild bool
}

func (w *walker) start() {
	fd, err := unix.Open(w.root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		w.gap("", err)
		return
	}
	defer unix.Close(fd)
	w.fd = fd
	w.open = reachable(w.root)
	w.dir(fd, "", where{repo: true})
}

// reachable tells whether other users can get to a directory.
func reachable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o001 == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

func (w *walker) gap(rel string, why any) {
	const most = 50
	if len(w.out.Gaps) < most {
		w.out.Gaps = append(w.out.Gaps, Gap{Name(w.root), Name(rel), fmt.Sprint(why)})
	}
}

// stop tells whether a bound is reached, and says so once.
func (w *walker) stop(rel string) bool {
	if w.stopped {
		return true
	}
	switch {
	case w.ctx.Err() != nil:
		w.gap(rel, "it took too long; from here on nothing was looked at")
	case w.out.Entries > w.o.Limits.Entries:
		w.gap(rel, fmt.Sprintf("more than %d files; from here on nothing was looked at", w.o.Limits.Entries))
	case len(w.out.Findings) > w.o.Limits.Findings:
		w.gap(rel, fmt.Sprintf("more than %d findings; from here on nothing was looked at", w.o.Limits.Findings))
	default:
		return false
	}
	w.stopped = true
	return true
}

func (w *walker) add(f Finding) {
	f.Root = Name(w.root)
	w.out.Findings = append(w.out.Findings, f)
}

// list reads a directory that is open.
func (w *walker) list(fd int, rel string) []entry {
	entries, err := readDir(fd, func(n int) bool {
		w.out.Entries += n
		return !w.stop(rel)
	})
	if err != nil {
		w.gap(rel, err)
	}
	return entries
}

// dir looks at an open directory and what is below it.
func (w *walker) dir(fd int, rel string, p where) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		w.gap(rel, err)
		return
	}
	// A directory that is renamed while the walk is in it can come up again.
	id := inode{uint64(st.Dev), st.Ino}
	if w.visited[id] && !p.linked {
		return
	}
	w.visited[id] = true
	if w.o.directory != nil {
		w.o.directory(fd, p.under != nil || actsIn(rel))
	}
	entries := w.list(fd, rel)
	names := map[string]bool{}
	for _, e := range entries {
		switch e.name {
		case ".git", "HEAD", "objects", "refs", "commondir":
			names[e.name] = true
		}
	}
	if names["HEAD"] && (names["objects"] && names["refs"] || names["commondir"]) {
		// Git takes it for a repository from within, whatever it is called.
		w.bare(fd, rel, p)
		return
	}
	p.repo = p.repo || names[".git"]
	for _, e := range entries {
		if w.stop(rel) {
			return
		}
		w.entry(fd, rel, e, p)
	}
}

// entry looks at one name in an open directory.
func (w *walker) entry(dirfd int, rel string, e entry, p where) {
	at := path.Join(rel, e.name)
	var st unix.Stat_t
	if e.kind == unix.DT_REG || e.kind == unix.DT_UNKNOWN || e.kind > unix.DT_SOCK {
		if err := unix.Fstatat(dirfd, e.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if !errors.Is(err, unix.ENOENT) {
				w.gap(at, err)
			}
			return
		}
		e.kind = kindOf(st.Mode)
	}
	if e.name == ".git" {
		w.dotGit(dirfd, rel, e.kind, p)
		return
	}
	switch e.kind {
	case unix.DT_DIR:
		w.enter(dirfd, at, e.name, p)
	case unix.DT_REG:
		w.file(dirfd, at, e.name, st, p)
	case unix.DT_LNK:
		w.link(dirfd, at, e.name, p)
	default:
		w.special(at, e.kind)
	}
}

// enter goes down into a directory.
func (w *walker) enter(dirfd int, at, name string, p where) {
	if p.depth++; p.depth > w.o.Limits.Depth {
		w.gap(at, fmt.Sprintf("more than %d directories below one another", w.o.Limits.Depth))
		return
	}
	fd, err := openDir(dirfd, name)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			w.gap(at, err)
		}
		return // it is gone, or another thing by now
	}
	defer unix.Close(fd)
	if p.under == nil {
		if p.under = wholeDir(at, name, p); p.under != nil {
			p.group = at
		}
	}
	p.repo, p.repoChild = false, p.repo
	p.lower = p.lower || unpacked[name]
	w.dir(fd, at, p)
}

func openDir(dirfd int, name string) (int, error) {
	return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// file looks at a regular file.
func (w *walker) file(dirfd int, at, name string, st unix.Stat_t, p where) {
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		w.setuid(at, st)
	}
	r := ruleFor(at, name, p)
	if r == nil {
		return
	}
	data, digest, err := w.readAt(dirfd, name)
	if err != nil {
		w.gap(at, err)
		return
	}
	w.matched(r, at, data, digest, st.Ino, p)
}

// setuid tells of a file that runs as its owner, whoever starts it.
func (w *walker) setuid(at string, st unix.Stat_t) {
	f := Finding{Kind: Setuid, Severity: Warning, Path: Name(at), Repair: Strip, Inode: st.Ino, Live: true,
		Why: "whoever can get to it runs it as you; no other user can get to this directory now", What: Name(fmt.Sprintf("mode %04o", st.Mode&0o7777))}
	if w.open {
		f.Severity, f.Why = Danger, "every user of this machine can run it as you"
	}
	if int(st.Uid) != os.Getuid() {
		f.Repair, f.Why = NoRepair, fmt.Sprintf("whoever can get to it runs it as user %d, whom a sandbox of yours can be", st.Uid)
	}
	w.add(f)
}

// special tells of what is no file, directory or link. Who opens a FIFO waits.
func (w *walker) special(at string, kind uint8) {
	what, severity, why := "", Warning, "a program that opens it waits, or talks to whoever has the other end"
	switch kind {
	case unix.DT_FIFO:
		what = "named pipe"
	case unix.DT_SOCK:
		what, severity, why = "socket", Note, "a program that connects to it talks to whoever listens"
	default:
		what = "device"
	}
	w.add(Finding{Kind: Special, Severity: severity, Path: Name(at), What: Name(what), Why: why})
}
