package launch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/lock/config"
)

// Bind mounts a file or directory of the host at a place of the run directory,
// in the helper's mount namespace, for podman to mount from there: so the
// sandbox gets what was looked at, whatever the path leads to by then, and
// podman's argument holds no character of the path.
type Bind struct {
	Source string // absolute, without symlinks
	Target string
	Dir    bool // the source is a directory
}

// Do opens the source without following any link and mounts what it opened.
func (o Bind) Do(context.Context, step.Values) (step.Values, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, o.Source, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return nil, refuse("look at what replaced it, then launch again", "%s became a symlink meanwhile", config.Show(o.Source))
		}
		if errors.Is(err, unix.ENOENT) {
			return nil, refuse("make it, or take the volume out of lazaret.toml", "there is no %s", config.Show(o.Source))
		}
		return nil, fmt.Errorf("opening %s: %w", config.Show(o.Source), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if dir := st.Mode&unix.S_IFMT == unix.S_IFDIR; dir != o.Dir {
		return nil, refuse("look at what replaced it, then launch again", "%s became something else meanwhile", config.Show(o.Source))
	}
	if o.Dir {
		err = os.Mkdir(o.Target, 0o700)
	} else {
		err = os.WriteFile(o.Target, nil, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), o.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return nil, fmt.Errorf("mounting %s: %w", config.Show(o.Source), err)
	}
	return nil, nil
}

// Show gives the command that would do the same.
func (o Bind) Show() []string {
	return []string{"mount --rbind " + shown(o.Source, o.Target)}
}
