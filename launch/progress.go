package launch

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"lazaret/internal/step"
)

// growing is an operation that makes files in a directory of this machine, and
// knows how much it will be.
type growing interface {
	grows() (dir string, total int64)
}

// lookEvery is how far apart looks at a growing directory are.
const lookEvery = 250 * time.Millisecond

// follow tells how far a step is while it runs, where that can be seen. The
// files are looked at from here, and nothing of what they hold.
func (r *run) follow(s step.Step) (stop func()) {
	o, ok := s.Op.(growing)
	if !ok {
		return func() {}
	}
	dir, total := o.grows()
	if total <= 0 {
		return func() {}
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for last := int64(0); ; {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if n := min(treeSize(dir), total); n > last {
				last = n
				r.runner.Emit(step.Event{Step: s.Name, Kind: step.Progress, Attr: map[string]string{
					"done": strconv.FormatInt(n, 10), "total": strconv.FormatInt(total, 10)}})
			}
		}
	})
	return func() { close(end); ended.Wait() }
}

// treeSize adds up the files below a directory, those that go meanwhile or
// cannot be seen left out.
func treeSize(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			n += fi.Size()
		}
		return nil
	})
	return n
}
