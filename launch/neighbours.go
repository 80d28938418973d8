package launch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Several sandboxes may have one workspace, and the empty directories that
// their masks need are there once. Whoever goes last takes them away: removing
// a directory that is a mount point in another sandbox detaches that mount,
// and its agent could then write what the host's editor runs.

// leavingFile in a run directory says that the run needs its masks no more.
const leavingFile = "leaving"

// masksLock is held, among all runs of this person, while mask directories are
// made, or looked for and removed.
const masksLock = "masks.lock"

// withMasks calls f with the lock held.
func withMasks(runs string, f func() error) error {
	l, err := os.OpenFile(filepath.Join(runs, masksLock), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	return f()
}

// neighbours tells whether another live run has the same workspace as r; with
// staying, whether one does that still needs its masks.
func neighbours(runs string, r Record, staying bool) bool {
	ids, err := runIDs(runs)
	if err != nil {
		return false
	}
	for _, id := range ids {
		if id == r.ID {
			continue
		}
		dir := filepath.Join(runs, id)
		var other Record
		b, err := readRegular(filepath.Join(dir, recordFile))
		if err != nil || json.Unmarshal(b, &other) != nil || other.Workspace != r.Workspace {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, leavingFile)); err == nil && staying {
			continue
		}
		lock, err := lockFile(filepath.Join(dir, supervisorLock))
		if errors.Is(err, errHeld) {
			return true
		}
		if err == nil {
			lock.Close()
		}
	}
	return false
}

// removeMask removes a mask's empty directory, unless another run needs it.
func (u *undoer) removeMask(name string) error {
	return withMasks(u.runs, func() error {
		leaving := filepath.Join(u.runs, u.record.ID, leavingFile)
		f, err := os.OpenFile(leaving, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		f.Close()
		if neighbours(u.runs, u.record, true) {
			return nil
		}
		return rmdir(u.record.Workspace, name)
	})
}
