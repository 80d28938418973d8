package launch

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// Podman looks for the place of each mount in the image, follows the links that
// it finds there, and mounts where they lead. An image with a link at
// /workspace/.git had the cover of the repository lie elsewhere, and the
// repository itself, which is mounted with the workspace, was open.

// covers are the places that must be what they are called: all but the profile's
// own volumes, which are no cover of anything, and its persistent directories,
// for which links are refused where they are opened. What the runtime mounts by
// itself, as /tmp, is none either: some images have a link there.
func (r *resolver) covers(mounts []podman.Mount) []string {
	var out []string
	for _, m := range mounts {
		if own := r.profile.Mounts[m.Target]; own.Kind != lock.KindBind && own.Kind != lock.KindOverlay || within(m.Target, "/workspace") {
			out = append(out, m.Target)
		}
	}
	return out
}

// lookAt has the image step look for what is in the way of mounts.
func (r *resolver) lookAt(mounts []podman.Mount) {
	for i, s := range r.Steps {
		if o, ok := s.Op.(Image); ok {
			o.Covers = r.covers(mounts)
			r.Steps[i].Op = o
		}
	}
}

// look refuses an image that does not have things as podman, the runtime and
// lazaret need them. What is so of the image whatever is mounted need not be
// looked at again of one that was verified. What none of its layers has in the
// way, they have not together either: only else are those of a verified image
// put together. What they are then is the kernel's to say, as it is when they are
// mounted for the sandbox: an upper layer may have put a file in a link's place.
func (o Image) look(ctx context.Context, layers []string, verified bool) (err error) {
	root := ""
	switch {
	case verified && (len(o.Covers) == 0 || len(layers) > 0 && o.uncovered(layers...) == nil):
		return nil
	case len(layers) == 0:
		mount := ImageRoot{Engine: o.Engine, Environ: o.Environ, Image: o.Pinned.Config, Value: rootValue}
		var out step.Values
		if out, err = mount.Do(ctx, nil); err != nil {
			return err
		}
		defer func() {
			_, gone := ImageUnmount{Engine: o.Engine, Environ: o.Environ, Image: o.Pinned.Config}.Do(context.WithoutCancel(ctx), nil)
			err = errors.Join(err, gone)
		}()
		root = out[rootValue]
	case len(layers) == 1:
		root = layers[0]
	default:
		dir, err := os.MkdirTemp(o.Memory.Run, "image-")
		if err != nil {
			return err
		}
		defer os.Remove(dir)
		if err := overlay.Stack(layers, dir); err != nil {
			return o.look(ctx, nil, verified) // then podman has a way of its own
		}
		defer unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		root = dir
	}
	if err := o.uncovered(root); err != nil || verified {
		return err
	}
	return o.unexpected(root)
}

// uncovered refuses an image that has something else than a directory or a file,
// or a link on the way, where lazaret mounts something, in one of these
// directories.
func (o Image) uncovered(dirs ...string) error {
	for _, dir := range dirs {
		for _, path := range o.Covers {
			if inTheWay(dir, path) {
				return refuse("use an image without it, or remove it in one built from this",
					"profiles.%s.image: it has a link, or no plain directory or file, at %s or on the way there, where lazaret mounts something", o.Profile, config.Show(path))
			}
		}
	}
	return nil
}

// inTheWay tells whether a root directory has a link, a pipe or the like at a
// path, or on the way there.
func inTheWay(root, path string) bool {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(at)
	var fd int
	for {
		fd, err = unix.Openat2(at, strings.Trim(path, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return false // the runtime makes it
	case errors.Is(err, unix.ENOTDIR):
		return false // a file in a directory's place: another layer's business, or the runtime refuses
	case err != nil:
		return true
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFREG:
		return false
	case unix.S_IFCHR:
		return st.Rdev != 0 // else it is gone in this layer
	}
	return true
}
