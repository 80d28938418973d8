package overlay

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Stack puts the layers of an image together at a directory, uppermost first,
// to be read only.
func Stack(dirs []string, at string) error {
	var l layers
	defer func() { l.close() }()
	var lower []string
	for _, dir := range dirs {
		f, err := openDir(unix.AT_FDCWD, dir, unix.RESOLVE_NO_MAGICLINKS)
		if err != nil {
			return fmt.Errorf("opening a layer of the image: %w", err)
		}
		l.lower = append(l.lower, f)
		lower = append(lower, self(f))
	}
	target, err := openDir(unix.AT_FDCWD, at, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return fmt.Errorf("putting an image together: %w", err)
	}
	defer target.Close()
	err = unix.Mount("overlay", self(target), "overlay", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_RDONLY, "lowerdir="+strings.Join(lower, ":")+",userxattr")
	if err != nil {
		return fmt.Errorf("putting an image together: %w", err)
	}
	return nil
}
