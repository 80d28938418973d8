package overlay

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Reset takes layers away, so that their directories are the image's again.
// The place's lock is held. It moves them aside first, so that they are gone
// at once and whole, and removes them then.
func (p Place) Reset(names []string, run string) error {
	dir, records, err := p.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	defer records.Close()
	if err := p.giveUp(records, names); err != nil {
		return err
	}
	aside, notes, err := Staged(p, run).open()
	if err != nil {
		return err
	}
	defer aside.Close()
	notes.Close()
	// The set-up was of the whole.
	if err := unlink(records, setupFile, 0); err != nil {
		return err
	}
	for _, name := range names {
		for _, part := range []string{changes(name), work(name)} {
			err := unix.Renameat2(fd(dir), part, fd(aside), part, unix.RENAME_NOREPLACE)
			if err != nil && !errors.Is(err, unix.ENOENT) {
				return p.unusable(&fs.PathError{Op: "rename", Path: part, Err: err})
			}
		}
		if err := unlink(records, recordFile(name), 0); err != nil {
			return err
		}
		// Empty, unless somebody wrote there while nothing was mounted.
		if err := unlink(dir, merged(name), unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	if err := syncDir(records); err != nil {
		return err
	}
	return Discard(p.DataRoot, run)
}

// giveUp forgets a set-up that was cut off while it was added, where all that it
// would be added to is removed. Else it is added first.
func (p Place) giveUp(records *os.File, names []string) error {
	k, err := read(records)
	if err != nil || k.Commit == nil {
		return err
	}
	for name := range k.Layers {
		if !slices.Contains(names, name) {
			return p.Recover()
		}
	}
	if err := unlink(records, commitFile, 0); err != nil {
		return err
	}
	if err := syncDir(records); err != nil {
		return err
	}
	return Discard(p.DataRoot, k.Commit.Run)
}

// openNode opens a regular file of a layer.
func openNode(n node) (*os.File, error) {
	return openAt(fd(n.dir), n.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, beneath)
}
