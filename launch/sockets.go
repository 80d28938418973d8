package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/lock/config"
)

// A sandbox that may ask needs a runtime that connects to sockets of the host,
// and that runtime connects to every one it finds: a key agent's in a volume,
// a process manager's in the project. So all of them are covered but those that
// the person was shown.

// HideSockets covers the Unix sockets below a mounted directory, each with an
// empty file, in the helper's mount namespace.
type HideSockets struct {
	Dir     string   // where the directory is mounted
	Nothing string   // the empty file
	Source  string   // what of the host is mounted there; "": made for the sandbox
	Keep    []string // names directly in it that the person was shown
	Target  string   // what the sandbox has it as; "": not told
}

// Bounds of the search. Whatever is in larger trees is not found, which is said.
const (
	socketTime  = 10 * time.Second
	socketBatch = 1000
)

var socketLook = 500_000 // files; less in a test

var errTooLarge = errors.New("it is too large to look through")

// Do looks through the directory, following no link.
func (o HideSockets) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	root, err := os.OpenRoot(o.Dir + "/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(ctx, socketTime)
	defer cancel()
	var hidden []string
	seen := 0
	// In batches: whoever made the tree may have put any number of files into one
	// directory.
	for dirs := []string{"."}; len(dirs) > 0 && err == nil; {
		// What is nearest the top first: a deep tree hides nothing there.
		at := dirs[0]
		dirs = dirs[1:]
		d, oerr := root.Open(at)
		if oerr != nil {
			continue // what cannot be read, the sandbox cannot either
		}
		for err == nil && oerr == nil {
			var entries []fs.DirEntry
			entries, oerr = d.ReadDir(socketBatch)
			for _, e := range entries {
				name := filepath.Join(at, e.Name())
				switch {
				case e.IsDir():
					dirs = append(dirs, name)
				case e.Type() != fs.ModeSocket || slices.Contains(o.Keep, name):
				default:
					if _, err = o.cover(int(dir.Fd()), name); err != nil {
						err = fmt.Errorf("covering the socket %s: %w", config.Show(name), err)
					}
					hidden = append(hidden, filepath.Join(o.Target, name))
				}
				if err != nil {
					break
				}
			}
			if seen += len(entries); err == nil && seen > socketLook {
				err = errTooLarge
			}
			if err == nil {
				err = ctx.Err()
			}
		}
		d.Close()
	}
	slices.Sort(hidden)
	part := errors.Is(err, errTooLarge) || errors.Is(err, context.DeadlineExceeded)
	if err != nil && !part {
		return nil, err
	}
	if part {
		// A sandbox can make a tree as large as that, for its next launch. What
		// the kernel knows of does not need to be looked for.
		more, err := o.coverBound(int(dir.Fd()), hidden)
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, more...)
	}
	return o.say(hidden, !part), nil
}

// coverBound covers the sockets that programs of this machine listen on, but
// those already covered.
func (o HideSockets) coverBound(dir int, covered []string) (more []string, err error) {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	for _, name := range o.bound(string(b)) {
		in := filepath.Join(o.Target, name)
		if slices.Contains(covered, in) {
			continue
		}
		switch was, err := o.cover(dir, name); {
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EACCES):
			// Nothing of that name is there.
		case err != nil:
			return nil, fmt.Errorf("covering the socket %s: %w", config.Show(name), err)
		case was:
			more = append(more, in)
		}
	}
	return more, nil
}

