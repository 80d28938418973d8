package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// removeStore removes what a run's git directories were made of. The sandbox
// wrote in it, so it may be of any depth.
func removeStore(dataRoot, name string) error {
	root, err := os.OpenRoot(dataRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}
