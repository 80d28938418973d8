// Package overlay keeps what a sandbox changes in directories of its image:
// an overlay file system over each of them, whose upper layer lies on the host
// below the profile's directory, as NAME_changes beside NAME_work and
// NAME_merged. It mounts, records, compares, exports and removes; it starts no
// sandbox and knows neither locks nor images, only directories.
//
// Everything in an image and in an upper layer was written by somebody else.
// So every path there is opened beneath its root without following a link, and
// mounted by descriptor: an image's /data -> /home/u must not lay the person's
// home directory under a sandbox.
package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is where the state of one profile lies.
type Place struct {
	DataRoot string // absolute, without symlinks
	// Dir is the directory of the upper layers, below DataRoot: the profile's
	// name, or a run's own below Own where nothing is kept.
	Dir string
	// Records is the directory of what lazaret notes about them, below DataRoot
	// and out of every sandbox's reach.
	Records string
}

// Own is the directory in data_root that is lazaret's: no profile can have
// this name.
const Own = ".lazaret"

// Kept is the place of state that is kept under a profile's directory.
func Kept(dataRoot, dir string) Place {
	return Place{dataRoot, dir, filepath.Join(Own, "state", dir)}
}

// Thrown is the place of state that ends with a run.
func Thrown(dataRoot, run string) Place {
	return Place{dataRoot, filepath.Join(RunDir(run), "state"), filepath.Join(RunDir(run), "records")}
}

// Staged is the place of what a set-up changes until it has succeeded: on the
// file system of what it is added to then.
func Staged(kept Place, run string) Place {
	return Place{kept.DataRoot, filepath.Join(kept.Dir, stageName(run)), filepath.Join(RunDir(run), "setup")}
}

// stageName cannot be foreseen by whoever wrote a lock, and so be a volume.
func stageName(run string) string { return ".setup-" + run }

// RunDir is the directory of a run's own, below data_root.
func RunDir(run string) string { return filepath.Join(Own, "run", run) }

// Names of an overlay's three directories.
func changes(name string) string { return name + "_changes" }
func work(name string) string    { return name + "_work" }
func merged(name string) string  { return name + "_merged" }

// Reserved tells of a name in a place's directory that it may be an overlay's.
func Reserved(name string) bool {
	for _, own := range []string{changes(""), work(""), merged("")} {
		if strings.HasSuffix(name, own) {
			return true
		}
	}
	return strings.HasPrefix(name, stageName("")) || strings.HasPrefix(name, probePrefix)
}

// Error is what makes an overlay impossible, with the way out.
type Error struct {
	What string
	Do   string
}

func (e *Error) Error() string { return e.What }

// Hint is the way out.
func (e *Error) Hint() string { return e.Do }

func refuse(do, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), do}
}

// open makes the place's directories, closed to everybody else, and opens
// them. A file that an agent marked set-user-id would be the person to whoever
// could reach it.
func (p Place) open() (dir, records *os.File, err error) {
	if err := os.MkdirAll(p.DataRoot, 0o700); err != nil {
		return nil, nil, p.unusable(err)
	}
	root, err := openDir(unix.AT_FDCWD, p.DataRoot, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, nil, p.unusable(err)
	}
	defer root.Close()
	if dir, err = makeDirs(root, p.Dir); err != nil {
		return nil, nil, p.unusable(err)
	}
	if records, err = makeDirs(root, p.Records); err != nil {
		dir.Close()
		return nil, nil, p.unusable(err)
	}
	return dir, records, nil
}

// Make makes the place's directories.
func (p Place) Make() error {
	dir, records, err := p.open()
	if err != nil {
		return err
	}
	dir.Close()
	records.Close()
	return nil
}
