package launch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"lazaret/internal/step"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// Setup runs a profile's set-up commands, in a sandbox that ends with them.
type Setup struct {
	Sandbox  Sandbox
	Commands []string

	talk *os.File
}

func (o Setup) container() container { return o.Sandbox.container() }

// setupScript runs its arguments one after the other, each in a shell of its
// own, and ends with the first that fails.
const setupScript = `for c in "$@"; do echo "+ $c"; sh -c "$c" || exit; done`

func (o Setup) run() Sandbox {
	s := o.Sandbox
	s.Run.Command = append([]string{"sh", "-c", setupScript, "setup"}, o.Commands...)
	return s
}

// Do runs the commands and shows what they say, line by line.
func (o Setup) Do(ctx context.Context, in step.Values) (step.Values, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	shownAll := make(chan struct{})
	go func() {
		showLines(o.talk, r)
		close(shownAll)
	}()
	s := o.run()
	s.stdio = [3]*os.File{nil, w, w}
	out, err := s.Do(ctx, in)
	w.Close()
	<-shownAll
	r.Close()
	if err != nil {
		return nil, err
	}
	switch status := out[exitValue]; status {
	case "0":
		return nil, nil
	case "126", "127":
		return nil, refuse("set-up commands need a shell: use an image that has sh, or take setup out of the profile",
			"the set-up could not run (status %s); what is kept is as it was", status)
	default:
		return nil, refuse(`correct setup in lazaret.toml and run "lazaret lock", or look around with "lazaret launch --skip-setup"`,
			"the set-up ended with status %s; its output is above, and what is kept is as it was", status)
	}
}

// lineMax bounds what is shown of one line, in bytes.
const lineMax = 400

// showLines writes what a sandbox says, with nothing in it that acts on a
// terminal. A line that is overwritten, as progress is, counts as one.
func showLines(to io.Writer, from io.Reader) {
	s := bufio.NewScanner(from)
	s.Buffer(make([]byte, 0, 4096), 64<<10)
	s.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
			return i + 1, data[:i], nil
		}
		if len(data) >= 32<<10 || end && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	last := ""
	for s.Scan() {
		line := strings.TrimRight(s.Text(), " ")
		if line == "" || line == last {
			continue
		}
		last = line
		if len(line) > lineMax {
			line = line[:lineMax] + " …"
		}
		fmt.Fprintf(to, "setup: %s\n", config.Show(line))
	}
	io.Copy(io.Discard, from)
}

// Show gives the command.
func (o Setup) Show() []string { return o.run().Show() }

// KeepSetup adds what the set-up changed to what is kept.
type KeepSetup struct {
	Place  overlay.Place
	Commit overlay.Commit

	mounts *overlay.Mounts
}

// Do unmounts the set-up's layers and adds them.
func (o KeepSetup) Do(context.Context, step.Values) (step.Values, error) {
	for _, name := range o.Commit.Names {
		if err := o.mounts.Down(overlay.Layer{Name: name, Below: &o.Place}.Key()); err != nil {
			return nil, err
		}
	}
	return nil, o.Place.Keep(o.Commit)
}

// Show says what is done.
func (o KeepSetup) Show() []string {
	from := overlay.Staged(o.Place, o.Commit.Run)
	var lines []string
	for _, name := range o.Commit.Names {
		lines = append(lines, "move what is in "+shown(filepath.Join(from.DataRoot, from.Dir, name+"_changes"))+" to "+shown(filepath.Join(o.Place.DataRoot, o.Place.Dir, name+"_changes")))
	}
	return append(lines, "record "+strconv.Quote(o.Commit.Setup.Commands))
}

// Sweep removes what runs left in data_root whose records are gone, and
// finishes what they were adding to what is kept.
type Sweep struct {
	DataRoot string
	Runs     []string
	Place    *overlay.Place // where something was being added; nil: nowhere
}

// Do removes it.
func (o Sweep) Do(context.Context, step.Values) (step.Values, error) {
	if o.Place != nil {
		if err := o.Place.Recover(); err != nil {
			return nil, err
		}
	}
	for _, run := range o.Runs {
		if err := overlay.Discard(o.DataRoot, run); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Show gives the commands that would do the same.
func (o Sweep) Show() []string {
	var lines []string
	for _, run := range o.Runs {
		lines = append(lines, Discard{o.DataRoot, run}.Show()...)
	}
	return lines
}
