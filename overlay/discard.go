package overlay

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Discard removes a run's own directory in data_root.
func Discard(dataRoot, run string) error {
	root, err := openDir(unix.AT_FDCWD, dataRoot, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
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
