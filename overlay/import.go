package overlay

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Import fills a place that keeps nothing yet from an archive of Export. The
// place's lock is held. Nothing is kept unless all of it arrived.
func (p Place) Import(ctx context.Context, r io.Reader, run, driver, program string) error {
	have, err := p.Read()
	if err != nil {
		return err
	}
	if len(have.Layers) > 0 {
		return refuse("\"lazaret state reset\" removes it", "something is kept in %s already", show(p.Dir))
	}
	t := tar.NewReader(r)
	in, err := readHead(t)
	if err != nil {
		return err
	}
	stage := Staged(p, run)
	dir, notes, err := stage.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	defer notes.Close()
	defer Discard(p.DataRoot, run)
	i := importer{dir: dir, layers: map[string]*os.File{}, head: in}
	defer i.close()
	var names []string
	for name, rec := range in.Layers {
		if strings.ContainsAny(name, "/\x00") || name == "" || !path.IsAbs(rec.Path) {
			return notArchive("it has a layer called " + show(name))
		}
		b := builder{Layer: Layer{Place: stage, Name: name, Path: rec.Path, Driver: driver, Program: program, Run: run}, dir: dir}
		if rec.Driver, rec.Instead, err = choose(ctx, driver, b.probe); err != nil {
			return err
		}
		in.Layers[name] = rec
		if i.layers[name], err = makeDir(dir, changes(name), 0o700); err != nil {
			return p.unusable(err)
		}
		names = append(names, name)
	}
	if err := i.all(t); err != nil {
		return p.unusable(err)
	}
	for name, rec := range in.Layers {
		if err := writeJSON(notes, recordFile(name), rec); err != nil {
			return err
		}
	}
	c := Commit{Run: run, Names: names}
	if in.Setup != nil {
		c.Setup = *in.Setup
	}
	return p.Keep(c)
}

func notArchive(why string) error {
	return refuse(`"lazaret state export" makes one`, "this is no archive of state: %s", why)
}

func readHead(t *tar.Reader) (head, error) {
	var in head
	h, err := t.Next()
	if err != nil {
		return in, notArchive(err.Error())
	}
	if h.Name != archiveHead || h.Size > recordMax {
		return in, notArchive("it does not begin with " + archiveHead)
	}
	data, err := io.ReadAll(io.LimitReader(t, recordMax))
	if err != nil {
		return in, err
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, notArchive(err.Error())
	}
	if in.Version != archiveVersion {
		return in, refuse("use a newer lazaret", "the archive is of version %d, this lazaret reads version %d", in.Version, archiveVersion)
	}
	return in, nil
}

type importer struct {
	dir    *os.File
	layers map[string]*os.File
	head   head
	// Directories get their times last: what is put into them changes those.
	late []*tar.Header
}

func (i *importer) close() {
	for _, f := range i.layers {
		if f != nil {
			f.Close()
		}
	}
}

func (i *importer) all(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return notArchive(err.Error())
		}
		if err := i.entry(t, h); err != nil {
			return fmt.Errorf("%s: %w", show(h.Name), err)
		}
	}
	for n := len(i.late) - 1; n >= 0; n-- {
		if err := i.times(i.late[n]); err != nil {
			return err
		}
	}
	return nil
}

// split finds the layer of an entry and opens the directory that it is in,
// which came before it.
func (i *importer) split(name string) (layer, rest string, dir *os.File, base string, err error) {
	layer, rest, _ = strings.Cut(strings.TrimSuffix(name, "/"), "/")
	at, ok := i.layers[layer]
	if !ok || rest != "" && !fs.ValidPath(rest) || rest == "." || strings.ContainsRune(rest, 0) {
		return "", "", nil, "", notArchive("it names " + show(name))
	}
	if rest == "" {
		return layer, "", at, "", nil
	}
	parent, base := path.Split(rest)
	dir, err = openDeep(at, parent)
	return layer, rest, dir, base, err
}

// pathPart is how much of a path the kernel is given at once: it takes 4096 bytes,
// and a sandbox, which goes down step by step, can make longer ones.
const pathPart = 2048

// openDeep opens a directory beneath another, however long the way is.
func openDeep(at *os.File, way string) (*os.File, error) {
	dir, err := openDir(fd(at), ".", beneath)
	for err == nil && way != "" {
		part := way
		if len(way) > pathPart {
			part = way[:strings.LastIndexByte(way[:pathPart], '/')+1]
		}
		way = way[len(part):]
		var next *os.File
		next, err = openDir(fd(dir), "./"+part, beneath)
		dir.Close()
		dir = next
	}
	return dir, err
}

