package overlay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// fuseMagic is what statfs(2) says of a FUSE file system.
const fuseMagic = 0x65735546

// Times that a fuse-overlayfs may take.
const (
	fuseStart = 10 * time.Second
	fuseEnd   = 10 * time.Second
)

// daemon is a fuse-overlayfs that serves one mount.
type daemon struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how; after done
}

// FuseName marks a run's daemons in their command lines, for whoever has to
// end one that outlived everything else. A name can hold what separates
// options.
func FuseName(run, key string) string {
	return "lazaret-" + run + "-" + base64.RawURLEncoding.EncodeToString([]byte(key))
}

// fuse mounts with fuse-overlayfs and returns its daemon.
func (l layers) fuse(ctx context.Context, program, label, name string) (*daemon, error) {
	if program == "" {
		return nil, refuse(`install it: "apt-get install fuse-overlayfs" or your distribution's package`, "fuse-overlayfs is not installed")
	}
	files := append(append([]*os.File{}, l.lower...), l.upper, l.work, l.merged)
	argv := []string{program, "-f", "-o", fuseOptions(len(l.lower), label) + ",fsname=" + name, inherited(len(files) - 1)}
	pid, wait, err := proc.Start(context.WithoutCancel(ctx), proc.Cmd{
		Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, ExtraFiles: files, Session: true,
	})
	if err != nil {
		return nil, err
	}
	d := &daemon{pid: pid, done: make(chan struct{})}
	go func() {
		d.err = wait()
		close(d.done)
	}()
	if err := d.await(ctx, l.merged); err != nil {
		unix.Kill(d.pid, unix.SIGKILL)
		<-d.done
		return nil, fmt.Errorf("mounting with fuse-overlayfs: %w", err)
	}
	return d, nil
}

// inherited is the path of the nth descriptor that a program is given.
func inherited(n int) string { return fmt.Sprintf("/proc/self/fd/%d", 3+n) }

// fuseOptions are the layers as the daemon has them: the lower ones, the upper
// one, the working directory.
func fuseOptions(lower int, label string) string {
	var low []string
	for i := range lower {
		low = append(low, inherited(i))
	}
	o := "lowerdir=" + strings.Join(low, ":") + ",upperdir=" + inherited(lower) + ",workdir=" + inherited(lower+1)
	if label != "" {
		o += `,context="` + label + `"`
	}
	return o
}

// await waits until the daemon has mounted.
func (d *daemon) await(ctx context.Context, merged *os.File) error {
	deadline := time.After(fuseStart)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		// The descriptor is of the directory beneath: look at its path anew.
		var st unix.Statfs_t
		path, err := os.Readlink(self(merged))
		if err == nil && unix.Statfs(path, &st) == nil && st.Type == fuseMagic {
			return nil
		}
		select {
		case <-d.done:
			if d.err != nil {
				return d.err
			}
			return errors.New("it ended at once")
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return errors.New("it does not answer")
		case <-time.After(wait):
		}
	}
}

// end waits for the daemon, whose mount is gone by now, and stops one that
// does not end by itself.
func (d *daemon) end() error {
	select {
	case <-d.done:
	case <-time.After(fuseEnd):
		// It is our child and nobody else waits for it: the pid is its own.
		unix.Kill(d.pid, unix.SIGKILL)
		<-d.done
		return errors.New("fuse-overlayfs did not end by itself")
	}
	return nil
}
