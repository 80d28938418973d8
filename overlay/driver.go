package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Drivers. Whiteouts and opaque marks differ between them, so an upper layer
// belongs to the driver that made it.
const (
	Auto   = "auto"
	Native = "native"
	Fuse   = "fuse-overlayfs"
)

// layers are the open directories that make up one overlay. None of their
// paths is looked up again.
type layers struct {
	lower  []*os.File // uppermost first
	upper  *os.File
	work   *os.File
	merged *os.File
}

func (l layers) close() {
	for _, f := range append(l.lower, l.upper, l.work, l.merged) {
		if f != nil {
			f.Close()
		}
	}
}

// options are the mount options of either driver. Descriptors in place of
// paths: a path could hold what separates options.
func (l layers) options(label string) string {
	var lower []string
	for _, f := range l.lower {
		lower = append(lower, self(f))
	}
	o := []string{"lowerdir=" + strings.Join(lower, ":"), "upperdir=" + self(l.upper), "workdir=" + self(l.work)}
	if label != "" {
		// A label for the whole, as podman gives its own: relabelling each file
		// would copy the image's directory into the upper layer.
		o = append(o, `context="`+label+`"`)
	}
	return strings.Join(o, ",")
}

// native mounts with the kernel's overlayfs.
func (l layers) native(label string) error {
	// userxattr: what an unprivileged mount may keep its marks in. It also
	// switches off redirects, which lead by name to elsewhere in the layers.
	err := unix.Mount("overlay", self(l.merged), "overlay", unix.MS_NODEV|unix.MS_NOSUID, l.options(label)+",userxattr")
	if err != nil {
		return fmt.Errorf("mounting with the kernel's overlayfs: %w", err)
	}
	return nil
}

// choose gives the driver for a layer that none made yet: what was asked for,
// or the first that works here, and why it is not the kernel's.
func choose(ctx context.Context, want string, probe func(ctx context.Context, driver string) error) (driver, why string, err error) {
	if want != Auto {
		return want, "", probe(ctx, want)
	}
	native := probe(ctx, Native)
	if native == nil {
		return Native, "", nil
	}
	fuse := probe(ctx, Fuse)
	if fuse == nil {
		return Fuse, native.Error(), nil
	}
	var e *Error
	if errors.As(fuse, &e) && errors.As(native, &e) {
		return "", "", native // the directory itself is the trouble
	}
	return "", "", refuse(e.hintOr("install fuse-overlayfs, or set storage.data_root to a directory on a local disk"),
		"no overlay driver works here: native: %v; fuse-overlayfs: %v", native, fuse)
}

func (e *Error) hintOr(s string) string {
	if e != nil && e.Do != "" {
		return e.Do
	}
	return s
}