func (i *importer) entry(t *tar.Reader, h *tar.Header) error {
	layer, rest, dir, base, err := i.split(h.Name)
	if err != nil {
		return err
	}
	if rest == "" {
		if h.Typeflag != tar.TypeDir {
			return notArchive("a layer is no directory")
		}
		if err := unix.Fchownat(fd(dir), "", h.Uid, h.Gid, unix.AT_EMPTY_PATH); err != nil {
			return owners(err)
		}
		i.late = append(i.late, h)
		return unix.Fchmodat(unix.AT_FDCWD, self(dir), uint32(h.Mode)&0o7777, 0)
	}
	defer dir.Close()
	driver := i.head.Layers[layer].Driver
	if driver == Fuse && strings.HasPrefix(base, whPrefix) {
		return refuse("import it with overlay = \"native\"", "fuse-overlayfs takes this name for a mark of its own")
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := unix.Mkdirat(fd(dir), base, 0o700); err != nil {
			return err
		}
	case tar.TypeReg:
		if sparse(h) {
			return notArchive("it has a file with holes that are not written out")
		}
		if err := writeSparse(dir, base, t); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := unix.Symlinkat(h.Linkname, fd(dir), base); err != nil {
			return err
		}
	case tar.TypeLink:
		return i.link(h, dir, base)
	case tar.TypeChar:
		if h.Devmajor != 0 || h.Devminor != 0 {
			return notArchive("it has a device")
		}
		return unix.Mknodat(fd(dir), base, unix.S_IFCHR, 0)
	default:
		return notArchive("it has an entry of an unknown kind")
	}
	return i.attributes(h, dir, base, driver)
}

func (i *importer) attributes(h *tar.Header, dir *os.File, base, driver string) error {
	if err := unix.Fchownat(fd(dir), base, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return owners(err)
	}
	at := self(dir) + "/" + base
	if h.Typeflag != tar.TypeSymlink {
		if err := unix.Fchmodat(fd(dir), base, uint32(h.Mode)&0o7777, 0); err != nil {
			return err
		}
		for k, v := range h.PAXRecords {
			if a, ok := strings.CutPrefix(k, xattrMark); ok && portable(a) {
				if err := unix.Lsetxattr(at, a, []byte(v), 0); err != nil {
					return err
				}
			}
		}
	}
	if h.Typeflag == tar.TypeDir && h.PAXRecords[opaqueMark] != "" {
		if err := unix.Lsetxattr(at, opaqueAttr(driver), []byte("y"), 0); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeDir {
		i.late = append(i.late, h)
		return nil
	}
	return setTimes(dir, base, h)
}

func (i *importer) times(h *tar.Header) error {
	_, rest, dir, base, err := i.split(h.Name)
	if err != nil {
		return err
	}
	if rest == "" {
		return setTimes(dir, ".", h)
	}
	defer dir.Close()
	return setTimes(dir, base, h)
}

func setTimes(dir *os.File, base string, h *tar.Header) error {
	ts := unix.NsecToTimespec(h.ModTime.UnixNano())
	return unix.UtimesNanoAt(fd(dir), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// link makes a second name of a file that came before, in the same layer.
func (i *importer) link(h *tar.Header, dir *os.File, base string) error {
	layer, _, _ := strings.Cut(h.Name, "/")
	first, rest, from, name, err := i.split(h.Linkname)
	if err != nil {
		return err
	}
	if rest == "" || first != layer {
		return notArchive("it has a link to elsewhere")
	}
	defer from.Close()
	return unix.Linkat(fd(from), name, fd(dir), base, 0)
}

func owners(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return refuse("give yourself as many subordinate ids in /etc/subuid and /etc/subgid as where it was exported",
			"its owner is not among your subordinate ids")
	}
	return err
}

// sparse tells of an entry that says where its holes are instead of having them
// as zeros. A few bytes make one of exabytes, which would be read to its end, and
// Export makes none.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// writeSparse writes a file, leaving holes for zeros.
func writeSparse(dir *os.File, name string, r io.Reader) error {
	n, err := unix.Openat(fd(dir), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(n), name)
	defer f.Close()
	var at int64
	buf := make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(r, buf)
		if !zero(buf[:n]) {
			if _, err := f.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errors.Join(f.Truncate(at), f.Close())
		}
		if err != nil {
			return err
		}
	}
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
