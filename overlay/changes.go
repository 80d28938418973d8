package overlay

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Kinds of Change.
const (
	Added   = "added"
	Changed = "changed"
	Deleted = "deleted"
	// Unknown is a file of the layer of which nobody can tell whether it is new,
	// since there is no image to compare with.
	Unknown = "unknown"
)

// Change is how a persistent directory differs from the image's.
type Change struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"` // below the directory
	Dir   bool   `json:"dir,omitempty"`
	Size  int64  `json:"size,omitempty"`  // bytes of a regular file
	Hides bool   `json:"hides,omitempty"` // the image has changed this file since
	// Only the owner, the mode or the like is another.
	Meta bool `json:"meta,omitempty"`
}

// Changes calls f for everything in which a layer differs from the image whose
// root directory is at root; "" where there is no image any more.
func (p Place) Changes(name, root string, f func(Change) error) error {
	k, err := p.Read()
	if err != nil {
		return err
	}
	r, ok := k.Layers[name]
	if !ok {
		return refuse(`"lazaret state ls" lists what is kept`, "nothing is kept under the name %s", show(name))
	}
	layer, err := p.layer(name)
	if err != nil || layer == nil {
		return err
	}
	defer layer.Close()
	c := comparison{record: r, f: f}
	if root != "" {
		image, err := openDir(unix.AT_FDCWD, root, 0)
		if err != nil {
			return err
		}
		defer image.Close()
		if c.lower, err = imageDir(image, r.Path); err != nil {
			return err
		}
		c.known = true
		if c.lower != nil {
			defer c.lower.Close()
		}
	}
	err = walk(layer, r.Driver, c.node)
	if errors.Is(err, errDeep) {
		return refuse(`remove it in the sandbox, or all of it with "lazaret state reset"`, "%v", err)
	}
	return err
}

type comparison struct {
	record Record
	lower  *os.File // nil: the image has no such directory
	known  bool     // there is an image
	f      func(Change) error
}

func (c *comparison) node(n node) error {
	ch := Change{Path: n.path, Dir: isDir(n.st), Hides: slices.Contains(c.record.Hides, n.path)}
	if n.kind() == unix.S_IFREG {
		ch.Size = n.st.Size
	}
	if n.gone {
		ch.Kind, ch.Dir, ch.Size = Deleted, false, 0
	}
	if !c.known {
		if !n.gone {
			ch.Kind = Unknown
		}
		return c.f(ch)
	}
	if c.lower == nil {
		if n.gone {
			return nil
		}
		ch.Kind = Added
		return c.f(ch)
	}
	was, st, err := under(c.lower, n.path)
	if err != nil {
		return err
	}
	if was != nil {
		defer was.Close()
	}
	switch {
	case n.gone && was == nil:
		return nil // it deletes nothing
	case n.gone:
		ch.Dir = isDir(st)
		return c.f(ch)
	case was == nil:
		ch.Kind = Added
		return c.f(ch)
	case isDir(n.st) && isDir(st):
		if meta := n.st.Mode != st.Mode || n.st.Uid != st.Uid || n.st.Gid != st.Gid; meta {
			ch.Kind, ch.Meta = Changed, true
			if err := c.f(ch); err != nil {
				return err
			}
		}
		if n.opaque {
			return c.hidden(n, was)
		}
		return nil
	}
	ch.Kind = Changed
	if n.kind() == unix.S_IFREG && st.Mode&unix.S_IFMT == unix.S_IFREG && n.st.Size == st.Size {
		f, err := openNode(n)
		if err != nil {
			return err
		}
		same, err := sameContent(f, was, st.Size)
		f.Close()
		if err != nil {
			return err
		}
		if ch.Meta = same; same && n.st.Mode == st.Mode && n.st.Uid == st.Uid && n.st.Gid == st.Gid && n.st.Mtim == st.Mtim {
			return nil // it was opened for writing, and that was all
		}
	}
	return c.f(ch)
}

// hidden reports what the image has in a directory that shows nothing of it,
// and that was not made again.
func (c *comparison) hidden(n node, was *os.File) error {
	names, err := list(was)
	if err != nil {
		return err
	}
	slices.Sort(names)
	sub, err := openDir(fd(n.dir), n.name, beneath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	for _, name := range names {
		if _, err := lstat(sub, name); err == nil {
			continue
		}
		st, err := lstat(was, name)
		if err != nil {
			return err
		}
		if err := c.f(Change{Kind: Deleted, Path: n.path + "/" + name, Dir: isDir(st)}); err != nil {
			return err
		}
	}
	return nil
}

// Usage is how much a layer holds.
type Usage struct {
	Name  string `json:"name"`
	Files int64  `json:"files"` // everything but directories
	Bytes int64  `json:"bytes"` // on disk
	// Least: there is more, in directories that are too deep to be gone into.
	Least bool `json:"least,omitempty"`
}

// Usage adds up a layer, or as much of it as can be reached. A file with
// several names counts once.
func (p Place) Usage(name, driver string) (Usage, error) {
	u := Usage{Name: name}
	layer, err := p.layer(name)
	if err != nil || layer == nil {
		return u, err
	}
	defer layer.Close()
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	err = walk(layer, driver, func(n node) error {
		if n.gone {
			return nil
		}
		if !isDir(n.st) {
			u.Files++
		}
		if n.st.Nlink > 1 && !isDir(n.st) {
			if i := (inode{uint64(n.st.Dev), n.st.Ino}); seen[i] {
				return nil
			} else {
				seen[i] = true
			}
		}
		u.Bytes += n.st.Blocks * 512
		return nil
	})
	if errors.Is(err, errDeep) {
		u.Least, err = true, nil
	}
	return u, err
}
