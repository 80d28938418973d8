package guard

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher looks at directories and hears of what is written there. Every
// directory is watched up to a bound; what is beyond it is looked at now and
// then. Looking never takes more than a part of the time, whatever a sandbox
// does.
type Watcher struct {
	o    Options
	n    *notify
	took time.Duration // by the last look
}

// NewWatcher makes a Watcher, to be closed.
func NewWatcher(o Options) (*Watcher, error) {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	n, err := newNotify()
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	o.directory = n.add
	go n.run()
	return &Watcher{o: o, n: n}, nil
}

// Close ends the watch.
func (w *Watcher) Close() { w.n.close() }

// Look looks once, and from then on hears of what is written.
func (w *Watcher) Look(ctx context.Context) Snapshot {
	w.n.begin()
	w.o.Now = time.Now()
	s := Scan(ctx, w.o)
	w.took = time.Since(w.o.Now)
	w.n.expect(s.Findings)
	return s
}

// Run looks again whenever something is written that a tool may act upon, until
// ctx ends, and calls found with everything that was found then. It follows on a
// Look; what was written between the two was not the sandbox's.
func (w *Watcher) Run(ctx context.Context, found func(Snapshot)) {
	w.n.forget()
	for w.n.wait(ctx, w.took) {
		if s := w.Look(ctx); ctx.Err() == nil {
			found(s)
		}
	}
}

const (
	// watchesMost bounds the directories of one session that are watched: the
	// kernel's bound is for all programs of a person, and often 8192.
	watchesMost = 3000
	// settle is how long writing may go on before it is looked at.
	settle = 150 * time.Millisecond
	// duty is how many times longer than a look the pause after it is.
	duty = 10
	// again is when everything is looked at though nothing was heard, where
	// not every directory is watched.
	again = 20 * time.Second
)

// notify is an inotify instance. Directories are added by descriptor, so that
// no name can be made a link meanwhile.
type notify struct {
	f       *os.File
	acts    map[int32]bool  // by watch: any file in it matters
	names   map[string]bool // of files that matter wherever they are, as of the last look
	adding  chan struct{}   // a lock for acts and names
	full    bool            // not every directory is watched
	changed chan struct{}
}

func newNotify() (*notify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &notify{f: os.NewFile(uintptr(fd), "inotify"), acts: map[int32]bool{}, adding: make(chan struct{}, 1), changed: make(chan struct{}, 1)}, nil
}

func (n *notify) close() { n.f.Close() }

func (n *notify) begin() {
	n.full = false
	n.forget()
}

func (n *notify) forget() {
	select {
	case <-n.changed:
	default:
	}
}

const watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_ONLYDIR

// add watches an open directory. One that is watched already is the same
// watch.
func (n *notify) add(fd int, acts bool) {
	n.adding <- struct{}{}
	defer func() { <-n.adding }()
	if len(n.acts) >= watchesMost {
		n.full = true
		return
	}
	c, err := n.f.SyscallConn()
	if err != nil {
		n.full = true
		return
	}
	c.Control(func(in uintptr) {
		wd, err := unix.InotifyAddWatch(int(in), fmt.Sprintf("/proc/self/fd/%d", fd), watched)
		if err != nil {
			n.full = true // the person's own bound
			return
		}
		// A directory of hooks is met once more in its place in the tree.
		n.acts[int32(wd)] = n.acts[int32(wd)] || acts
	})
}

// expect keeps in mind the files that a setting has some tool run, which have
// any name: that they are changed matters, too.
func (n *notify) expect(findings []Finding) {
	n.adding <- struct{}{}
	defer func() { <-n.adding }()
	n.names = map[string]bool{}
	for _, f := range findings {
		if f.Kind == Program {
			n.names[path.Base(string(f.Path))] = true
		}
	}
}

// run reads events until the instance is closed.
func (n *notify) run() {
	buf := make([]byte, 64<<10)
	for {
		k, err := n.f.Read(buf)
		if err != nil || k <= 0 {
			return
		}
		if n.matter(buf[:k]) {
			select {
			case n.changed <- struct{}{}:
			default:
			}
		}
	}
}

// matter tells whether one of a batch of events can be about a finding.
func (n *notify) matter(b []byte) bool {
	n.adding <- struct{}{}
	defer func() { <-n.adding }()
	yes := false
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		length := int(binary.NativeEndian.Uint32(b[12:]))
		if unix.SizeofInotifyEvent+length > len(b) {
			break
		}
		name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:][:length], "\x00"))
		b = b[unix.SizeofInotifyEvent+length:]
		switch {
		case mask&unix.IN_IGNORED != 0:
			delete(n.acts, wd) // the directory is gone
		case mask&unix.IN_Q_OVERFLOW != 0:
			yes = true
		case mask&unix.IN_ATTRIB != 0:
			yes = true // perhaps a setuid bit
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 && mask&unix.IN_ISDIR != 0:
			yes = true // to be watched, and looked into
		case n.acts[wd] || n.names[name] || mayMatter(name):
			yes = true
		}
	}
	return yes
}

// wait returns when it is time to look again, or false at the end.
func (n *notify) wait(ctx context.Context, took time.Duration) bool {
	// Heard while looking or not: the pause is what keeps the host usable.
	rest := time.NewTimer(max(settle, took*duty))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
	}
	var now <-chan time.Time
	if n.full {
		t := time.NewTimer(max(again, took*duty*2))
		defer t.Stop()
		now = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-now:
	case <-n.changed:
		// What is being written is best looked at when it is there.
		select {
		case <-ctx.Done():
			return false
		case <-time.After(settle):
		}
	}
	return true
}
