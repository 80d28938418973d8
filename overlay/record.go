package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Image is the image that an upper layer was used on.
type Image struct {
	Ref    string `json:"ref"`    // as the lock has it
	Config string `json:"config"` // its id, "sha256:…"
}

// Record is what is noted about one upper layer. It lies apart from the layer,
// where no sandbox reaches it.
type Record struct {
	Path   string `json:"path"`   // in the sandbox
	Driver string `json:"driver"` // that made the layer, for ever: the others read it otherwise
	// Instead is why it is not the kernel's, where nobody asked for another.
	Instead string    `json:"instead,omitempty"`
	Image   Image     `json:"image"` // it was last used on
	Used    time.Time `json:"used"`
	Top     Top       `json:"top"` // what the image says of the directory itself
	// Hides are the files of the layer that stand before files which the image
	// has changed since, and HidesMore how many there are beyond those. Unsure
	// counts those of which nobody can tell.
	Hides     []string `json:"hides,omitempty"`
	HidesMore int      `json:"hides_more,omitempty"`
	Unsure    int      `json:"unsure,omitempty"`
}

// Top are a directory's owner and mode.
type Top struct {
	Mode uint32 `json:"mode"`
	UID  uint32 `json:"uid"` // in podman's namespace
	GID  uint32 `json:"gid"`
}

// Setup is what the profile's set-up was when it last succeeded here.
type Setup struct {
	Commands string    `json:"commands"` // a digest of them
	Image    string    `json:"image"`
	Done     time.Time `json:"done"`
}

const (
	recordSuffix = ".json"
	setupFile    = "setup" + recordSuffix
	// No overlay is called that: their names come from paths, and the record of
	// /setup is "=setup.json".
	recordPrefix = "="
	recordMax    = 4 << 20 // bytes
	newPrefix    = ".new-"
)

func recordFile(name string) string { return recordPrefix + name + recordSuffix }

// readJSON reads a small regular file of a directory; a missing one is
// fs.ErrNotExist.
func readJSON(dir *os.File, name string, into any) error {
	f, err := openAt(fd(dir), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, beneath)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := stat(f)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > recordMax {
		return fmt.Errorf("%s is not a record", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, recordMax))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the record %s: %w", name, err)
	}
	return nil
}

// writeJSON replaces a file of a directory, whole and for good, or not at all.
// Whatever kills it leaves no half-made file: until it is whole, it has no name.
func writeJSON(dir *os.File, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	tmp := newPrefix + name
	unix.Unlinkat(fd(dir), tmp, 0)
	f, nameless, err := create(dir, tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync())
	if err == nil && nameless {
		err = unix.Linkat(unix.AT_FDCWD, self(f), fd(dir), tmp, unix.AT_SYMLINK_FOLLOW)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = unix.Renameat(fd(dir), tmp, fd(dir), name)
	}
	if err != nil {
		unix.Unlinkat(fd(dir), tmp, 0)
		return fmt.Errorf("recording %s: %w", name, err)
	}
	return syncDir(dir)
}

// sweepRecords removes what a writeJSON that was killed left. The place's lock
// is held, so nobody writes there.
func sweepRecords(dir *os.File) {
	names, _ := list(dir)
	for _, n := range names {
		if strings.HasPrefix(n, newPrefix) {
			unix.Unlinkat(fd(dir), n, 0)
		}
	}
}

// create makes a file without a name, or with one where the file system knows
// no others.
func create(dir *os.File, name string) (f *os.File, nameless bool, err error) {
	n, err := unix.Openat(fd(dir), ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(n), name), true, nil
	}
	n, err = unix.Openat(fd(dir), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, false, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(n), name), false, nil
}

func syncDir(dir *os.File) error {
	f, err := openAt(fd(dir), ".", unix.O_RDONLY|unix.O_DIRECTORY, beneath)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Known is what is recorded about a place.
type Known struct {
	Layers map[string]Record // by name
	Setup  *Setup            // nil: there was none, or it did not succeed
	Commit *Commit           // nil: no set-up was cut off while it was added
}

// Read reads the records of a place; where there are none, it is empty.
func (p Place) Read() (Known, error) {
	k := Known{Layers: map[string]Record{}}
	root, err := openDir(unix.AT_FDCWD, filepath.Join(p.DataRoot, p.Records), unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer root.Close()
	return read(root)
}

func read(records *os.File) (Known, error) {
	k := Known{Layers: map[string]Record{}}
	names, err := list(records)
	if err != nil {
		return k, err
	}
	for _, n := range names {
		name, ok := strings.CutPrefix(strings.TrimSuffix(n, recordSuffix), recordPrefix)
		if !ok || !strings.HasSuffix(n, recordSuffix) {
			continue
		}
		var r Record
		if err := readJSON(records, n, &r); err != nil {
			return k, err
		}
		k.Layers[name] = r
	}
	var s Setup
	switch err := readJSON(records, setupFile, &s); {
	case err == nil:
		k.Setup = &s
	case !errors.Is(err, fs.ErrNotExist):
		return k, err
	}
	var c Commit
	switch err := readJSON(records, commitFile, &c); {
	case err == nil:
		k.Commit = &c
	case !errors.Is(err, fs.ErrNotExist):
		return k, err
	}
	return k, nil
}

// Fresh tells whether a set-up has to run: it or the image is another than
// when it last did, or one of the directories has nothing yet.
func (k Known) Fresh(want Setup, names []string) bool {
	if k.Setup == nil || k.Setup.Commands != want.Commands || k.Setup.Image != want.Image {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool { _, ok := k.Layers[n]; return !ok })
}
