package guard

import (
	"bufio"
	"io"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// refs looks at the names of refs and logs, and for links among them.
func (w *walker) refs(fd int, at, name string, depth int) {
	if depth > w.o.Limits.Depth {
		w.gap(at, "too many directories below one another")
		return
	}
	for _, e := range w.list(fd, at) {
		if w.stop(at) {
			return
		}
		here := path.Join(at, e.name)
		switch e.kind {
		case unix.DT_LNK:
			w.gitLink(fd, here, e.name)
		case unix.DT_DIR:
			if oddRef(e.name) && !inLogs(name) {
				w.oddRef(here, path.Join(name, e.name))
			}
			w.within(fd, e, here, func(fd int) { w.refs(fd, here, path.Join(name, e.name), depth+1) })
		case unix.DT_REG, unix.DT_UNKNOWN:
			switch {
			case strings.HasSuffix(e.name, ".lock"):
				w.leftLock(here)
			case oddRef(e.name) && !inLogs(name):
				w.oddRef(here, path.Join(name, e.name))
			case strings.HasPrefix(name, "refs/replace"):
				w.replaces(here, path.Join(name, e.name))
			}
		default:
			w.special(here, e.kind)
		}
	}
}

// inLogs tells whether a directory is of the logs, which repeat the refs' names.
func inLogs(name string) bool { return name == "logs" || strings.HasPrefix(name, "logs/") }

func (w *walker) oddRef(at, name string) {
	w.add(Finding{Kind: Ref, Severity: Warning, Path: Name(at), What: Name(name),
		Why: "a script or prompt that puts the name into a command runs what it says"})
}

func (w *walker) replaces(at, name string) {
	w.add(Finding{Kind: Ref, Severity: Warning, Path: Name(at), What: Name(name),
		Why: "git shows another object in that one's place"})
}

// oddRef tells whether a part of a ref's name means something to a shell or on
// a screen, though git allows it.
func oddRef(name string) bool {
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, ";&|$()`<>'\"!{}\\#") || !utf8.ValidString(name) {
		return true
	}
	return strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// packedBytes bounds packed-refs: a hundred thousand refs are 7 MB.
const packedBytes = 64 << 20

// packedRefs looks at the names in a packed-refs file.
func (w *walker) packedRefs(dirfd int, at string) {
	fd, err := unix.Openat(dirfd, "packed-refs", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return
	}
	if fi.Size() > packedBytes {
		w.gap(at, "larger than any packed-refs: the rest was not looked at")
	}
	in := bufio.NewScanner(io.LimitReader(f, packedBytes))
	in.Buffer(make([]byte, 64<<10), 64<<10)
	for in.Scan() && !w.stop(at) {
		_, name, ok := strings.Cut(in.Text(), " ")
		if !ok || name == "" || in.Text()[0] == '#' || in.Text()[0] == '^' {
			continue
		}
		switch {
		case oddRef(name):
			w.oddRef(at, name)
		case strings.HasPrefix(name, "refs/replace/"):
			w.replaces(at, name)
		}
	}
	if in.Err() != nil {
		w.gap(at, in.Err())
	}
}
