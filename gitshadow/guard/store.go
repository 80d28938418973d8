package guard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Store is the directory of the records, one a workspace, out of every
// sandbox's reach.
type Store struct{ Dir string }

// Path is where the record of a workspace lies.
func (s Store) Path(workspace string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(workspace))
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(s.Dir, fmt.Sprintf("%.40s-%x.json", base, sum[:12]))
}

// maxRecord is the most bytes that a record may have.
const maxRecord = 128 << 20

// Get reads the record of a workspace; nil where there is none.
func (s Store) Get(workspace string) (*Record, error) {
	path := s.Path(workspace)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was there before: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading what was there before: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.Mode().IsRegular() || fi.Size() > maxRecord || !ok || int(st.Uid) != os.Getuid() || fi.Mode().Perm()&0o022 != 0 {
		return nil, &RecordError{path, "is not a file that only you can write"}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("reading what was there before: %w", err)
	}
	var r Record
	if json.Unmarshal(data, &r) != nil || r.Version != 1 || string(r.Workspace) != workspace {
		return nil, &RecordError{path, "is not a record of this workspace"}
	}
	return &r, nil
}

// Put replaces the record of a workspace: whole, or not at all.
func (s Store) Put(r Record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("recording what is there: %w", err)
		}
	}()
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.sweep()
	path := s.Path(string(r.Workspace))
	var b [6]byte
	rand.Read(b[:])
	tmp := filepath.Join(s.Dir, ".new-"+hex.EncodeToString(b[:]))
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

// sweep removes what a Put that was killed left. One takes no minute.
func (s Store) sweep() {
	left, err := fs.Glob(os.DirFS(s.Dir), ".new-*")
	if err != nil {
		return
	}
	for _, name := range left {
		path := filepath.Join(s.Dir, name)
		if fi, err := os.Lstat(path); err == nil && time.Since(fi.ModTime()).Abs() > time.Minute {
			os.Remove(path)
		}
	}
}

// RecordError is a record that cannot be what lazaret wrote.
type RecordError struct{ Path, Reason string }

func (e *RecordError) Error() string { return e.Path + " " + e.Reason }

// Hint is what to do.
func (e *RecordError) Hint() string {
	return "look at who put it there and remove it; without it, \"lazaret guard\" tells of everything"
}
