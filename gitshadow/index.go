package gitshadow

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// writeIndex writes an index (version 2) of files that are as the entries say,
// with their sizes and times, so that git need not read them to know it. The
// format is gitformat-index(5).
func writeIndex(path string, root *os.Root, entries []entry, digits int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<20)
	h := hasher(digits)
	w := io.MultiWriter(b, h)
	put := func(v uint32) { binary.Write(w, binary.BigEndian, v) }
	io.WriteString(w, "DIRC")
	put(2)
	put(uint32(len(entries)))
	for _, e := range entries {
		mode, err := strconv.ParseUint(e.mode, 8, 32)
		if err != nil {
			return fmt.Errorf("%s has the mode %s", show(e.path), e.mode)
		}
		id, err := hex.DecodeString(e.id)
		if err != nil || 2*len(id) != digits {
			return fmt.Errorf("%s has the id %s", show(e.path), show(e.id))
		}
		fi, err := root.Lstat(e.path)
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		size := uint32(st.Size)
		if e.mode == submodule {
			size = 0
		}
		for _, v := range []uint32{
			uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec), uint32(st.Mtim.Sec), uint32(st.Mtim.Nsec),
			uint32(st.Dev), uint32(st.Ino), uint32(mode), st.Uid, st.Gid, size,
		} {
			put(v)
		}
		w.Write(id)
		name := min(len(e.path), 0xfff)
		binary.Write(w, binary.BigEndian, uint16(name))
		io.WriteString(w, e.path)
		// Zeros to a multiple of eight bytes, at least one.
		n := 40 + len(id) + 2 + len(e.path)
		w.Write(make([]byte, 8-n%8))
	}
	b.Write(h.Sum(nil))
	return errors.Join(b.Flush(), f.Close())
}
