package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lazaret/launch"
)

// auditEntry is one line of the audit log. Its texts are as the sandbox chose
// them: whoever prints one escapes it.
type auditEntry struct {
	Time      time.Time `json:"time"`
	Run       string    `json:"run"`
	Profile   string    `json:"profile"`
	Workspace string    `json:"workspace"`
	// Kind is denied, refused (a name), rebound (a name that means a denied
	// address), notice, or of a request for the host: asked (it waits for a
	// person), decided, ended (so has its command).
	Kind     string    `json:"kind"`
	Protocol string    `json:"protocol,omitempty"`
	Address  string    `json:"address,omitempty"`
	Port     int       `json:"port,omitempty"`
	Name     string    `json:"name,omitempty"`
	Count    uint64    `json:"count,omitempty"`
	Text     string    `json:"text,omitempty"`
	Ask      *auditAsk `json:"ask,omitempty"`
}

// auditAsk is what an entry says of a request for a command of the host's.
type auditAsk struct {
	Request     string   `json:"request"`               // the sandbox's own name for it
	Argv        []string `json:"argv,omitempty"`        // the end of a long one is left out
	LeftOut     int      `json:"left_out,omitempty"`    // how many arguments at its end are missing, or the first of them cut
	ArgvSHA256  string   `json:"argv_sha256,omitempty"` // where some are: of all, joined by NUL
	Input       int64    `json:"input,omitempty"`       // bytes of input that came with it
	InputSHA256 string   `json:"input_sha256,omitempty"`
	Command     string   `json:"command,omitempty"` // as it was sent, where it is no vector
	Program     string   `json:"program,omitempty"` // the file, without symlinks
	Reason      string   `json:"reason,omitempty"`  // why the sandbox wants it
	Status      string   `json:"status,omitempty"`  // approved, edited, denied, aborted, timeout, no_channel
	By          string   `json:"by,omitempty"`      // who decided
	Error       string   `json:"error,omitempty"`   // why it was denied, or what went wrong
	Dir         string   `json:"dir,omitempty"`
	Exit        *int     `json:"exit,omitempty"`
	Seconds     float64  `json:"seconds,omitempty"`
}

// auditFile is where the audit log lies, or "".
func (d *deps) auditFile() string {
	return below(d.xdg("XDG_STATE_HOME", ".local/state"), "audit.jsonl")
}

// Limits of what one sandbox can write to the audit log, in lines: of each kind
// apart, so that one cannot crowd out the other.
const (
	deniedMost = 20000
	askedMost  = 20000
)

// audit writes the audit log of one run.
type audit struct {
	record launch.Record
	now    func() time.Time

	mu   sync.Mutex
	file *os.File // nil where there is no state directory
}

var errNoAudit = errors.New("there is no audit log: neither XDG_STATE_HOME nor HOME is set")

// openAudit opens the audit log. A sandbox does not start unless what it tries
// can be written down.
func (d *deps) openAudit(r launch.Record) (*audit, error) {
	a := &audit{record: r, now: time.Now}
	path := d.auditFile()
	if path == "" {
		return a, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	var err error
	a.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return a, nil
}

// write adds an entry.
func (a *audit) write(e auditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return errNoAudit
	}
	e.Time, e.Run, e.Profile, e.Workspace = a.now().UTC(), a.record.ID, a.record.Profile, a.record.Workspace
	line, err := e.line()
	if err == nil {
		_, err = a.file.Write(line)
	}
	if err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	return nil
}

func (a *audit) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		a.file.Close()
	}
}

// line is an entry as JSON in ASCII: names can hold what acts on a screen.
func (e auditEntry) line() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(asciiJSON(b), '\n'), nil
}
