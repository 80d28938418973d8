package gitshadow

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settle is how long a change is given to be over: git writes a ref by
	// more than one step.
	settle = 30 * time.Millisecond
	// between is the least time from one pass to the next: the agent sets how
	// often there is something new, not how often the host looks.
	between = 300 * time.Millisecond
	// idle is how long nothing may be heard before it is looked all the same.
	idle = 3 * time.Second
	// watchesMost bounds how many directories are watched, which the agent makes.
	watchesMost = 500
)

// Watch brings home what is new until ctx ends, as soon as it hears of it.
func (b *Broker) Watch(ctx context.Context) {
	w, err := newEars()
	if err == nil {
		defer w.close()
	}
	wait := idle
	if err != nil {
		wait = time.Second // deaf: it looks often instead
	}
	for ctx.Err() == nil {
		if w != nil {
			b.listen(w)
		}
		start := time.Now()
		b.Pass(ctx) // what fails is told in a note, and tried again
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(start.Add(between))):
		}
		select {
		case <-ctx.Done():
			return
		case <-w.heard():
			time.Sleep(settle)
		case <-time.After(wait):
		}
	}
}

// listen watches the directories that refs can appear in.
func (b *Broker) listen(w *ears) {
	dir, err := openBeneath(b.Store.Dir)
	if err != nil {
		return
	}
	defer dir.close()
	left := watchesMost
	var walk func(name string, depth int)
	walk = func(name string, depth int) {
		if left--; left < 0 {
			return
		}
		w.add(dir, name)
		names, err := dir.names(name, refsMost)
		if err != nil || depth == 0 {
			return
		}
		for _, n := range names {
			if kind, err := dir.kind(name + "/" + n); err == nil && kind.IsDir() {
				walk(name+"/"+n, depth-1)
			}
		}
	}
	walk("refs", refDepth)
	if b.Live == nil {
		return
	}
	if f, err := b.Live(); err == nil {
		if live, err := beneathFile(f); err == nil {
			w.add(live, ".")
			live.close()
		}
		f.Close()
	}
}

// ears hear of changes in directories that were opened without following a link.
type ears struct {
	f  *os.File
	ch chan struct{}
}

func newEars() (*ears, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &ears{os.NewFile(uintptr(fd), "inotify"), make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := w.f.Read(buf)
			if err != nil {
				return // closed
			}
			if onlyLocks(buf[:n]) {
				continue
			}
			select {
			case w.ch <- struct{}{}:
			default:
			}
		}
	}()
	return w, nil
}

func (w *ears) close() { w.f.Close() }

// heard is told that something changed; of nobody, nothing is heard.
func (w *ears) heard() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.ch
}

// add watches a directory. One that is watched already stays so.
func (w *ears) add(dir *beneath, name string) {
	f, err := dir.open(name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer f.Close()
	const what = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_DELETE | unix.IN_ONLYDIR
	conn, err := w.f.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) {
		unix.InotifyAddWatch(int(fd), fmt.Sprintf("/proc/self/fd/%d", f.Fd()), what)
	})
}

// onlyLocks tells whether events are of nothing but files that git makes on the
// way to a ref.
func onlyLocks(buf []byte) bool {
	for len(buf) >= unix.SizeofInotifyEvent {
		// wd, mask, cookie, len; then the name, filled up with zeros.
		n := int(binary.NativeEndian.Uint32(buf[12:]))
		if len(buf) < unix.SizeofInotifyEvent+n {
			return false
		}
		name := strings.TrimRight(string(buf[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+n]), "\x00")
		if !strings.HasSuffix(name, ".lock") {
			return false
		}
		buf = buf[unix.SizeofInotifyEvent+n:]
	}
	return true
}
