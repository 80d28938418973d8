package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readAt reads a regular file of an open directory, not through a link.
func (w *walker) readAt(dirfd int, name string) ([]byte, string, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	return w.read(fd)
}

// readIn reads a regular file below the root by its path, through links that
// stay in the root, as the tools do.
func (w *walker) readIn(rel string) ([]byte, string, error) {
	fd, err := w.openIn(rel, unix.O_RDONLY)
	if err != nil {
		return nil, "", err
	}
	return w.read(fd)
}

func (w *walker) openIn(rel string, flags uint64) (int, error) {
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(w.fd, rel, &how)
		if !errors.Is(err, unix.EAGAIN) || try == 20 { // a rename came between
			return fd, err
		}
	}
}

var errNotFile = errors.New("not a regular file")

// read reads and closes an open file, as much as the limit allows. The digest
// tells whether it is another one by now, also where it is larger than that.
func (w *walker) read(fd int) ([]byte, string, error) {
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, "", errNotFile
	}
	data, err := io.ReadAll(io.LimitReader(f, w.o.Limits.Bytes))
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:12])
	if st.Size > w.o.Limits.Bytes {
		digest += fmt.Sprintf("+%d@%d.%d#%d", st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ino)
	}
	return data, digest, nil
}
