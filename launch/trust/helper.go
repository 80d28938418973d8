package trust

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Helper is a yes to one helper program of another lazaret: to just these
// bytes, whichever lock pins them.
type Helper struct {
	Version   int       `json:"version"`
	Digest    string    `json:"digest"`
	Kind      string    `json:"kind"`
	Workspace string    `json:"workspace"` // where it was first wanted
	Since     time.Time `json:"since"`
}

const helperPrefix = "helper-"

// Helper finds the yes to a program, or nil.
func (s Store) Helper(digest string) (*Helper, error) {
	h := new(Helper)
	err := s.read(recordName(helperPrefix, digest), h)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case h.Version != 1 || h.Digest != digest:
		return nil, errors.New("reading the record of a helper program: it is of something else")
	}
	return h, nil
}

// PutHelper records a yes.
func (s Store) PutHelper(h Helper) error {
	h.Version = 1
	return s.write(recordName(helperPrefix, h.Digest), h, true)
}

// Helpers gives all yeses to programs, by digest. Those that cannot be read are
// left out and counted.
func (s Store) Helpers() (list []Helper, unreadable int, err error) {
	names, err := s.names(helperPrefix)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		var h Helper
		if err := s.read(name, &h); err != nil || h.Version != 1 || recordName(helperPrefix, h.Digest) != name {
			unreadable++
			continue
		}
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Helper) int { return strings.Compare(a.Digest, b.Digest) })
	return list, unreadable, nil
}

// RevokeHelpers takes back every yes to a program that was given in a
// workspace, or all there are where it is "", and gives their digests.
func (s Store) RevokeHelpers(workspace string) (digests []string, err error) {
	return revoke(s, helperPrefix, workspace, func(h Helper) (string, string) { return h.Workspace, h.Digest })
}
