package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Commit says what a set-up that succeeded adds to the kept layers. It is
// written down before the first file moves, so that whoever finds it goes on:
// from then on, the state is what the set-up made of it.
type Commit struct {
	Run   string   `json:"run"`
	Names []string `json:"names"`
	Setup Setup    `json:"setup"`
}

const commitFile = "commit" + recordSuffix

var runPattern = regexp.MustCompile(`^[0-9a-f]{12}$`)

// Keep adds what a run's set-up changed to the layers of a place. Nothing is
// mounted any more, and the place's lock is held.
func (p Place) Keep(c Commit) error {
	dir, records, err := p.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	defer records.Close()
	if err := writeJSON(records, commitFile, c); err != nil {
		return p.unusable(err)
	}
	return p.unusable(p.finish(dir, records, c))
}

// Recover finishes a Keep that was cut off.
func (p Place) Recover() error {
	dir, records, err := p.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	defer records.Close()
	k, err := read(records)
	if err != nil || k.Commit == nil {
		return err
	}
	err = p.unusable(p.finish(dir, records, *k.Commit))
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return refuse("\"lazaret state reset\" gives it up, with all that is kept there",
		"a set-up that was being added to %s cannot be: %v", show(p.Dir), err)
}

func (p Place) finish(dir, records *os.File, c Commit) error {
	if !runPattern.MatchString(c.Run) {
		return fmt.Errorf("%q is no run", c.Run)
	}
	if len(c.Names) == 0 {
		return p.done(records, c)
	}
	staged := Staged(p, c.Run)
	from, notes, err := staged.open()
	if err != nil {
		return err
	}
	defer from.Close()
	defer notes.Close()
	k, err := read(notes)
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		r, ok := k.Layers[name]
		if !ok {
			return fmt.Errorf("adding the set-up: nothing is recorded of %s", show(name))
		}
		if err := addLayer(from, dir, name, r); err != nil {
			return fmt.Errorf("adding the set-up to %s: %w", show(name), err)
		}
		var have Record
		switch err := readJSON(records, recordFile(name), &have); {
		case errors.Is(err, fs.ErrNotExist):
			if err := writeJSON(records, recordFile(name), r); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return p.done(records, c)
}

func (p Place) done(records *os.File, c Commit) error {
	if err := writeJSON(records, setupFile, c.Setup); err != nil {
		return err
	}
	if err := unlink(records, commitFile, 0); err != nil {
		return err
	}
	return syncDir(records)
}

func addLayer(from, to *os.File, name string, r Record) error {
	layer := changes(name)
	if _, err := lstat(from, layer); errors.Is(err, fs.ErrNotExist) {
		return nil // moved before
	}
	err := unix.Renameat2(fd(from), layer, fd(to), layer, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	src, err := openDir(fd(from), layer, beneath)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := openDir(fd(to), layer, beneath)
	if err != nil {
		return err
	}
	defer dst.Close()
	trash, err := makeDir(from, "trash", 0o700)
	if err != nil {
		return err
	}
	defer trash.Close()
	a := adder{driver: r.Driver, trash: trash, name: name}
	if err := a.merge(src, dst, 0); err != nil {
		return err
	}
	if st, err := stat(src); err != nil || (Top{st.Mode & 0o7777, st.Uid, st.Gid}) == r.Top {
		return err
	}
	return likeDir(src, dst)
}

// adder moves what lies in one upper layer into another, of the same driver.
type adder struct {
	driver string
	trash  *os.File
	name   string
	n      int
}

func (a *adder) merge(src, dst *os.File, depth int) error {
	if depth > deepest {
		return fmt.Errorf("more than %d directories deep", deepest)
	}
	names, err := list(src)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := a.one(src, dst, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (a *adder) one(src, dst *os.File, name string, depth int) error {
	n, _, err := look(src, "", name, a.driver)
	if err != nil {
		return err
	}
	if a.driver == Fuse {
		// A file and its deletion are two names.
		other := whPrefix + name
		if bare, ok := strings.CutPrefix(name, whPrefix); ok && n.gone {
			other = bare
		}
		if _, err := lstat(dst, other); err == nil {
			if err := a.replace(n, dst, other); err != nil {
				return err
			}
		}
	}
	there, err := lstat(dst, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case isDir(n.st) && isDir(there) && !n.opaque:
		return a.both(src, dst, name, depth)
	default:
		if err := a.replace(n, dst, name); err != nil {
			return err
		}
	}
	return unix.Renameat2(fd(src), name, fd(dst), name, unix.RENAME_NOREPLACE)
}

// replace makes way for n. A directory in the place of anything else shows
// nothing of the image's: what was deleted below stays deleted.
func (a *adder) replace(n node, dst *os.File, name string) error {
	if isDir(n.st) && !n.opaque {
		if err := unix.Lsetxattr(n.self(), opaqueAttr(a.driver), []byte("y"), 0); err != nil {
			return err
		}
	}
	return a.throw(dst, name)
}

// both merges two directories.
func (a *adder) both(src, dst *os.File, name string, depth int) error {
	from, err := openDir(fd(src), name, beneath)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openDir(fd(dst), name, beneath)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := a.merge(from, to, depth+1); err != nil {
		return err
	}
	if err := likeDir(from, to); err != nil {
		return err
	}
	return unlink(src, name, unix.AT_REMOVEDIR)
}

// throw puts what is replaced out of the way; it is removed with the stage.
func (a *adder) throw(dir *os.File, name string) error {
	if _, err := lstat(dir, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for {
		a.n++
		err := unix.Renameat2(fd(dir), name, fd(a.trash), a.name+"-"+strconv.Itoa(a.n), unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}

// likeDir gives a directory another one's owner, mode and times.
func likeDir(from, to *os.File) error {
	st, err := stat(from)
	if err != nil {
		return err
	}
	if err := unix.Fchownat(fd(to), "", int(st.Uid), int(st.Gid), unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	if err := unix.Fchmodat(unix.AT_FDCWD, self(to), st.Mode&0o7777, 0); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, self(to), []unix.Timespec{st.Atim, st.Mtim}, 0)
}

func opaqueAttr(driver string) string {
	if driver == Fuse {
		return "user.fuseoverlayfs.opaque"
	}
	return "user.overlay.opaque"
}
