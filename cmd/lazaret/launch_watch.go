package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"

	"lazaret/internal/step"
)

// protected are the names in a workspace that the sandbox sees read-only or
// masked. A mount is on a file, not on a name: when the host puts another file
// there, as editors and git do, the sandbox has that one, bare.
var protected = []string{"lazaret.lock", "lazaret.toml", ".git", ".idea", ".vscode"}

// watch looks at the protected names while a sandbox runs, and says when one
// is not what was mounted any more.
type watch struct {
	dir  string
	tell func(string)

	mu     sync.Mutex
	notify *fsnotify.Watcher
	was    map[string]fs.FileInfo // nil: not there
	told   []string
	ended  bool
}

// event begins and ends watching with the sandbox. Before, lazaret itself makes
// what is to be masked, and takes it away after.
func (w *watch) event(e step.Event) {
	switch {
	case e.Step != "sandbox":
	case e.Kind == step.Begin:
		if err := w.start(); err != nil {
			// Masks are a convenience; what keeps the host safe is that a lock
			// which changed is asked about. So it is said, and goes on.
			w.tell(fmt.Sprintf("the workspace cannot be watched while the sandbox runs: %s", onScreen(err.Error())))
		}
	case e.Kind == step.Done || e.Kind == step.Failed:
		w.stop()
	}
}

func (w *watch) start() error {
	n, err := fsnotify.NewWatcher()
	if err == nil {
		err = n.Add(w.dir)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify, w.was = n, map[string]fs.FileInfo{}
	for _, name := range protected {
		w.was[name] = w.look(name)
	}
	go w.run(n)
	return nil
}

func (w *watch) look(name string) fs.FileInfo {
	fi, err := os.Lstat(filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fi
}

func (w *watch) run(n *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-n.Events:
			if !ok {
				return
			}
			if name := filepath.Base(e.Name); slices.Contains(protected, name) {
				w.check(name)
			}
		case _, ok := <-n.Errors:
			if !ok {
				return
			}
			// Events were lost: look at everything.
			for _, name := range protected {
				w.check(name)
			}
		}
	}
}

// check compares one name with what it was. fsnotify tells of renames in two
// events; what counts is what is there.
func (w *watch) check(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, is := w.was[name], w.look(name)
	if w.ended || was == nil && is == nil || was != nil && is != nil && os.SameFile(was, is) {
		return
	}
	w.was[name] = is
	what := "was replaced"
	switch {
	case was == nil:
		what = "appeared"
	case is == nil:
		what = "went away"
	}
	msg := fmt.Sprintf("%s in the workspace %s while the sandbox runs, so the sandbox can write to it: look at it before you use it, and launch again", name, what)
	w.told = append(w.told, msg)
	w.tell(msg)
}

func (w *watch) stop() {
	w.mu.Lock()
	n := w.notify
	w.notify = nil
	w.mu.Unlock()
	if n == nil {
		return
	}
	for _, name := range protected { // what the last events were about
		w.check(name)
	}
	w.mu.Lock()
	w.ended = true // from now on it is lazaret that takes things away
	w.mu.Unlock()
	// The kernel takes its time to let go of a watch, ten milliseconds, in
	// which the rest can be taken down.
	go n.Close()
}

// warnings says what is noticed: at once, and again at the end where a screen
// of the sandbox may have covered it.
func warnings(talk io.Writer, terminal bool) (tell func(string), again func([]string)) {
	if !terminal {
		return func(msg string) { fmt.Fprintf(talk, "lazaret: warning: %s\n", msg) }, func([]string) {}
	}
	return func(msg string) {
			fmt.Fprintf(talk, "\r\nlazaret: warning: %s\r\n", msg) // the terminal is in raw mode
		}, func(told []string) {
			for _, msg := range told {
				fmt.Fprintf(talk, "lazaret: warning: %s\n", msg)
			}
		}
}
