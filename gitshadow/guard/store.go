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
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Record is what is known of a workspace.
type Record struct {
	Version   int       `json:"version"`
	Workspace Name      `json:"workspace"`
	Since     time.Time `json:"since"` // when what is in Base was there
	// Open says that a sandbox began to run since, and nobody looked at what it
	// left.
	Open bool     `json:"open,omitempty"`
	Base Snapshot `json:"base"`
	// Told are the findings that were told and neither repaired nor accepted.
	Told []Finding `json:"told,omitempty"`
}

// Begin is the record for a sandbox that begins now, with now being what is
// there. What was told before and is still there stays to be told, and where
// the last sandbox's lazaret was killed, everything that came since.
func Begin(old *Record, workspace string, now Snapshot) Record {
	r := Record{Version: 1, Workspace: Name(workspace), Since: now.Taken, Open: true, Base: now}
	if old == nil {
		return r
	}
	left := old.Told
	if old.Open {
		left = append(Compare(&old.Base, now), left...)
	}
	r.Base = known(old.Base, now, left)
	r.Told = stillThere(left, now)
	return r
}

// known gives what counts as known: what is there now, but for the files that
// something unsettled is about, of which what was known before still is.
func known(old, now Snapshot, left []Finding) Snapshot {
	open := map[place]bool{}
	for _, f := range left {
		open[f.place()] = true
	}
	now.Findings = slices.DeleteFunc(slices.Clone(now.Findings), func(f Finding) bool { return open[f.place()] })
	for _, f := range old.Findings {
		if open[f.place()] {
			now.Findings = append(now.Findings, f)
		}
	}
	return now
}

// Join is the record for a sandbox that begins beside another that runs:
// what that one did since is not taken for the person's. Only directories that
// the other does not have are new.
func (r Record) Join(now Snapshot) Record {
	r.Open = true
	known := map[Name]bool{}
	for _, root := range r.Base.Roots {
		known[root] = true
	}
	for _, root := range now.Roots {
		if known[root] {
			continue
		}
		r.Base.Roots = append(r.Base.Roots, root)
		for _, f := range now.Findings {
			if f.Root == root {
				r.Base.Findings = append(r.Base.Findings, f)
			}
		}
	}
	return r
}

// End is the record after a look at what a sandbox left.
func (r Record) End(now Snapshot) (Record, []Finding) {
	found := Compare(&r.Base, now)
	r.Told, r.Open = found, false
	return r, found
}

// Accept is the record after the person has said that what is there is theirs.
func (r Record) Accept(now Snapshot) Record {
	r.Since, r.Base, r.Told = now.Taken, now, nil
	return r
}

func stillThere(told []Finding, now Snapshot) (out []Finding) {
	there := map[key]string{}
	for _, f := range now.Findings {
		there[f.key()] = f.Digest
	}
	seen := map[key]bool{}
	for _, f := range told {
		if d, ok := there[f.key()]; ok && d == f.Digest && !seen[f.key()] {
			seen[f.key()] = true
			out = append(out, f)
		}
	}
	return out
}

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

// RecordError is a record that cannot be what lazaret wrote.
type RecordError struct{ Path, Reason string }

func (e *RecordError) Error() string { return e.Path + " " + e.Reason }

// Hint is what to do.
func (e *RecordError) Hint() string {
	return "look at who put it there and remove it; without it, \"lazaret guard\" tells of everything"
}
