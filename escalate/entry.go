package escalate

import (
	"time"

	"lazaret/escalate/wire"
)

// Entry is something to write down about a request. Its texts are the sandbox's.
type Entry struct {
	Kind     string // asked: it waits for a person; decided; ended: so has its command, or, aborted, none began
	Request  wire.Request
	Argv     []string // what was, or would be, run
	Program  string
	Status   string // decided, ended: one of the wire's
	By       string // decided: auto_approve, limit, lazaret, or where a person was
	Reason   string // why it was denied, or what went wrong
	Dir      string
	Auto     bool
	ExitCode int
	Duration time.Duration
	// Of the input: how many bytes, and their digest in hex. Not where it was denied.
	InputSize   int64
	InputSHA256 string
}

func (d *Daemon) log(e Entry) error {
	// What was turned away costs no more than its line.
	if e.Kind != "decided" || e.Status == wire.Approved || e.Status == wire.Edited {
		e.InputSize, e.InputSHA256 = digest(e.Request.Stdin)
	}
	e.Request.Stdin = nil
	return d.Log(e)
}
