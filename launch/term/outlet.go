package term

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// Outlet is where a sandbox without a terminal of its own prints: "lazaret
// launch <task.txt" has one on its stdout all the same, and it obeys whoever
// writes there.
type Outlet struct {
	File  *os.File // what the sandbox gets
	to, r *os.File
	utf8  bool
	ended chan struct{}
}

// NewOutlet gives the outlet for f: f itself where that is no terminal. utf8
// says that the terminal reads UTF-8.
func NewOutlet(f *os.File, utf8 bool) (*Outlet, error) {
	if !isTerminal(f) {
		return &Outlet{File: f}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &Outlet{File: w, to: f, r: r, utf8: utf8, ended: make(chan struct{})}
	go o.run()
	return o, nil
}

func (o *Outlet) run() {
	defer close(o.ended)
	f := Filter{Mute: true, ASCII: !o.utf8}
	buf, out := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := o.r.Read(buf)
		out = f.Append(out[:0], buf[:n])
		if err == nil && len(out) == 0 {
			continue
		}
		if err != nil {
			if out = f.Cut(out); f.modes.touched() {
				out = f.modes.end(out)
			}
		}
		if _, werr := o.to.Write(out); err != nil || werr != nil {
			return
		}
	}
}

// outletFor bounds Close, where somebody kept File or nobody reads the terminal.
const outletFor = 2 * time.Second

// Close shows what there still is to show and makes the terminal what it was.
func (o *Outlet) Close() {
	if o == nil || o.r == nil {
		return
	}
	o.File.Close()
	o.r.SetReadDeadline(time.Now().Add(outletFor))
	select {
	case <-o.ended:
	case <-time.After(outletFor): // a terminal that takes nothing
	}
	o.r.Close()
}

// Inlet gives what a sandbox without a terminal of its own reads in place of f:
// a terminal can be written to by whoever has it to read.
func Inlet(f *os.File) (*os.File, error) {
	if !isTerminal(f) {
		return f, nil
	}
	var in *os.File
	var err error
	if cerr := control(f, func(fd int) {
		in, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NOCTTY, 0)
	}); cerr != nil {
		return nil, cerr
	}
	return in, err
}

func isTerminal(f *os.File) (is bool) {
	if f == nil {
		return false
	}
	control(f, func(fd int) { is = xterm.IsTerminal(fd) })
	return is
}
