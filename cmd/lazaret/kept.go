package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"lazaret/launch"
	"lazaret/lock/config"
)

// keptRun is what is kept of a detached run, for whoever was not attached when
// it was said: two files in the state directory, ID.json and ID.log.
type keptRun struct {
	json    string  // path
	outcome keptEnd // what is in it

	mu  sync.Mutex
	log *os.File
	len int
}

// keptEnd is how a detached run ended.
type keptEnd struct {
	Record launch.Record `json:"record"`
	Ended  *time.Time    `json:"ended,omitempty"` // nil: it runs, or was killed
	Status int           `json:"status"`
	Screen []string      `json:"screen,omitempty"` // what its terminal showed last
}

// What is kept is bounded.
const (
	keptLogMost  = 256 << 10 // bytes of one log
	keptRunsMost = 50        // runs, the newest
)

func (d *deps) keptDir() string { return below(d.xdg("XDG_STATE_HOME", ".local/state"), "detached") }

// keepRun begins to keep what is said of a run.
func (d *deps) keepRun(r launch.Record) (*keptRun, error) {
	dir := d.keptDir()
	k := &keptRun{json: filepath.Join(dir, r.ID+".json"), outcome: keptEnd{Record: r}}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		pruneKept(dir)
		k.log, err = os.OpenFile(d.keptLog(r.ID), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	}
	if err == nil {
		// Held until this process ends: whoever finds it free and no end knows that
		// it was killed.
		err = unix.Flock(int(k.log.Fd()), unix.LOCK_EX)
	}
	if err == nil {
		err = k.write()
	}
	if err != nil {
		return nil, fmt.Errorf("keeping what a detached lazaret says: %w", err)
	}
	// Nobody would read why it ended by a panic.
	debug.SetCrashOutput(k.log, debug.CrashOptions{})
	return k, nil
}

func (d *deps) keptLog(id string) string { return filepath.Join(d.keptDir(), id+".log") }

// pruneKept removes all but the newest, those that run, and what is of none.
func pruneKept(dir string) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return
	}
	slices.SortFunc(logs, func(a, b string) int { return written(b).Compare(written(a)) })
	for _, path := range logs[min(keptRunsMost-1, len(logs)):] {
		pruneLog(path)
	}
	// A log is made first and removed first; what is of none is left of somebody who
	// was killed.
	files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
	for _, path := range files {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "."), ".")
		if _, err := os.Lstat(filepath.Join(dir, id+".log")); errors.Is(err, fs.ErrNotExist) {
			os.Remove(path)
		}
	}
}

// pruneLog removes a log that nobody holds.
func pruneLog(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		os.Remove(path)
	}
}

func written(path string) time.Time {
	fi, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

func (k *keptRun) write() error {
	b, err := json.Marshal(k.outcome)
	if err != nil {
		return err
	}
	// Next to it, whatever TMPDIR says.
	return renameio.WriteFile(k.json, b, 0o600, renameio.WithTempDir(filepath.Dir(k.json)))
}

// Write adds to the log, as long as there is room in it.
func (k *keptRun) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	const cut = "lazaret: note: more was said; this is full\n"
	switch {
	case k.len > keptLogMost:
	case k.len+len(p) > keptLogMost:
		k.len = keptLogMost + 1
		io.WriteString(k.log, cut)
	default:
		k.len += len(p)
		k.log.Write(p)
	}
	return len(p), nil
}

// end keeps how it ended.
func (k *keptRun) end(status int, screen []string) {
	now := time.Now()
	k.outcome.Ended, k.outcome.Status, k.outcome.Screen = &now, status, screen
	k.write() // where there is no room for it, there is nobody to tell either
}

// close lets go of the log, as the end of this process does.
func (k *keptRun) close() {
	debug.SetCrashOutput(nil, debug.CrashOptions{})
	k.log.Close()
}

// drop keeps nothing: whoever launched it was told.
func (k *keptRun) drop() {
	k.close()
	os.Remove(k.log.Name())
	os.Remove(k.json)
}

// endedRun finds the detached run of that id that has ended. One whose lazaret is
// about to end is waited for.
func (d *deps) endedRun(id string) (keptEnd, bool) {
	if f, err := os.Open(d.keptLog(filepath.Base(id))); err == nil {
		for start := time.Now(); unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil && time.Since(start) < keptWait; {
			time.Sleep(20 * time.Millisecond)
		}
		f.Close()
	}
	for _, e := range d.keptEnds() {
		if e.Record.ID == id {
			return e, true
		}
	}
	return keptEnd{}, false
}

// keptWait is how long a lazaret may take from the end of its run to its own.
const keptWait = 10 * time.Second

// keptEnds lists the detached runs that something is kept of, the newest last.
func (d *deps) keptEnds() (out []keptEnd) {
	paths, err := filepath.Glob(filepath.Join(d.keptDir(), "*.json"))
	if err != nil {
		return nil
	}
	for _, path := range paths {
		var e keptEnd
		b, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(b, &e) == nil && e.Record.ID+".json" == filepath.Base(path) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b keptEnd) int { return a.Record.Started.Compare(b.Record.Started) })
	return out
}

// tell tells how a run ended that nobody was attached to, and gives its status.
func (e keptEnd) tell(d *deps, w io.Writer) error {
	if e.Ended == nil {
		return hinted{fmt.Errorf("run %s (%s) was ended without a word", e.Record.ID, config.Show(e.Record.Profile)), `"lazaret clean" takes away what it left`}
	}
	tellScreen(w, e.Screen)
	b, err := os.ReadFile(d.keptLog(e.Record.ID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading what its lazaret said: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		fmt.Fprintln(w, config.Show(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintf(w, "lazaret: note: run %s (%s) ended on %s with status %d\n", e.Record.ID, config.Show(e.Record.Profile), when(*e.Ended), e.Status)
	return nil
}
