package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/lock/config"
)

// recordOptions say where what a launch does is written down.
type recordOptions struct {
	verbose bool
	log     string
	trace   string
}

func (o *recordOptions) flags(f *pflag.FlagSet) {
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say each step and each program that is run, with its time")
	f.StringVar(&o.log, "log-file", "", "write each step and each program that is run to this `file`, with its time")
	f.StringVar(&o.trace, "trace", "", "write the steps to this `file`, as chrome://tracing and Perfetto read them")
}

// recording writes down what a launch does, from its events.
type recording struct {
	talk  io.Writer // nil: say nothing
	hold  bool      // the sandbox has the terminal
	held  []string
	tty   bool
	log   *os.File
	trace *os.File

	mu    sync.Mutex
	now   func() time.Time
	lanes []string // steps under way, by the line of the trace they are on
	spans []span
}

// span is one entry of a trace, as the format has it: times in microseconds.
type span struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	Start int64             `json:"ts"`
	Took  int64             `json:"dur"`
	Proc  int               `json:"pid"`
	Lane  int               `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

// open opens the files before anything is done. A sandbox can write to the
// workspace, so no link is followed.
func (o recordOptions) open(talk io.Writer, tty bool) (*recording, error) {
	r := &recording{tty: tty, now: time.Now}
	if o.verbose {
		r.talk = talk
	}
	var err error
	if o.log != "" {
		if r.log, err = openRecord(o.log, unix.O_APPEND); err != nil {
			return nil, err
		}
	}
	if o.trace != "" {
		if r.trace, err = openRecord(o.trace, unix.O_TRUNC); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func openRecord(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, hinted{fmt.Errorf("writing down what is done: %w", err), "name a file in a directory of yours"}
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, hinted{fmt.Errorf("writing down what is done: %s is not a regular file", config.Show(path)), "name a file in a directory of yours"}
	}
	return f, nil
}

// event takes one event of the launch.
func (r *recording) event(e step.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Step == "sandbox" {
		r.holdWhile(e.Kind)
	}
	if line := lineOf(e); line != "" {
		r.line(line)
	}
	if r.trace == nil {
		return
	}
	now := r.now()
	switch e.Kind {
	case step.Begin:
		i := slices.Index(r.lanes, "")
		if i < 0 {
			r.lanes, i = append(r.lanes, ""), len(r.lanes)
		}
		r.lanes[i] = e.Step
	case step.Done, step.Failed:
		lane := max(slices.Index(r.lanes, e.Step), 0)
		if lane < len(r.lanes) {
			r.lanes[lane] = ""
		}
		r.span(e.Step, now, e, lane+1)
	case step.Undone:
		r.span("undo "+e.Step, now, e, 1)
	case step.Ran:
		name, _, _ := strings.Cut(e.Attr["argv"], " ")
		r.span(name[strings.LastIndexByte(name, '/')+1:], now, e, 0)
	}
}

func (r *recording) span(name string, end time.Time, e step.Event, lane int) {
	args := map[string]string{}
	for k, v := range e.Attr {
		args[k] = v
	}
	if e.Err != "" {
		args["error"] = e.Err
	}
	r.spans = append(r.spans, span{name, "X", end.UnixMicro() - e.Micros, e.Micros, 1, lane, args})
}

// holdWhile keeps lines back while the sandbox draws on the terminal.
func (r *recording) holdWhile(kind string) {
	switch {
	case kind == step.Begin && r.tty:
		r.hold = true
	case kind == step.Done || kind == step.Failed:
		r.hold = false
		for _, l := range r.held {
			fmt.Fprintf(r.talk, "%s\n", l)
		}
		r.held = nil
	}
}

func (r *recording) line(line string) {
	if r.log != nil {
		fmt.Fprintf(r.log, "%s %s\n", r.now().Format("2006-01-02T15:04:05.000000Z07:00"), line)
	}
	switch {
	case r.talk == nil:
	case r.hold:
		r.held = append(r.held, "lazaret: "+line)
	default:
		fmt.Fprintf(r.talk, "lazaret: %s\n", line)
	}
}

// lineOf says an event in one line, or "".
func lineOf(e step.Event) string {
	took := fmt.Sprintf("%.1f ms", float64(e.Micros)/1000)
	what := ""
	switch e.Kind {
	case step.Done:
		what = "step " + e.Step + ", " + took
	case step.Failed:
		what = "step " + e.Step + ", " + took + ", failed: " + e.Err
	case step.Undone:
		what = "undo " + e.Attr["undo"] + " of " + e.Step + ", " + took
		if e.Err != "" {
			what += ", failed: " + e.Err
		}
	case step.Ran:
		what = "ran, " + took + ", status " + e.Attr["status"] + ": " + e.Attr["argv"]
	}
	return config.Show(what)
}

// close writes the trace.
func (r *recording) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log != nil {
		r.log.Close()
	}
	if r.trace != nil {
		if r.spans == nil {
			r.spans = []span{}
		}
		json.NewEncoder(ascii{r.trace}).Encode(map[string]any{"traceEvents": r.spans, "displayTimeUnit": "ms"})
		r.trace.Close()
	}
}
