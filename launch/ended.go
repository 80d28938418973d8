package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A container that ended by itself is removed by podman itself: by the "podman
// run --rm" that waited for it, and by what its monitor starts at its end. To
// call podman once more only to hear that there is none takes as long as the
// rest of a teardown. Where podman keeps what it has of a container is known by
// then, and that it is gone can be seen.

// endTime is how long podman may take to remove a container by itself, once
// that has ended, before it is told to.
const endTime = 2 * time.Second

// containersLock is in the directory of podman's containers.
const containersLock = "containers.lock"

// removed tells whether podman has removed a container whose start it finished.
// It waits for that if it is under way, and is false whenever it is not certain.
func (c container) removed(within time.Duration) bool {
	if !c.whole || !c.seen || c.store == "" {
		return false
	}
	if c.conmon != nil {
		// The monitor waits for what removes the container.
		fds := []unix.PollFd{{Fd: int32(c.conmon.Fd()), Events: unix.POLLIN}}
		for deadline := time.Now().Add(within); ; {
			n, err := unix.Poll(fds, int(max(time.Until(deadline), 0)/time.Millisecond))
			if n > 0 && err == nil {
				break
			}
			if err != nil && !errors.Is(err, unix.EINTR) || err == nil {
				return false
			}
		}
	}
	id := c.ident()
	if id == "" || !exists(filepath.Join(c.store, containersLock)) {
		return false // not podman's storage
	}
	_, err := os.Lstat(filepath.Join(c.store, id))
	return errors.Is(err, fs.ErrNotExist)
}

// ident gives the container's id as podman gave or wrote it, "" before that.
func (c container) ident() string {
	id := c.id
	if id == "" && c.idFile != "" {
		b, err := readRegular(c.idFile)
		if err != nil {
			return ""
		}
		id = strings.TrimSpace(string(b))
	}
	if !containerID.MatchString(id) {
		return ""
	}
	return id
}

// there tells whether podman keeps a container where it is taken to.
func (c container) there(id string) bool {
	return c.store != "" && containerID.MatchString(id) && exists(filepath.Join(c.store, id))
}

// watchTime is how often it is looked whether podman has made a container.
const watchTime = 20 * time.Millisecond

// watch looks for a container's directory once podman has made it, and keeps in
// mind whether it was there: one that is elsewhere cannot be seen to go.
func (s *server) watch(name string) (stop func()) {
	c, _ := s.container(name)
	done := make(chan struct{})
	if c.store == "" || c.idFile == "" {
		return func() {}
	}
	go func() {
		t := time.NewTicker(watchTime)
		defer t.Stop()
		for c.ident() == "" {
			select {
			case <-done:
				return
			case <-t.C:
			}
		}
		s.note(name, func(c *container) { c.seen = c.there(c.ident()) })
	}()
	return func() { close(done) }
}

// whenEnded calls f at the end of the process whose pid will be in a file, until
// stop. Of a sandbox that is gVisor's kernel: without it, nothing in there runs.
func whenEnded(pidFile string, f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(watchTime)
		defer t.Stop()
		p, err := openProcess(pidFile)
		for ; err != nil; p, err = openProcess(pidFile) {
			select {
			case <-done:
				return
			case <-t.C:
			}
		}
		defer p.Close()
		fds := []unix.PollFd{{Fd: int32(p.Fd()), Events: unix.POLLIN}}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			_, err = unix.Poll(fds, -1)
		}
		select {
		case <-done:
		default:
			if err == nil {
				f()
			}
		}
	}()
	return func() { close(done) }
}

// openProcess opens the process whose pid podman wrote to a file.
func openProcess(pidFile string) (*os.File, error) {
	b, err := readRegular(pidFile)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return nil, fmt.Errorf("%q is no process", b)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "process"), nil
}
