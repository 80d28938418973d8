package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Discard removes a run's own directories in data_root. A set-up of its that
// had succeeded is added to what is kept first.
func Discard(dataRoot, run string) error {
	if !runPattern.MatchString(run) {
		return fmt.Errorf("%q is no run", run)
	}
	root, err := openDir(unix.AT_FDCWD, dataRoot, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	places, err := subdirs(root, Own+"/state")
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range places {
		errs = append(errs, discardStage(root, Kept(dataRoot, dir), run))
	}
	if err := errors.Join(errs...); errors.Is(err, errUnfinished) {
		return nil
	} else if err != nil {
		return err
	}
	runs, err := openDir(fd(root), Own+"/run", beneath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer runs.Close()
	return remove(runs, run)
}

// errUnfinished is a set-up that succeeded and cannot be added to what is kept:
// it stays, with the note of it, for the next launch to add or a reset to give
// up. Nobody could do either while its run counts as not taken down.
var errUnfinished = errors.New("a set-up is left to be added")

// discardStage removes what a run's set-up has staged in one place.
func discardStage(root *os.File, p Place, run string) error {
	k, err := p.Read()
	if err != nil {
		return err
	}
	if k.Commit != nil && k.Commit.Run == run {
		if p.Recover() != nil {
			return errUnfinished
		}
	}
	dir, err := openDir(fd(root), p.Dir, beneath)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil // whatever it is, it is not what a set-up wrote to
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return remove(dir, stageName(run))
}

// subdirs lists the directories in a directory; none where there is none.
func subdirs(at *os.File, path string) (names []string, err error) {
	dir, err := openDir(fd(at), path, beneath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := list(dir)
	for _, n := range all {
		if st, err := lstat(dir, n); err == nil && isDir(st) {
			names = append(names, n)
		}
	}
	return names, err
}

// Leftovers lists the runs that have directories of their own in data_root,
// but for those that hold a place's lock: what only moves state has no record
// of a run elsewhere.
func Leftovers(dataRoot string) ([]string, error) {
	root, err := openDir(unix.AT_FDCWD, dataRoot, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, err := subdirs(root, Own+"/run")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	// After that: who holds a lock took it before there was such a directory.
	places, err := subdirs(root, Own+"/state")
	if err != nil {
		return nil, err
	}
	busy := map[string]bool{}
	for _, dir := range places {
		busy[Kept(dataRoot, dir).heldBy()] = true
	}
	var runs []string
	for _, n := range all {
		if runPattern.MatchString(n) && !busy[n] {
			runs = append(runs, n)
		}
	}
	return runs, nil
}
