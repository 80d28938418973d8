package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
)

// WriteFile writes a file of the run directory.
type WriteFile struct {
	Path string
	Text string
}

// Do writes the file; it must not be there yet.
func (o WriteFile) Do(context.Context, step.Values) (step.Values, error) {
	f, err := os.OpenFile(o.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(o.Text)
	return nil, errors.Join(err, f.Close())
}

// Show names the file.
func (o WriteFile) Show() []string { return []string{"write " + shown(o.Path)} }

// MaskDir makes the empty directory that a mask of the workspace covers.
type MaskDir struct {
	Workspace string
	Name      string
	Runs      string // where the records lie; see withMasks
}

// Do makes the directory, or finds that of another run that began meanwhile.
func (o MaskDir) Do(context.Context, step.Values) (step.Values, error) {
	root, err := os.OpenRoot(o.Workspace + "/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = withMasks(o.Runs, func() error {
		err := root.Mkdir(o.Name, 0o755)
		if fi, lerr := root.Lstat(o.Name); lerr == nil && fi.IsDir() {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return nil, refuse("make the workspace writable for you, or make an empty directory "+o.Name+" in it",
			"the workspace cannot be written to: %v", err)
	}
	return nil, err
}

// Show gives the command that would do the same.
func (o MaskDir) Show() []string {
	return []string{"mkdir " + shown(filepath.Join(o.Workspace, o.Name))}
}

// StateDir makes a directory below data_root that a volume keeps its data in.
// It stays.
type StateDir struct {
	DataRoot string
	Name     string // below DataRoot
}

// Do makes the directory and those above it, for nobody else to enter: a
// set-user-id file that an agent left there must be out of reach of others.
func (o StateDir) Do(context.Context, step.Values) (step.Values, error) {
	return nil, closedDir(o.DataRoot, o.Name)
}

// closedDir makes a directory below data_root, the first part of whose path is
// closed to others.
func closedDir(dataRoot, name string) error {
	if err := os.MkdirAll(dataRoot, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dataRoot + "/")
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	first, _, _ := strings.Cut(name, "/")
	return root.Chmod(first, 0o700)
}

// Show gives the command that would do the same.
func (o StateDir) Show() []string {
	return []string{"mkdir -p " + shown(filepath.Join(o.DataRoot, o.Name))}
}
