package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Holder is who writes to the layers of a place.
type Holder struct {
	Run       string    `json:"run"`
	Workspace string    `json:"workspace"`
	Since     time.Time `json:"since"`
	Doing     string    `json:"doing"` // "lazaret launch claude"
}

// HeldError is a place that somebody else writes to. Two overlays with one
// upper layer destroy what is in it.
type HeldError struct {
	Dir    string // the place's directory
	Holder Holder // zero where it cannot be told
	Do     string
}

func (e *HeldError) Error() string {
	what := fmt.Sprintf("the state in %s is in use", show(e.Dir))
	if e.Holder.Run != "" {
		what += fmt.Sprintf(" by run %s (%s in %s, since %s)", show(e.Holder.Run), show(e.Holder.Doing), show(e.Holder.Workspace), e.Holder.Since.Local().Format("15:04:05"))
	}
	return what
}

// Hint is the way out.
func (e *HeldError) Hint() string { return e.Do }

const lockName = "lock"

// Hold makes the place's directories and takes its lock, which ends with the
// last process that has the file. gone tells of a run whether nothing of it is
// left: while something is, its sandbox may go on writing although its lazaret
// and its helper are dead.
func (p Place) Hold(h Holder, gone func(run string) bool) (*os.File, error) {
	dir, records, err := p.open()
	if err != nil {
		return nil, err
	}
	dir.Close()
	defer records.Close()
	n, err := unix.Openat(fd(records), lockName, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, p.unusable(err)
	}
	f := os.NewFile(uintptr(n), filepath.Join(p.DataRoot, p.Records, lockName))
	err = tryLock(n)
	last := holder(f)
	held := &HeldError{Dir: filepath.Join(p.DataRoot, p.Dir), Holder: last}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		held.Do = "end it (\"lazaret ps\" lists what runs), or launch with --ephemeral, which keeps nothing and shares nothing"
		return nil, held
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("locking the state: %w", p.unusable(err))
	case last.Run != "" && last.Run != h.Run && !gone(last.Run):
		f.Close()
		held.Do = `its lazaret is dead but its sandbox may not be: run "lazaret clean"`
		return nil, held
	}
	sweepRecords(records)
	data, err := json.Marshal(h)
	if err == nil {
		err = errors.Join(f.Truncate(0), writeAll(f, data))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the state: %w", p.unusable(err))
	}
	return f, nil
}

// heldBy gives the run that holds the place's lock, or "".
func (p Place) heldBy() string {
	n, err := unix.Open(filepath.Join(p.DataRoot, p.Records, lockName), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(n), lockName)
	defer f.Close()
	h := holder(f)
	if h.Run == "" || !errors.Is(unix.Flock(n, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return ""
	}
	return h.Run
}

// lockTries and lockPause are for locks that somebody only looks at: on a busy
// machine, whoever does may be held up between looking and letting go.
const (
	lockTries = 20
	lockPause = 25 * time.Millisecond
)

func tryLock(n int) (err error) {
	for range lockTries {
		if err = unix.Flock(n, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(lockPause)
	}
	return err
}

func writeAll(f *os.File, data []byte) error {
	_, err := f.WriteAt(data, 0)
	return err
}

// Release gives the lock back. A copy in another process holds it on.
func Release(f *os.File) error {
	return errors.Join(f.Truncate(0), f.Close())
}

func holder(f *os.File) (h Holder) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<10))
	if err != nil || json.Unmarshal(data, &h) != nil {
		return Holder{}
	}
	return h
}
