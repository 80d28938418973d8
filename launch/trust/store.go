package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Store is the directory of the records: one file a workspace and lock, one a
// directory of state.
type Store struct{ dir string }

// NewStore names the store at dir. Nothing is made before the first record.
func NewStore(dir string) Store { return Store{dir} }

// UnsafeError is a store that others than its owner can change.
type UnsafeError struct {
	Path   string
	Reason string
}

func (e *UnsafeError) Error() string { return fmt.Sprintf("records of trust: %s %s", e.Path, e.Reason) }

// Hint is what to do.
func (e *UnsafeError) Hint() string {
	return "look at who put it there; without it you are asked again"
}

// open opens the directory, which must be the person's own and nobody else's
// to write to. With make it is made. Without it, a missing one is
// fs.ErrNotExist.
func (s Store) open(make bool) (*os.Root, error) {
	if make {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a place for records of trust: %w", err)
		}
	}
	fi, err := os.Lstat(s.dir)
	if err != nil {
		return nil, err
	}
	if err := safe(s.dir, fi, fs.ModeDir); err != nil {
		return nil, err
	}
	return os.OpenRoot(s.dir + "/")
}

// safe refuses what is of another kind, of another owner, or open to others.
func safe(path string, fi fs.FileInfo, kind fs.FileMode) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case fi.Mode().Type() != kind && kind == fs.ModeDir:
		return &UnsafeError{path, "is not a directory"}
	case fi.Mode().Type() != kind:
		return &UnsafeError{path, "is not a regular file"}
	case !ok || int(st.Uid) != os.Getuid():
		return &UnsafeError{path, "belongs to somebody else"}
	case fi.Mode().Perm()&0o022 != 0:
		return &UnsafeError{path, "can be written to by others"}
	}
	return nil
}

// maxRecord is the most bytes a record may have: a lock of four megabytes, twice
// over for its escapes, and its sources.
const maxRecord = 32 << 20

// read decodes one record. A missing one is fs.ErrNotExist.
func (s Store) read(name string, into any) error {
	root, err := s.open(false)
	if err != nil {
		return err
	}
	defer root.Close()
	path := filepath.Join(s.dir, name)
	fi, err := root.Lstat(name) // opening follows a link that stays in the root
	if err != nil {
		return err
	}
	if err := safe(path, fi, 0); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(fi, opened) {
		return fmt.Errorf("reading the record %s: it changed meanwhile", name)
	}
	if fi.Size() > maxRecord {
		return &UnsafeError{path, "is larger than any record"}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the record %s: it is not one", name)
	}
	return nil
}

// write replaces one record: whole, or not at all. With keep it lasts through a
// power cut, which costs milliseconds.
func (s Store) write(name string, v any, keep bool) error {
	if err := plain(reflect.Indirect(reflect.ValueOf(v))); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	root, err := s.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	var b [6]byte
	rand.Read(b[:])
	tmp := ".new-" + hex.EncodeToString(b[:])
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil && keep {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		root.Remove(tmp)
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// Names of records say for a person what they are about; the digest tells
// them apart.
const (
	lockPrefix  = "lock-"
	statePrefix = "state-"
	suffix      = ".json"
)

func recordName(prefix, path string, of ...string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(path))
	sum := sha256.Sum256([]byte(strings.Join(append(of, path), "\x00")))
	return fmt.Sprintf("%s%.40s-%x%s", prefix, base, sum[:12], suffix)
}

// Get finds the yes to a lock in a workspace, or nil.
func (s Store) Get(workspace, lock string) (*Record, error) {
	r := new(Record)
	err := s.read(recordName(lockPrefix, workspace, lock), r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case r.Version != 1 || r.Workspace != workspace || r.Lock != lock || r.Digest != Digest([]byte(r.Text)):
		return nil, fmt.Errorf("reading the record of %s: it is of something else", filepath.Base(workspace))
	}
	return r, nil
}

// Put records a yes. Version and Digest are filled in.
func (s Store) Put(r Record) error {
	r.Version, r.Digest = 1, Digest([]byte(r.Text))
	return s.write(recordName(lockPrefix, r.Workspace, r.Lock), r, true)
}

// List gives all records, by workspace. Those that cannot be read are left
// out and counted.
func (s Store) List() (list []Record, unreadable int, err error) {
	names, err := s.names(lockPrefix)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		var r Record
		if err := s.read(name, &r); err != nil || r.Digest != Digest([]byte(r.Text)) || recordName(lockPrefix, r.Workspace, r.Lock) != name {
			unreadable++
			continue
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Record) int {
		if c := strings.Compare(a.Workspace, b.Workspace); c != 0 {
			return c
		}
		return strings.Compare(a.Lock, b.Lock)
	})
	return list, unreadable, nil
}

// Revoke takes back every yes given in a workspace, or all there are where it
// is "", and gives the locks they were for.
func (s Store) Revoke(workspace string) (locks []string, err error) {
	return revoke(s, lockPrefix, workspace, func(r Record) (string, string) { return r.Workspace, r.Lock })
}

// revoke removes the records of one kind that were made in a workspace, or all
// there are where it is "", and gives what they were for. of gives a record's
// workspace and what it is for.
func revoke[T any](s Store, prefix, workspace string, of func(T) (string, string)) (gone []string, err error) {
	names, err := s.names(prefix)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	root, err := s.open(false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var errs []error
	for _, name := range names {
		var record T
		err := s.read(name, &record)
		where, what := of(record)
		if workspace != "" && (err != nil || where != workspace) {
			continue
		}
		// One that cannot be read is nobody's yes, and goes with all others.
		if err := root.Remove(name); err != nil {
			errs = append(errs, fmt.Errorf("taking back a yes: %w", err))
			continue
		}
		gone = append(gone, what)
	}
	return gone, errors.Join(errs...)
}

func (s Store) names(prefix string) ([]string, error) {
	root, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing records of trust: %w", err)
	}
	names := slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, prefix) || !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, nil
}

// users is the record of a directory of state.
type users struct {
	Version int       `json:"version"`
	Dir     string    `json:"dir"`
	Used    []string  `json:"used"` // workspaces, oldest first
	Since   time.Time `json:"since"`
}

// Users lists the workspaces that a directory of state has been used by: what
// an agent leaves there, the next one finds.
func (s Store) Users(dir string) ([]string, error) {
	var u users
	err := s.read(recordName(statePrefix, dir), &u)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case u.Version != 1 || u.Dir != dir:
		return nil, fmt.Errorf("reading the record of %s: it is of something else", filepath.Base(dir))
	}
	return u.Used, nil
}

// AddUser records that a workspace uses a directory of state.
func (s Store) AddUser(dir, workspace string, now time.Time) error {
	used, err := s.Users(dir)
	if err != nil {
		used = nil // what cannot be read vouches for nobody
	}
	if slices.Contains(used, workspace) {
		return nil
	}
	return s.write(recordName(statePrefix, dir), users{Version: 1, Dir: dir, Used: append(used, workspace), Since: now}, true)
}

// ForgetUsers forgets which workspaces have used a directory of state: what is
// in it now is none of theirs.
func (s Store) ForgetUsers(dir string) error {
	return s.remove(recordName(statePrefix, dir))
}

// remove removes one record, if it is there.
func (s Store) remove(name string) error {
	root, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
