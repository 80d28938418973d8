// Package trust keeps what the person at this machine has said yes to. A
// lockfile travels in a repository which an agent can write to, so it is
// obeyed only once somebody here has agreed to just this content, for just
// this workspace, with its mounts leading where they lead today. The records
// lie outside of everything that a sandbox can reach. The package asks nobody
// and decides nothing: it says what there is to ask.
package trust

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"lazaret/lock"
)

// Record is one yes.
type Record struct {
	Version   int       `json:"version"`
	Workspace string    `json:"workspace"` // absolute, without symlinks
	Lock      string    `json:"lock"`      // path of the lock, absolute
	Digest    string    `json:"digest"`    // of the lock's bytes
	Since     time.Time `json:"since"`
	Text      string    `json:"text"` // the lock's bytes: what a later one is compared with
	// Sources says where each mount led: by profile, then by path in the
	// sandbox. A profile that is not in it could not be looked at.
	Sources map[string]map[string]string `json:"sources"`
}

// Digest is how the content of a lock is named: sha256:….
func Digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// Move is a mount that leads elsewhere than it did.
type Move struct {
	Profile string
	Target  string // in the sandbox
	Was, Is string // on the host; Was is "" where nobody looked
}

// Question is what has to be agreed to before a lock is obeyed.
type Question struct {
	First   bool          // nothing was agreed to in this workspace before
	Since   time.Time     // when it was, otherwise
	Changes []lock.Change // everything the lock grants, or what differs from what was agreed to
	Moved   []Move
}

// Empty reports whether there is nothing to ask.
func (q Question) Empty() bool { return len(q.Changes) == 0 && len(q.Moved) == 0 && !q.First }

// Ask compares a lock, and where its mounts lead, with what was agreed to: r
// is nil where nothing was. sources is as in a Record; profiles that are not
// in it are not asked about. The bytes decide, not what they mean: a record of
// other bytes is never taken for a yes to these.
func Ask(r *Record, file *lock.File, data []byte, sources map[string]map[string]string) Question {
	if r == nil {
		return Question{First: true, Changes: lock.Grants(file)}
	}
	q := Question{Since: r.Since}
	if r.Digest != Digest(data) {
		old, err := lock.Salvage([]byte(r.Text))
		if err != nil {
			// Agreed to under another version of the schema, which cannot be
			// compared with: all of it is new.
			return Question{First: true, Changes: lock.Grants(file)}
		}
		if q.Changes = lock.Diff(old, file); len(q.Changes) == 0 {
			return Question{First: true, Changes: lock.Grants(file)}
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(sources)) {
		was := r.Sources[profile]
		for _, target := range slices.Sorted(maps.Keys(sources[profile])) {
			is := sources[profile][target]
			before, known := was[target]
			if before == is || !known && isNew(q.Changes, profile, target) {
				continue
			}
			q.Moved = append(q.Moved, Move{profile, target, before, is})
		}
	}
	return q
}

// isNew reports whether the mount is told of as a change of the lock.
func isNew(changes []lock.Change, profile, target string) bool {
	key := lock.MountKey(profile, target)
	for _, c := range changes {
		for _, p := range c.Parts {
			if p.Key == key && p.Old == nil {
				return true
			}
		}
	}
	return false
}
