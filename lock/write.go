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
func Write(path string, data []byte) (changed bool, err error) {
	switch old, err := config.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
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
