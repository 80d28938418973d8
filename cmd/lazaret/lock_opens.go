package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/lock"
	"lazaret/lock/config"
)

// mayOpen refuses a --config FILE that lies outside of the workspace and that
// only a lock names which nobody here agreed to: a repository that was cloned
// would choose which of the person's files is read, and learn what it is by what
// is said of it. A link in the workspace leads there too; "lazaret lock" records
// no path with one, so that nobody can have agreed to what is behind it.
func (d *deps) mayOpen(file, path, shown string) error {
	if file == "" {
		return nil
	}
	if !filepath.IsAbs(file) && !strings.HasPrefix(file, "~/") {
		return d.noLinkTo(file, shown)
	}
	if filepath.Dir(path) == filepath.Join(d.stateDir(), "locks") {
		return nil
	}
	store, err := d.trustStore()
	if err != nil {
		return err
	}
	if r, err := store.Get(d.cwd, path); err == nil && r != nil {
		agreed, err := lock.Salvage([]byte(r.Text))
		if err == nil && agreed.Inputs.Override != nil && agreed.Inputs.Override.Path == file {
			return nil
		}
	}
	return hinted{
		fmt.Errorf("%s was made with --config %s, outside of the workspace, and you have not agreed to it here", config.Show(shown), config.Show(file)),
		`give --config again; after "lazaret trust" it takes part by itself`,
	}
}

// noLinkTo refuses a relative path of a lock's that has a link on the way, also
// one that was agreed to: a sandbox may have made the link since.
func (d *deps) noLinkTo(file, shown string) error {
	if file == "" || filepath.IsAbs(file) || strings.HasPrefix(file, "~/") || d.inWorkspace(file) {
		return nil
	}
	return hinted{
		fmt.Errorf("%s was made with --config %s, and now a link is on the way there", config.Show(shown), config.Show(file)),
		"remove the link, or give --config again",
	}
}

// inWorkspace tells whether a relative path stays in the workspace and has no
// link on the way to its last name, which ReadFile looks at. What is not there
// leads nowhere.
func (d *deps) inWorkspace(path string) bool {
	dir, err := os.Open(d.cwd)
	if err != nil {
		return false
	}
	defer dir.Close()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		switch {
		case err == nil:
			unix.Close(fd)
			return true
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		default:
			return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
		}
	}
}
