package guard

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// entry is a name in a directory with its type, as the directory gives it.
type entry struct {
	name string
	kind uint8 // unix.DT_*
}

// readDir lists what a directory holds, in the directory's own order, and
// calls more between batches; where more says no, it stops. The package os
// would call lstat for types that are not known, by path.
func readDir(fd int, more func(n int) bool) (out []entry, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return out, err
		}
		before := len(out)
		for b := buf[:n]; len(b) > 19; {
			// struct linux_dirent64: inode, offset, length, type, name.
			length := int(binary.NativeEndian.Uint16(b[16:]))
			if length < 20 || length > len(b) {
				break
			}
			name := b[19:length]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if s := string(name); s != "." && s != ".." && s != "" {
				out = append(out, entry{s, b[18]})
			}
			b = b[length:]
		}
		if !more(len(out) - before) {
			return out, nil
		}
	}
}

// kindOf is the type of a file whose directory does not say.
func kindOf(mode uint32) uint8 { return uint8(mode & unix.S_IFMT >> 12) }
