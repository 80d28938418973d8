package image

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Stash is a directory that keeps what was pulled, by digest. What it gives is
// verified each time: a file there is a guess at content until it is hashed.
type Stash struct{ Dir string }

// maxHelper bounds a helper program or its layer, in bytes.
const maxHelper = 64 << 20

// Path is where the content with a digest is kept, or would be.
func (s Stash) Path(h v1.Hash) string {
	return filepath.Join(s.Dir, h.Algorithm+"-"+h.Hex)
}

// open opens the content with a digest, if what is there can be that.
func (s Stash) open(h v1.Hash) (*os.File, bool) {
	f, err := os.OpenFile(s.Path(h), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxHelper {
		f.Close()
		return nil, false
	}
	return f, true
}

// get gives the content with a digest; anything else that is there is as good
// as nothing.
func (s Stash) get(h v1.Hash) ([]byte, bool) {
	f, ok := s.open(h)
	if !ok {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxHelper))
	return b, err == nil && sha256Of(b) == h
}

// has tells whether get would give it, without holding it all at once: pages
// that were never touched cost more than hashing does.
func (s Stash) has(h v1.Hash) bool {
	f, ok := s.open(h)
	if !ok {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	_, err := io.CopyBuffer(sum, io.LimitReader(f, maxHelper), make([]byte, 64<<10))
	return err == nil && h.Algorithm == "sha256" && hex.EncodeToString(sum.Sum(nil)) == h.Hex
}

// put keeps content under its digest: whole, or not at all. Its mode lets a
// sandbox run it.
func (s Stash) put(b []byte) error {
	h := sha256Of(b)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("keeping a helper program: %w", err)
	}
	s.sweep()
	var r [6]byte
	rand.Read(r[:])
	tmp := filepath.Join(s.Dir, ".new-"+hex.EncodeToString(r[:]))
	err := writeNew(tmp, b)
	if err == nil {
		err = os.Rename(tmp, s.Path(h))
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("keeping a helper program: %w", err)
	}
	return nil
}

func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o500)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(b))
	if err == nil {
		err = f.Chmod(0o555) // whatever the umask
	}
	return errors.Join(err, f.Close())
}

// sweep removes what a put that was killed left behind.
func (s Stash) sweep() {
	left, err := fs.Glob(os.DirFS(s.Dir), ".new-*")
	if err != nil {
		return
	}
	for _, name := range left {
		path := filepath.Join(s.Dir, name)
		if fi, err := os.Lstat(path); err == nil && time.Since(fi.ModTime()).Abs() > time.Hour {
			os.Remove(path)
		}
	}
}
