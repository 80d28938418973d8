package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"lazaret/lock/config"
)

// Write puts data at path and reports whether it had to: where the file holds
// just that already, it is not touched at all. The file is replaced whole or
// not; a full disk leaves the old one. A symbolic link, or anything else that
// is no regular file, is refused: somebody's repository could aim it anywhere.
// So is data that is too large to be read again.
func Write(path string, data []byte) (changed bool, err error) {
	if err := readable(path, data); err != nil {
		return false, err
	}
	switch old, err := config.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, config.ErrTooLarge):
	case err != nil:
		return false, fmt.Errorf("replacing %s: %w", config.Show(path), err)
	case bytes.Equal(old, data):
		return false, nil
	}
	// In the same directory, whatever TMPDIR says, since only there is it
	// certain that renaming replaces. The mode is set whatever the umask says.
	f, err := renameio.NewPendingFile(path,
		renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o644))
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", config.Show(path), err)
	}
	defer f.Cleanup()
	if _, err := f.Write(data); err != nil {
		return false, fmt.Errorf("writing %s: %w", config.Show(path), err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return false, fmt.Errorf("writing %s: %w", config.Show(path), err)
	}
	return true, syncDir(filepath.Dir(path))
}

// readable refuses what no command would read.
func readable(path string, data []byte) error {
	if len(data) <= config.MaxFile {
		return nil
	}
	return &TooLargeError{path, len(data)}
}

// TooLargeError is a lock that would not be read again.
type TooLargeError struct {
	Path string
	Size int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("writing %s: it would have %d bytes, and a lock is read up to %d", config.Show(e.Path), e.Size, config.MaxFile)
}

// Hint is what makes it smaller.
func (e *TooLargeError) Hint() string {
	return "each profile has all its ranges and hosts in the lock: list fewer and wider ranges, or have fewer profiles in one lazaret.toml"
}

// syncDir makes a rename in dir last through a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", config.Show(dir), err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("writing %s: %w", config.Show(dir), err)
	}
	return nil
}
