package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lazaret/lock/config"
)

// WriteInPlace is Write for a file that a running sandbox has mounted
// read-only: replacing the file would take the mount away, and what is then
// under its name is the agent's to change. It is not atomic: after a crash the
// file may be a mixture, which Parse refuses. Where there is no file, it is
// made as Write does.
func WriteInPlace(path string, data []byte) (changed bool, err error) {
	if err := readable(path, data); err != nil {
		return false, err
	}
	switch old, err := config.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return Write(path, data)
	case errors.Is(err, config.ErrTooLarge):
	case err != nil:
		return false, fmt.Errorf("replacing %s: %w", config.Show(path), err)
	case bytes.Equal(old, data):
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", config.Show(path), err)
	}
	if fi, serr := f.Stat(); serr != nil || !fi.Mode().IsRegular() {
		err = errors.New("it is no regular file any more")
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", config.Show(path), err)
	}
	return true, nil
}
