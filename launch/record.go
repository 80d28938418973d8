package launch

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/lock/config"
)

// Files of a run directory, $XDG_RUNTIME_DIR/lazaret/ID/.
const (
	recordFile     = "run.json"
	journalFile    = "journal"
	supervisorLock = "supervisor.lock" // held by lazaret itself
	helperLock     = "helper.lock"     // held by the helper in podman's namespace
	controlSocket  = "control.sock"
	confFile       = "containers.conf"
	mountsDir      = "mnt"
)

// Record says what a run is. On disk it is untrusted input.
type Record struct {
	ID        string    `json:"id"` // 12 hex digits
	Profile   string    `json:"profile"`
	Workspace string    `json:"workspace"` // absolute
	DataRoot  string    `json:"data_root"` // absolute
	Started   time.Time `json:"started"`
	Detached  bool      `json:"detached,omitempty"` // it can be attached to
}

var (
	idPattern      = regexp.MustCompile(`^[0-9a-f]{12}$`)
	profilePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,31}$`)
)

// Container is the name of the run's sandbox in podman.
func (r Record) Container() string { return "lazaret-" + r.Profile + "-" + r.ID }

// Sidecar is the name of the run's router in podman.
func (r Record) Sidecar() string { return r.Container() + "-net" }

func (r Record) check(id string) error {
	switch {
	case r.ID != id || !idPattern.MatchString(r.ID):
		return errors.New("the record is of another run")
	case !profilePattern.MatchString(r.Profile):
		return errors.New("the record names no possible profile")
	case !filepath.IsAbs(r.Workspace) || filepath.Clean(r.Workspace) != r.Workspace:
		return errors.New("the record names no possible workspace")
	case !filepath.IsAbs(r.DataRoot) || filepath.Clean(r.DataRoot) != r.DataRoot:
		return errors.New("the record names no possible data_root")
	}
	return nil
}

// NewID makes a run id.
func NewID() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// runsDir is where the records lie, made if need be.
func runsDir(runtimeDir string) (string, error) {
	dir := filepath.Join(runtimeDir, "lazaret")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("making the run directory: %w", err)
	}
	return dir, nil
}

// runRoom is what a launch needs to be free where the records lie, in bytes: it,
// podman and the runtime keep about half of that there, with a network, too, and
// with just this much it takes no longer than with more (TestFaultFullDisk). With
// less, whichever comes to the end first says so in its own words, or does not.
const runRoom = 128 << 10

// roomIn refuses to launch where the runtime directory is as good as full.
func roomIn(runtimeDir string) error {
	free, err := freeBytes(runtimeDir)
	if err == nil && free < runRoom {
		return lacks("runtime-space", "make room there, then run it again; \"du -xh "+config.Show(runtimeDir)+"\" shows what fills it",
			"%s is full: %d KiB are free, and a launch keeps up to %d KiB there", config.Show(runtimeDir), free>>10, runRoom>>10)
	}
	return nil
}

// claim is a run's directory with its lock held.
type claim struct {
	Record
	dir     string
	lock    *os.File
	journal *step.Journal
	jfile   *os.File
}

// newClaim makes the directory of a run, complete and locked, before anything
// else is done to the host. It appears under its name only then: whoever
// finds a record without a holder may take it for dead.
func newClaim(runtimeDir string, r Record) (*claim, error) {
	dir, err := runsDir(runtimeDir)
	if err != nil {
		return nil, err
	}
	tmp := filepath.Join(dir, newName(r.ID))
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, fmt.Errorf("claiming run %s: %w", r.ID, err)
	}
	c, err := fillClaim(tmp, r)
	if err == nil {
		c.dir = filepath.Join(dir, r.ID)
		err = os.Rename(tmp, c.dir)
	}
	if err != nil {
		removeTree(dir, newName(r.ID))
		return nil, fmt.Errorf("claiming run %s: %w", r.ID, err)
	}
	return c, nil
}

func fillClaim(dir string, r Record) (*claim, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, recordFile), b, 0o600); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, mountsDir), 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{supervisorLock, helperLock, journalFile} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return nil, err
		}
	}
	// Whoever finds the lock held can tell whether that is by us.
	if name, err := processName(os.Getpid()); err == nil {
		if err := os.WriteFile(filepath.Join(dir, supervisorLock), []byte(name), 0o600); err != nil {
			return nil, err
		}
	}
	c := &claim{Record: r, dir: dir}
	return c, c.open(dir)
}

// openClaim takes over the record of a run whose lazaret is gone. errHeld
// means that it is not gone.
func openClaim(runs, id string) (*claim, error) {
	dir := filepath.Join(runs, id)
	lock, err := lockFile(filepath.Join(dir, supervisorLock))
	if err != nil {
		return nil, err
	}
	c := &claim{dir: dir, lock: lock}
	lock.WriteAt([]byte(cleaning), 0) // whoever cannot read it takes us for the run itself
	b, err := readRegular(filepath.Join(dir, recordFile))
	if err == nil {
		err = json.Unmarshal(b, &c.Record)
	}
	if err == nil {
		err = c.Record.check(id)
	}
	if err == nil {
		err = c.openJournal(dir)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("reading the record of run %s: %w", id, err)
	}
	return c, nil
}

func (c *claim) open(dir string) (err error) {
	if c.lock, err = lockFile(filepath.Join(dir, supervisorLock)); err != nil {
		return err
	}
	return c.openJournal(dir)
}

func (c *claim) openJournal(dir string) (err error) {
	c.jfile, err = os.OpenFile(filepath.Join(dir, journalFile), os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	c.journal, err = step.NewJournal(c.jfile)
	return err
}

// close lets go of the record without removing it.
func (c *claim) close() {
	if c.jfile != nil {
		c.jfile.Close()
	}
	c.lock.Close()
}

// remove takes the record away: first its name, so that nobody finds half a
// record, whatever happens next. Its lock is released last.
func (c *claim) remove() error {
	defer c.close()
	runs, gone := filepath.Dir(c.dir), goneName(c.ID)
	if err := os.Rename(c.dir, filepath.Join(runs, gone)); err != nil {
		return fmt.Errorf("removing the record of run %s: %w", c.ID, err)
	}
	return removeTree(runs, gone)
}

// Names of records that are not complete yet, and of those that are not any more.
func newName(id string) string  { return ".new-" + id }
func goneName(id string) string { return ".gone-" + id }

var errHeld = errors.New("the lock is held")

// lockFile opens and locks a file, or says errHeld. The lock ends with the
// last process that holds the descriptor, however that ends: a pid can be
// another process by now, a lock cannot.
func lockFile(path string) (*os.File, error) {
	// Not created here: a record that is being removed must not come back.
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return f, nil
}

// readRegular reads a small file that is really there.
func readRegular(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > 1<<20 {
		return nil, fmt.Errorf("%s is not a small regular file", filepath.Base(path))
	}
	b := make([]byte, fi.Size())
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil
	}
	return b[:n], err
}

// runIDs lists the runs that have a record, sorted.
func runIDs(runs string) ([]string, error) {
	entries, err := os.ReadDir(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && idPattern.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}
