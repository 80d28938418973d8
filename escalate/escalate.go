// Package escalate is the host's side of escalation: it takes requests from one
// sandbox, decides which may run without a question, lets the others wait for
// a person, and runs what was allowed. It never runs a shell, never approves by
// itself what is not in the whitelist, and denies whenever something fails. The
// sandbox's side, and what both say to one another, is package escalate/wire.
package escalate

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Ask is a request that waits for a person. All of its texts but Program, Dir
// and Env are the sandbox's: whoever shows one escapes it.
type Ask struct {
	ID      string `json:"id"` // the sandbox's own name for the request
	Profile string `json:"profile"`
	Run     string `json:"run"` // id of the sandbox
	Seq     int    `json:"seq"` // what Answer takes: from 1, in order of arrival

	Raw    string   `json:"raw"`    // the command as it was sent
	Argv   []string `json:"argv"`   // what would be run
	Reason string   `json:"reason"` // why the sandbox wants it

	Program string   `json:"program"` // the file that would be run, without symlinks; "": none was found
	Trouble string   `json:"trouble"` // why there is none, or why it cannot be approved
	Dir     string   `json:"dir"`     // where it would run
	DirIn   string   `json:"dir_in"`  // what the sandbox can write to that Dir lies in: "the workspace"; "": nothing
	Env     []string `json:"env"`     // the whole environment it would get, NAME=value

	Stdin       []byte `json:"stdin,omitempty"` // the beginning of its input, at most ShownStdin bytes
	StdinSize   int64  `json:"stdin_size,omitempty"`
	StdinSHA256 string `json:"stdin_sha256,omitempty"` // of all of it, in hex; "" without input

	Marks    []Mark    `json:"marks,omitempty"`
	Why      string    `json:"why"` // why it is asked and not run at once
	Received time.Time `json:"received"`
	Deadline time.Time `json:"deadline"` // then it is answered by itself, as a timeout
}

// ShownStdin is how much of a command's input an Ask holds, in bytes.
const ShownStdin = 32 << 10

// Mark is something a person should see about a part of a request before
// approving it.
type Mark struct {
	Arg  int      `json:"arg"` // index in Argv; or one of the below
	Kind MarkKind `json:"kind"`
	Text string   `json:"text"` // reads on after "it": "lies in the workspace, which the sandbox can write to"
}

// Parts of a request that are no argument.
const (
	MarkReason = -1
	MarkStdin  = -2
	MarkRaw    = -3
)

// MarkKind says what a Mark is about.
type MarkKind string

// Kinds of Mark.
const (
	MarkWritable MarkKind = "writable" // the sandbox can change it, also after a yes
	MarkLink     MarkKind = "link"     // a symlink in what the sandbox can write leads elsewhere
	MarkInside   MarkKind = "inside"   // a path of the sandbox's that means something else on the host, or nothing
	MarkHidden   MarkKind = "hidden"   // holds characters that cannot be seen or move the cursor
	MarkAlike    MarkKind = "alike"    // holds letters that look like others
	MarkRuns     MarkKind = "runs"     // the program can run any other
)

// Verdict is a person's answer to an Ask.
type Verdict struct {
	Kind Kind     `json:"kind"`
	Argv []string `json:"argv,omitempty"` // Approve: what to run instead, when edited
	// Program is what the person saw as the file that will be run, and Marks
	// what they saw marked. Approving fails when either would be another by now.
	// Only the marks of arguments count.
	Program string `json:"program,omitempty"`
	Marks   []Mark `json:"marks,omitempty"`
	By      string `json:"by"` // for the audit log: "terminal", "lazaret approve"
}

// Kind is what a Verdict says. The zero value denies.
type Kind int

// Kinds of Verdict.
const (
	Deny Kind = iota
	Approve
)

// Resolved is what an argument vector would run.
type Resolved struct {
	Program string `json:"program"` // see Ask.Program
	Trouble string `json:"trouble"`
	Marks   []Mark `json:"marks,omitempty"`
}

// Desk is where requests wait for a person: a Queue of this process, or that of
// another lazaret.
type Desk interface {
	// Pending lists what waits, oldest first.
	Pending(context.Context) ([]Ask, error)
	// Changed gives a channel that is closed when Pending may give another
	// answer than before the call of Changed.
	Changed() <-chan struct{}
	// Answer answers a request; ErrGone where somebody else has, or it has
	// timed out or was withdrawn. ErrProgram and ErrMarks approve nothing: it
	// waits on, and Pending gives what there is to see by now. So it does after
	// ErrBusy: it can be approved when something that runs has ended.
	Answer(ctx context.Context, seq int, v Verdict) error
	// Resolve tells what an edited vector would run.
	Resolve(ctx context.Context, argv []string) (Resolved, error)
	// Abort denies everything that waits and everything to come: the channel
	// is shut for good.
	Abort(context.Context) error
}

// Errors of a Desk.
var (
	ErrGone    = errors.New("the request does not wait any more")
	ErrProgram = errors.New("another program would be run by now")
	ErrMarks   = errors.New("what it names is something else by now")
	ErrBusy    = errors.New("and no more may at a time: approve it when one has ended")
)

// changed tells why a verdict does not hold for what would be run now.
func (v Verdict) changed(r Resolved) error {
	switch {
	case r.Trouble != "":
		return errors.New(r.Trouble)
	case v.Program != r.Program:
		return ErrProgram
	case !slices.Equal(ofArguments(v.Marks), ofArguments(r.Marks)):
		return ErrMarks
	}
	return nil
}

// ofArguments are the marks of what can change while a request waits.
func ofArguments(marks []Mark) (out []Mark) {
	for _, m := range marks {
		if m.Arg >= 0 {
			out = append(out, m)
		}
	}
	return out
}

// now is the request as it stands by now.
func (a Ask) now(r Resolved) Ask {
	marks := slices.DeleteFunc(slices.Clone(a.Marks), func(m Mark) bool { return m.Arg >= 0 })
	a.Program, a.Trouble, a.Marks = r.Program, r.Trouble, append(slices.Clone(r.Marks), marks...)
	return a
}
