package trust

import (
	"errors"
	"io/fs"
	"time"
)

// Session is what a workspace's config was when a sandbox began to run there.
// What it became meanwhile may be the agent's work.
type Session struct {
	Version   int       `json:"version"`
	Workspace string    `json:"workspace"`
	Since     time.Time `json:"since"`
	Exists    bool      `json:"exists"` // there was a config
	Config    string    `json:"config"` // its text
}

const sessionPrefix = "session-"

// Session finds what is recorded of a workspace, or nil.
func (s Store) Session(workspace string) (*Session, error) {
	m := new(Session)
	err := s.read(recordName(sessionPrefix, workspace), m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case m.Version != 1 || m.Workspace != workspace:
		return nil, errors.New("reading the record of a session: it is of something else")
	}
	return m, nil
}

// Same reports whether the config is what it was.
func (m Session) Same(exists bool, config []byte) bool {
	return m.Exists == exists && m.Config == string(config)
}

// Begin records the config as a sandbox begins to run. One that is recorded
// already stays: it is what a person last saw.
func (s Store) Begin(m Session) error {
	if have, err := s.Session(m.Workspace); err == nil && have != nil {
		return nil
	}
	m.Version = 1
	return s.write(recordName(sessionPrefix, m.Workspace), m, false)
}

// Settle forgets the session of a workspace: its config is the person's own.
func (s Store) Settle(workspace string) error {
	return s.remove(recordName(sessionPrefix, workspace))
}
