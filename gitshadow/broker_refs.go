package gitshadow

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"syscall"

	"golang.org/x/sys/unix"
)

// packedRefs is what a packed-refs file held when it was last read.
type packedRefs struct {
	stat unix.Stat_t
	diff map[string]string // that differ from what the sandbox was given
}

// refs reads what refs the sandbox has that are not as they were given: those
// in files, which are told in written, and those in its packed-refs. In files
// are also some that are as they were given.
func (b *Broker) refs(dir *beneath) (all map[string]string, written map[string]bool, err error) {
	format := b.origin.Repo.ObjectFormat
	all, written = map[string]string{}, map[string]bool{}
	if b.Live != nil {
		f, err := b.Live()
		if err != nil {
			return nil, nil, err
		}
		live, err := beneathFile(f)
		f.Close()
		if err != nil {
			return nil, nil, err
		}
		defer live.close()
		b.readPacked(live)
		maps.Copy(all, b.packed.diff)
		// A commit on no branch is kept, too: it has no other name.
		if text, err := live.read(cmp.Or(b.Head, "HEAD"), refFileSize); err == nil {
			if _, id := headOf(text, format); id != "" {
				all[detached] = id
			}
		}
	}
	loose, odd, err := looseRefs(dir, format)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range odd {
		b.oddity(name, "it is no ref")
	}
	for name, id := range loose {
		all[name], written[name] = id, true
	}
	return all, written, nil
}

// readPacked reads the sandbox's packed-refs, if it is not the file that it was:
// a hundred thousand lines take a while.
func (b *Broker) readPacked(live *beneath) {
	f, fi, err := live.regular("packed-refs")
	if errors.Is(err, fs.ErrNotExist) {
		b.packed = packedRefs{}
		return
	}
	if err != nil {
		b.packed = packedRefs{}
		b.oddity("packed-refs", err.Error())
		return
	}
	defer f.Close()
	stat := fi.Sys().(*syscall.Stat_t)
	is := unix.Stat_t{Dev: stat.Dev, Ino: stat.Ino, Size: stat.Size}
	is.Mtim.Sec, is.Mtim.Nsec = stat.Mtim.Sec, stat.Mtim.Nsec
	is.Ctim.Sec, is.Ctim.Nsec = stat.Ctim.Sec, stat.Ctim.Nsec
	if b.packed.stat == is {
		return
	}
	b.packed = packedRefs{stat: is}
	text, err := io.ReadAll(io.LimitReader(f, packedMax+1))
	if err == nil && len(text) > packedMax {
		err = errTooManyRefs
	}
	var all map[string]string
	odd := 0
	if err == nil {
		all, odd, err = parsePacked(text, b.origin.Repo.ObjectFormat, givenMost)
	}
	if err != nil {
		b.oddity("packed-refs", err.Error())
	}
	if odd > 0 {
		b.oddity("packed-refs", fmt.Sprintf("%d names that no ref has", odd))
	}
	b.packed.diff = map[string]string{}
	for name, id := range all {
		if b.given[name] != id {
			b.packed.diff[name] = id
		}
	}
}
