package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lazaret/lock"
)

const text = "# Made by \"lazaret lock\". Review the diff, do not edit.\nversion = 1\n"

// file is a lock that allows the ranges.
func file(allow ...string) *lock.File {
	return &lock.File{
		Version:  1,
		Profiles: map[string]lock.Profile{"shell": {Network: lock.Network{Allow: allow}}},
	}
}

// salvageable is the text of a real lock.
func salvageable(t *testing.T) (*lock.File, []byte) {
	t.Helper()
	data, err := os.ReadFile("../../lock/testdata/rich.lock")
	if err != nil {
		t.Fatal(err)
	}
	f, err := lock.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return f, data
}

func TestAsk(t *testing.T) {
	f, data := salvageable(t)
	src := map[string]map[string]string{"claude": {"/root/.aws": "/home/u/.aws"}}
	yes := &Record{Digest: Digest(data), Text: string(data), Sources: src, Since: time.Unix(1, 0)}

	if q := Ask(nil, f, data, src); !q.First || len(q.Changes) < 50 || q.Empty() {
		t.Errorf("nothing agreed to: %+v", q)
	}
	if q := Ask(yes, f, data, src); !q.Empty() {
		t.Errorf("agreed to just this: %+v", q)
	}
	// Another lock: the difference, and no more.
	g, _ := salvageable(t)
	p := g.Profiles["claude"]
	p.Network.Hosts = append([]string{"*.evil.example:443"}, p.Network.Hosts...)
	g.Profiles["claude"] = p
	if q := Ask(yes, g, g.Format(), src); q.First || len(q.Changes) != 1 || !strings.Contains(q.Changes[0].Text, "evil") {
		t.Errorf("one host more: %+v", q)
	}
	// The bytes decide: other bytes that mean the same are not agreed to.
	if q := Ask(yes, f, append([]byte("#\n"), data...), src); q.Empty() {
		t.Error("other bytes passed for those agreed to")
	}
	// A record whose lock cannot be read any more is no basis for a difference.
	old := *yes
	old.Text, old.Digest = "version = 99", Digest([]byte("version = 99"))
	if q := Ask(&old, f, data, src); !q.First || len(q.Changes) < 50 {
		t.Errorf("an unreadable old lock: %+v", q)
	}
	// Mounts that lead elsewhere, or were never looked at.
	moved := map[string]map[string]string{"claude": {"/root/.aws": "/home/u/.ssh"}}
	if q := Ask(yes, f, data, moved); len(q.Moved) != 1 || q.Moved[0] != (Move{"claude", "/root/.aws", "/home/u/.aws", "/home/u/.ssh"}) {
		t.Errorf("moved: %+v", q)
	}
	if q := Ask(yes, f, data, map[string]map[string]string{"plain": {"/x": "/y"}}); len(q.Moved) != 1 || q.Moved[0].Was != "" {
		t.Errorf("never looked at: %+v", q)
	}
	// A mount that is new in the lock is told of once.
	p.Mounts["/new"] = lock.Mount{Kind: lock.KindBind, From: "~/new", Mode: "ro"}
	if q := Ask(yes, g, g.Format(), map[string]map[string]string{"claude": {"/root/.aws": "/home/u/.aws", "/new": "/home/u/new"}}); len(q.Moved) != 0 {
		t.Errorf("new mount: %+v", q.Moved)
	}
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "trust")
	s := NewStore(dir)
	if r, err := s.Get("/ws", "/ws/lazaret.lock"); r != nil || err != nil {
		t.Fatalf("before any: %v, %v", r, err)
	}
	if list, _, err := s.List(); len(list) != 0 || err != nil {
		t.Fatal(list, err)
	}
	for _, ws := range []string{"/ws", "/ws ", "/other/ws"} {
		if err := s.Put(Record{Workspace: ws, Lock: ws + "/lazaret.lock", Text: text + "# " + ws}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ws := range []string{"/ws", "/ws ", "/other/ws"} {
		if r, err := s.Get(ws, ws+"/lazaret.lock"); err != nil || r == nil || r.Text != text+"# "+ws || r.Digest != Digest([]byte(r.Text)) {
			t.Errorf("%s: %+v, %v", ws, r, err)
		}
	}
	if r, err := s.Get("/ws", "/ws/other.lock"); r != nil || err != nil {
		t.Errorf("a yes to another lock: %+v, %v", r, err)
	}
	if list, bad, err := s.List(); len(list) != 3 || bad != 0 || err != nil || list[0].Workspace != "/other/ws" {
		t.Errorf("%+v, %d, %v", list, bad, err)
	}
	if locks, err := s.Revoke("/ws"); len(locks) != 1 || err != nil {
		t.Errorf("%q, %v", locks, err)
	}
	if r, _ := s.Get("/ws", "/ws/lazaret.lock"); r != nil {
		t.Error("still there")
	}
	if locks, err := s.Revoke(""); len(locks) != 2 || err != nil {
		t.Errorf("%q, %v", locks, err)
	}
	// Nothing half-made is left, whatever was written.
	entries, _ := os.ReadDir(dir)
	if len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

// TestStoreRefuses: a record that somebody else could have written is no yes.
func TestStoreRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		attack func(dir, file string) error
		want   string
		unsafe bool
	}{
		{"directory open to others", func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "can be written to by others", true},
		{"directory is a link", func(dir, _ string) error {
			if err := os.Rename(dir, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", dir)
		}, "is not a directory", true},
		{"record open to others", func(_, f string) error { return os.Chmod(f, 0o620) }, "can be written to by others", true},
		{"record is a link", func(_, f string) error {
			if err := os.Rename(f, f+"2"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(f)+"2", f)
		}, "is not a regular file", true},
		{"record is a link to elsewhere", func(dir, f string) error {
			if err := os.Rename(f, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", f)
		}, "is not a regular file", true},
		{"record is a directory", func(_, f string) error {
			if err := os.Remove(f); err != nil {
				return err
			}
			return os.Mkdir(f, 0o700)
		}, "is not a regular file", true},
		{"record of another workspace", func(_, f string) error {
			b, _ := os.ReadFile(f)
			return os.WriteFile(f, []byte(strings.ReplaceAll(string(b), "/ws", "/wx")), 0o600)
		}, "of something else", false},
		{"record with another text", func(_, f string) error {
			b, _ := os.ReadFile(f)
			return os.WriteFile(f, []byte(strings.ReplaceAll(string(b), "version = 1", "version = 2")), 0o600)
		}, "of something else", false},
		{"no record", func(_, f string) error { return os.WriteFile(f, []byte("hunter2"), 0o600) }, "it is not one", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "trust")
			s := NewStore(dir)
			if err := s.Put(Record{Workspace: "/ws", Lock: "/ws/lazaret.lock", Text: text}); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(dir + "/lock-*")
			if len(files) != 1 {
				t.Fatal(files)
			}
			if err := tt.attack(dir, files[0]); err != nil {
				t.Fatal(err)
			}
			r, err := s.Get("/ws", "/ws/lazaret.lock")
			var unsafe *UnsafeError
			if r != nil || err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &unsafe) != tt.unsafe || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// TestStoreKeepsBytes: what a record cannot say is refused, and not written as
// something else.
func TestStoreKeepsBytes(t *testing.T) {
	const name = "/caf\xe9"
	s := NewStore(filepath.Join(t.TempDir(), "trust"))
	for what, put := range map[string]func() error{
		"workspace": func() error { return s.Put(Record{Workspace: name, Lock: "/l", Text: text}) },
		"lock":      func() error { return s.Put(Record{Workspace: "/w", Lock: name, Text: text}) },
		"source": func() error {
			return s.Put(Record{Workspace: "/w", Lock: "/l", Text: text, Sources: map[string]map[string]string{"p": {"/x": name}}})
		},
		"state":  func() error { return s.AddUser(name, "/w", time.Unix(0, 0)) },
		"user":   func() error { return s.AddUser("/s", name, time.Unix(0, 0)) },
		"config": func() error { return s.Begin(Session{Workspace: "/w", Exists: true, Config: name}) },
		"helper": func() error { return s.PutHelper(Helper{Digest: Digest(nil), Workspace: name}) },
	} {
		var ne *NameError
		if err := put(); !errors.As(err, &ne) || !strings.Contains(err.Error(), `caf\xe9`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Put(Record{Workspace: "/café", Lock: "/l", Text: text}); err != nil {
		t.Error(err)
	}
}

// TestStoreOfOthers: what is somebody else's is no record of the person's, and
// no place for one. Who is not root cannot give a file away, and has the root
// directory for it.
func TestStoreOfOthers(t *testing.T) {
	refused := func(s Store) {
		t.Helper()
		r, err := s.Get("/ws", "/ws/lazaret.lock")
		var unsafe *UnsafeError
		if r != nil || !errors.As(err, &unsafe) || unsafe.Reason != "belongs to somebody else" {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	if os.Getuid() != 0 {
		refused(NewStore("/"))
		return
	}
	for _, which := range []string{"", "/lock-*"} {
		dir := filepath.Join(t.TempDir(), "trust")
		s := NewStore(dir)
		if err := s.Put(Record{Workspace: "/ws", Lock: "/ws/lazaret.lock", Text: text}); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(dir + which)
		if len(files) != 1 {
			t.Fatal(files)
		}
		if err := os.Chown(files[0], 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused(s)
	}
}

func TestUsers(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "trust"))
	now := time.Unix(0, 0)
	if u, err := s.Users("/data/claude"); u != nil || err != nil {
		t.Fatal(u, err)
	}
	for _, ws := range []string{"/a", "/b", "/a"} {
		if err := s.AddUser("/data/claude", ws, now); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := s.Users("/data/claude"); len(u) != 2 || u[0] != "/a" || u[1] != "/b" || err != nil {
		t.Error(u, err)
	}
	if u, err := s.Users("/elsewhere/claude"); u != nil || err != nil {
		t.Error(u, err)
	}
	if list, bad, err := s.List(); len(list) != 0 || bad != 0 || err != nil {
		t.Error("records of state are no yes", list, bad, err)
	}
}

func TestSession(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "trust"))
	if m, err := s.Session("/ws"); m != nil || err != nil {
		t.Fatal(m, err)
	}
	if err := s.Settle("/ws"); err != nil {
		t.Fatal("nothing to settle:", err)
	}
	if err := s.Begin(Session{Workspace: "/ws", Exists: true, Config: "mine"}); err != nil {
		t.Fatal(err)
	}
	// A second sandbox does not take what the first one left for the person's.
	if err := s.Begin(Session{Workspace: "/ws", Exists: true, Config: "the agent's"}); err != nil {
		t.Fatal(err)
	}
	m, err := s.Session("/ws")
	if err != nil || !m.Same(true, []byte("mine")) || m.Same(true, []byte("the agent's")) || m.Same(false, nil) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, _ := s.Session("/other"); m != nil {
		t.Errorf("of another workspace: %+v", m)
	}
	if err := s.Settle("/ws"); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Session("/ws"); m != nil || err != nil {
		t.Error(m, err)
	}
	// Not there and empty are two things.
	if err := s.Begin(Session{Workspace: "/ws"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.Session("/ws"); !m.Same(false, nil) || m.Same(true, nil) {
		t.Errorf("%+v", m)
	}
}

func BenchmarkGet(b *testing.B) {
	data, err := os.ReadFile("../../lock/testdata/rich.lock")
	if err != nil {
		b.Fatal(err)
	}
	s := NewStore(filepath.Join(b.TempDir(), "trust"))
	if err := s.Put(Record{Workspace: "/ws", Lock: "/ws/lazaret.lock", Text: string(data)}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := s.Get("/ws", "/ws/lazaret.lock")
		if err != nil || !Ask(r, file(), data, nil).Empty() {
			b.Fatal(err)
		}
	}
}

func BenchmarkSession(b *testing.B) {
	s := NewStore(filepath.Join(b.TempDir(), "trust"))
	for b.Loop() {
		if err := s.Begin(Session{Workspace: "/ws", Exists: true, Config: text}); err != nil {
			b.Fatal(err)
		}
		if err := s.Settle("/ws"); err != nil {
			b.Fatal(err)
		}
	}
}