// bound are the names below the directory that the text of /proc/net/unix gives,
// whether there is something or not.
func (o HideSockets) bound(text string) (out []string) {
	for _, path := range boundSockets(text) {
		name := filepath.Clean(path) // a relative one may be of any directory
		if filepath.IsAbs(name) {
			if o.Source == "" || !within(name, o.Source) {
				continue
			}
			name, _ = filepath.Rel(o.Source, name)
		}
		if filepath.IsLocal(name) && name != "." && !slices.Contains(o.Keep, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// cover covers one socket, where there is one.
func (o HideSockets) cover(dir int, name string) (was bool, err error) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, err
	}
	return true, unix.Mount(o.Nothing, fmt.Sprintf("/proc/self/fd/%d", fd), "", unix.MS_BIND, "")
}

// say tells what was covered; complete says that all was looked through.
func (o HideSockets) say(hidden []string, complete bool) step.Values {
	out := step.Values{}
	if o.Target == "" {
		return out
	}
	if !complete {
		out[toldValue+"size"] = config.Show(o.Target) + " is too large to look through for sockets of this machine: the sandbox can connect to those it finds"
	}
	if len(hidden) > 0 {
		more := ""
		if n := len(hidden) - namesMost; n > 0 {
			hidden, more = hidden[:namesMost], fmt.Sprintf(" and %d more", n)
		}
		out[toldValue+"hidden"] = "sockets of this machine that the sandbox does not see: " + config.Show(strings.Join(hidden, ", ")) + more
	}
	return out
}

// Show says what is done.
func (o HideSockets) Show() []string {
	return []string{"mount --bind " + shown(o.Nothing) + " over every socket below " + shown(o.Dir)}
}

// hideSockets adds the step that covers what lies in a directory that the
// sandbox gets.
func (r *resolver) hideSockets(target string, src Source, at, bound string) {
	if r.asks == nil || !src.Dir || within(src.Path, r.dir) {
		return
	}
	r.asks.seen = append(r.asks.seen, src.Path)
	r.hideIn(HideSockets{Dir: at, Source: src.Path, Keep: src.Sockets, Target: target}, bound)
}

// hideBelow is hideSockets for what other steps have mounted below at.
func (r *resolver) hideBelow(target, at string, keep []string, after string) {
	if r.asks == nil {
		return
	}
	r.hideIn(HideSockets{Dir: at, Keep: keep, Target: target}, after)
}

func (r *resolver) hideIn(op HideSockets, after string) {
	op.Nothing = filepath.Join(r.dir, nothingFile)
	name := cmp.Or(op.Target, after)
	r.step(step.Step{Name: "sockets " + name, Where: step.Podman, Needs: []string{after, "escalate.nothing"}, Op: op})
}

// nothingFile is an empty file in the run directory.
const nothingFile = "nothing"

// socketPause is how often new sockets of this machine are looked for.
const socketPause = 2 * time.Second

// watchSockets says when a program of this machine opens a socket where the
// sandbox can see it: a running sandbox cannot be made blind to that.
func (s *escalation) watchSockets(ctx context.Context) {
	was, err := s.inSight(nil)
	told := map[string]bool{}
	tick := time.NewTicker(socketPause)
	defer tick.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var now map[string]socketFile
		if now, err = s.inSight(was); err != nil {
			return
		}
		for _, path := range newSockets(was, now) {
			if !told[path] && len(told) < 100 {
				told[path] = true
				s.live.emit(step.Event{Kind: step.Notice, Attr: map[string]string{"notice": "a program of this machine opened the socket " + path +
					", and the sandbox can connect to it; the next launch hides it"}})
			}
		}
		was = now
	}
}

// socketFile tells the file of a socket from another of the same name.
type socketFile struct {
	dev, ino uint64
	changed  unix.Timespec
}

// inSight gives the sockets of this machine that the sandbox could see, and those
// that were there before: one that is closed is no new one when it is opened.
func (s *escalation) inSight(was map[string]socketFile) (map[string]socketFile, error) {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	now := socketFiles(string(b), s.config.Dir, s.seen)
	for path, f := range was {
		if _, there := now[path]; !there {
			now[path] = f
		}
	}
	return now, nil
}

// socketFiles finds, in the text of /proc/net/unix, the sockets below dirs. A
// relative name may be one in the workspace.
func socketFiles(text, ws string, dirs []string) map[string]socketFile {
	out := map[string]socketFile{}
	for _, path := range boundSockets(text) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(ws, path)
		}
		if !slices.ContainsFunc(dirs, func(d string) bool { return within(path, d) }) {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			out[path] = socketFile{st.Dev, st.Ino, st.Ctim}
		}
	}
	return out
}

// newSockets gives those that are not what was there. No clock is asked: it may
// have been set meanwhile.
func newSockets(was, now map[string]socketFile) (out []string) {
	for path, f := range now {
		if old, there := was[path]; !there || old != f {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// boundSockets are the names in the text of /proc/net/unix, as they were given.
func boundSockets(text string) (out []string) {
	for line := range strings.Lines(text) {
		// Num: RefCount Protocol Flags Type St Inode Path
		path := strings.TrimSuffix(line, "\n")
		for range 7 {
			_, path, _ = strings.Cut(strings.TrimLeft(path, " "), " ")
		}
		if path != "" && path[0] != '@' && path != "Path" {
			out = append(out, path)
		}
	}
	return out
}
