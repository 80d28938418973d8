package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Layer is one persistent directory, as it is to be mounted.
type Layer struct {
	Place Place
	// Below is the place whose layer of that name lies under this one, which
	// then holds only what is new; nil: there is none.
	Below   *Place
	Name    string // of the layer
	Path    string // in the sandbox
	Image   Image
	Driver  string // Auto, Native or Fuse, for a layer that none made yet
	Program string // fuse-overlayfs; "" where it is not installed
	Label   string // SELinux label for the whole; "": none
	Run     string // the run's id
	// Under are the paths below Path at which something else is mounted.
	Under []string
}

// Mounts are the overlays of one process, in its mount namespace.
type Mounts struct {
	mu sync.Mutex
	up map[string]*mount // by Layer.Key
}

// Key tells a process's mounts apart.
func (l Layer) Key() string {
	if l.Below != nil {
		return "setup-" + l.Name
	}
	return l.Name
}

type mount struct {
	dir    *os.File // of the layer's place
	name   string
	target string
	daemon *daemon // nil: native
}

// Up mounts a layer over the image whose root directory is at root, and at
// target too, an empty directory for podman to mount from. old gives the root of
// an image that the layer was last used on, "" where that is gone. It returns
// what is recorded of the layer now, and what was before.
func (m *Mounts) Up(ctx context.Context, l Layer, root string, old func(config string) string, target string) (now Record, before *Record, err error) {
	dir, records, err := l.Place.open()
	if err != nil {
		return Record{}, nil, err
	}
	defer records.Close()
	b := builder{Layer: l, dir: dir, records: records}
	defer b.close()
	if err := b.build(ctx, root, old); err != nil {
		dir.Close()
		return Record{}, nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	mnt := &mount{dir: dir, name: l.Name, target: target}
	if err := b.mount(ctx, mnt); err != nil {
		dir.Close()
		return Record{}, nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	m.mu.Lock()
	if m.up == nil {
		m.up = map[string]*mount{}
	}
	m.up[l.Key()] = mnt
	m.mu.Unlock()
	// Only now has the layer been used on this image.
	return b.now, b.before, writeJSON(records, recordFile(l.Name), b.now)
}

// Down unmounts a layer, and ends its daemon.
func (m *Mounts) Down(key string) error {
	m.mu.Lock()
	mnt := m.up[key]
	delete(m.up, key)
	m.mu.Unlock()
	if mnt == nil {
		return nil
	}
	return mnt.down()
}

// Close unmounts everything that is left.
func (m *Mounts) Close() error {
	m.mu.Lock()
	up := m.up
	m.up = nil
	m.mu.Unlock()
	var errs []error
	for _, mnt := range up {
		errs = append(errs, mnt.down())
	}
	return errors.Join(errs...)
}

func (mnt *mount) down() error {
	defer mnt.dir.Close()
	var errs []error
	if mnt.target != "" {
		errs = append(errs, unmount(mnt.target))
	}
	errs = append(errs, unmount(filepath.Join(self(mnt.dir), merged(mnt.name))))
	if mnt.daemon != nil {
		errs = append(errs, mnt.daemon.end())
	}
	return errors.Join(errs...)
}

// unmount takes a mount away, now where nothing uses it, else when nothing
// does any more. That there is none is no error.
func unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// builder makes one layer ready.
type builder struct {
	Layer
	dir, records *os.File
	layers
	top    Top
	before *Record
	now    Record
}

func (b *builder) build(ctx context.Context, root string, old func(config string) string) error {
	if err := b.whole(); err != nil {
		return err
	}
	if err := b.lowers(root); err != nil {
		return err
	}
	var r Record
	switch err := readJSON(b.records, recordFile(b.Name), &r); {
	case err == nil:
		b.before = &r
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := b.uppers(); err != nil {
		return err
	}
	driver, why, err := b.driver(ctx)
	if err != nil {
		return err
	}
	b.now = Record{Path: b.Path, Driver: driver, Instead: why, Image: b.Image, Used: time.Now().UTC().Truncate(time.Second), Top: b.top}
	if b.before == nil {
		return nil
	}
	b.now.Instead = b.before.Instead
	if b.before.Image.Config == b.Image.Config {
		b.now.Hides, b.now.HidesMore, b.now.Unsure = b.before.Hides, b.before.HidesMore, b.before.Unsure
		return nil
	}
	return b.drift(old(b.before.Image.Config))
}

// whole refuses layers to which a set-up is still to be added: what a sandbox
// changed meanwhile would be overwritten. Who plans a launch sees to that, but
// looks before it has the lock.
func (b *builder) whole() error {
	p := b.Place
	if b.Below != nil {
		p = *b.Below
	}
	if k, err := p.Read(); err != nil || k.Commit == nil {
		return err
	}
	return refuse("launch again", "a set-up was cut off while it was added to %s", show(p.Dir))
}

// lowers opens what lies below: the image's directory, or an empty one.
func (b *builder) lowers(root string) error {
	if b.Below != nil {
		below, err := b.Below.layer(b.Name)
		if err != nil {
			return err
		}
		if below != nil {
			b.lower = append(b.lower, below)
		}
	}
	image, err := openDir(unix.AT_FDCWD, root, 0)
	if err != nil {
		return fmt.Errorf("opening the image: %w", err)
	}
	defer image.Close()
	dir, err := imageDir(image, b.Path)
	if err != nil {
		return err
	}
	b.top = Top{Mode: 0o755}
	if dir == nil {
		// Beside the records: it has to stay empty.
		if dir, err = makeDir(b.records, "empty", 0o755); err != nil {
			return b.Place.unusable(err)
		}
	} else {
		st, err := stat(dir)
		if err != nil {
			return err
		}
		b.top = Top{st.Mode & 0o7777, st.Uid, st.Gid}
	}
	b.lower = append(b.lower, dir)
	return nil
}

// layer opens an upper layer of the place, or returns nil.
func (p Place) layer(name string) (*os.File, error) {
	root, err := openDir(unix.AT_FDCWD, p.DataRoot, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, p.unusable(err)
	}
	defer root.Close()
	dir, err := openDir(fd(root), filepath.Join(p.Dir, changes(name)), beneath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, p.unusable(err)
	}
	return dir, nil
}

// driver is that which made the layer, or one that works.
func (b *builder) driver(ctx context.Context) (driver, why string, err error) {
	switch {
	case b.before != nil && (b.Layer.Driver == Auto || b.Layer.Driver == b.before.Driver):
		return b.before.Driver, "", nil
	case b.before != nil:
		return "", "", refuse(fmt.Sprintf("write overlay = %q, or move the state: \"lazaret state export\", \"reset\", \"import\"", b.before.Driver),
			"storage.overlay is %s, but %s_changes was made by %s, and each reads its own marks only", b.Layer.Driver, b.Name, b.before.Driver)
	}
	return choose(ctx, b.Layer.Driver, b.probe)
}

// mount mounts the layers, and shows them at the target.
func (b *builder) mount(ctx context.Context, mnt *mount) error {
	var err error
	if b.now.Driver == Fuse {
		mnt.daemon, err = b.fuse(ctx, b.Program, b.Label, FuseName(b.Run, b.Key()))
	} else {
		err = b.native(b.Label)
	}
	if err != nil {
		return b.Place.unusable(err)
	}
	if mnt.target == "" {
		return nil
	}
	err = b.checkUnder()
	if err == nil {
		err = bind(b.dir, merged(b.Name), mnt.target)
	}
	if err != nil {
		target := mnt.target
		mnt.target = ""
		errs := []error{err, unmount(filepath.Join(self(b.dir), merged(b.Name)))}
		if mnt.daemon != nil {
			errs = append(errs, mnt.daemon.end())
		}
		var e *Error
		if errors.As(err, &e) {
			return errors.Join(errs...)
		}
		return fmt.Errorf("showing it at %s: %w", target, errors.Join(errs...))
	}
	return nil
}

// checkUnder refuses links where something else will be mounted: it would land
// where they lead, and the agent may have made them.
func (b *builder) checkUnder() error {
	top, err := openDir(fd(b.dir), merged(b.Name), beneath)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, path := range b.Under {
		f, err := openAt(fd(top), path, unix.O_PATH, beneath)
		switch {
		case err == nil:
			f.Close()
		case errors.Is(err, unix.ELOOP):
			link, to := firstLink(top, path)
			at := filepath.Join(b.Path, path)
			return refuse("look at it with \"lazaret state diff\", or reset the directory", "%s is a symlink to %s, and something else is to be mounted at %s",
				show(filepath.Join(b.Path, link)), show(to), show(at))
		}
	}
	return nil
}

// bind mounts a directory at a place outside.
func bind(dir *os.File, name, target string) error {
	f, err := openDir(fd(dir), name, beneath)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return unix.Mount(self(f), target, "", unix.MS_BIND, "")
}
