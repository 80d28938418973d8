package overlay

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// archiveHead is the first entry of an archive of state: what is recorded. The
// rest are the layers, each below its name, in one notation for all drivers: a
// deletion is a character device 0:0, a directory that shows nothing of the
// image's has the attribute opaqueMark.
const archiveHead = "lazaret-state.json"

// archiveVersion is the newest archive this build reads and the one it writes.
const archiveVersion = 1

type head struct {
	Version int               `json:"version"`
	Layers  map[string]Record `json:"layers"`
	Setup   *Setup            `json:"setup,omitempty"`
}

const (
	opaqueMark = "LAZARET.opaque"
	xattrMark  = "SCHILY.xattr."
)

// Left is what an archive has not.
type Left struct {
	Path string
	Why  string
}

// Export writes the layers of a place as a tar archive. It gives what was left
// out, directories that are too deep and files with more holes
// than there is room for: a sandbox that makes them must not keep its owner from
// the rest.
func (p Place) Export(w io.Writer) (left []Left, err error) {
	k, err := p.Read()
	if err != nil {
		return nil, err
	}
	if len(k.Layers) == 0 {
		return nil, refuse(`"lazaret state ls" lists what is kept`, "nothing is kept in %s", show(p.Dir))
	}
	t := tar.NewWriter(w)
	data, err := json.Marshal(head{archiveVersion, k.Layers, k.Setup})
	if err != nil {
		return nil, err
	}
	if err := t.WriteHeader(&tar.Header{Name: archiveHead, Mode: 0o600, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
		return nil, err
	}
	if _, err := t.Write(data); err != nil {
		return nil, err
	}
	room := holesMost
	for _, name := range slices.Sorted(maps.Keys(k.Layers)) {
		more, err := p.exportLayer(t, name, k.Layers[name], &room)
		if left = append(left, more...); err != nil {
			return left, fmt.Errorf("exporting %s: %w", k.Layers[name].Path, err)
		}
	}
	return left, t.Close()
}

func (p Place) exportLayer(t *tar.Writer, name string, r Record, room *int64) (left []Left, err error) {
	layer, err := p.layer(name)
	if err != nil || layer == nil {
		return nil, err
	}
	defer layer.Close()
	st, err := stat(layer)
	if err != nil {
		return nil, err
	}
	top := entry(node{path: "", st: st}, name+"/")
	if err := t.WriteHeader(top); err != nil {
		return nil, err
	}
	links := map[uint64]string{} // by inode: a layer is on one file system
	err = walk(layer, r.Driver, func(n node) error {
		err := exportNode(t, name, n, links, room)
		if errors.Is(err, errHoles) {
			left = append(left, Left{path.Join(r.Path, n.path), err.Error()})
			return nil
		}
		if err == nil && isDir(n.st) && !n.gone && strings.Count(n.path, "/") >= deepest {
			left = append(left, Left{path.Join(r.Path, n.path), "what is in it is too deep"})
			return errSkip
		}
		return err
	})
	return left, err
}

func exportNode(t *tar.Writer, layer string, n node, links map[uint64]string, room *int64) error {
	h := entry(n, layer+"/"+n.path)
	switch {
	case n.gone:
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeChar, Name: layer + "/" + n.path})
	case n.kind() == unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		m, err := unix.Readlinkat(fd(n.dir), n.name, buf)
		if err != nil {
			return err
		}
		h.Linkname = string(buf[:m])
	case n.kind() != unix.S_IFREG && !isDir(n.st):
		return nil // sockets: whoever listened is gone
	}
	if !isDir(n.st) && n.st.Nlink > 1 {
		if first, ok := links[n.st.Ino]; ok {
			return t.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: h.Name, Linkname: first})
		}
		links[n.st.Ino] = h.Name
	}
	if err := xattrs(n, h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return t.WriteHeader(h)
	}
	f, err := openNode(n)
	if err != nil {
		return err
	}
	defer f.Close()
	empty := holes(f, h.Size, *room)
	if empty > *room {
		delete(links, n.st.Ino)
		return errHoles
	}
	*room -= empty
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(t, f, h.Size); err != nil {
		return fmt.Errorf("%s: %w", show(n.path), err)
	}
	return nil
}

// holesMost is how many bytes of nothing are written to one archive: it has them
// as zeros, and a sandbox makes a file of terabytes, or thousands of a gigabyte,
// in no time.
var holesMost int64 = 1 << 30

var errHoles = fmt.Errorf("its holes are too much for one archive, which has room for %d GiB of them", holesMost>>30)

// holes counts the bytes of a file that were never written, up to when there are
// more than most; what a file system compresses is none. Of one that does not
// know them, there are none.
func holes(f *os.File, size, most int64) (n int64) {
	for at := int64(0); at < size && n <= most; {
		hole, err := unix.Seek(fd(f), at, unix.SEEK_HOLE)
		if err != nil || hole >= size {
			break
		}
		if at, err = unix.Seek(fd(f), hole, unix.SEEK_DATA); err != nil {
			at = size // nothing but the hole
		}
		n += at - hole
	}
	unix.Seek(fd(f), 0, io.SeekStart)
	return n
}

func entry(n node, name string) *tar.Header {
	h := &tar.Header{
		Name: name, Mode: int64(n.st.Mode & 0o7777), Uid: int(n.st.Uid), Gid: int(n.st.Gid),
		ModTime: time.Unix(n.st.Mtim.Unix()), Format: tar.FormatPAX, PAXRecords: map[string]string{},
	}
	switch n.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag = tar.TypeDir
		h.Name = strings.TrimSuffix(name, "/") + "/"
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
	default:
		h.Typeflag, h.Size = tar.TypeReg, n.st.Size
	}
	if n.opaque {
		h.PAXRecords[opaqueMark] = "1"
	}
	return h
}

// xattrs adds what a sandbox can have set, and nothing of a driver's own.
func xattrs(n node, h *tar.Header) error {
	if n.kind() == unix.S_IFLNK {
		return nil
	}
	size, err := unix.Llistxattr(n.self(), nil)
	if err != nil || size == 0 {
		return nil // the file system has none
	}
	buf := make([]byte, size)
	if size, err = unix.Llistxattr(n.self(), buf); err != nil {
		return err
	}
	for _, a := range strings.Split(strings.TrimSuffix(string(buf[:size]), "\x00"), "\x00") {
		if !portable(a) {
			continue
		}
		v := make([]byte, 64<<10)
		m, err := unix.Lgetxattr(n.self(), a, v)
		if err != nil {
			return err
		}
		h.PAXRecords[xattrMark+a] = string(v[:m])
	}
	return nil
}

// portable tells of an attribute whether it is the sandbox's.
func portable(a string) bool {
	// "=" ends a name in an archive.
	return strings.HasPrefix(a, "user.") && !strings.Contains(a, "=") && !strings.HasPrefix(a, "user.overlay.") && !strings.HasPrefix(a, "user.fuseoverlayfs.") &&
		!strings.HasPrefix(a, "user.containers.")
}
