package launch

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/escalate"
	"lazaret/escalate/wire"
	"lazaret/gitshadow"
	"lazaret/internal/step"
	"lazaret/lock"
)

// TestSocketDir: where the escalation socket lies, no sandbox reaches and
// nobody else enters.
func TestSocketDir(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := Host{Home: dir, RuntimeDir: filepath.Join(dir, "run"), Workspace: filepath.Join(dir, "ws"), DataRoot: filepath.Join(dir, "data")}
	for _, d := range []string{"run", "ws", "data", "open", "real"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link"))
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
	for written, want := range map[string]string{
		"{runtime_dir}/lazaret": filepath.Join(dir, "run/lazaret"),
		"~/real":                filepath.Join(dir, "real"),
		"~/link/below":          filepath.Join(dir, "real/below"),
		"":                      "",
		"~/link":                "no: is a symlink",
		"~/file":                "no: is neither",
		"{workspace_dir}":       "no: contain one another",
		"{workspace_dir}/x":     "no: contain one another",
		"~/data":                "no: contain one another",
		"{profile_dir}/s":       "no: ",
		"~":                     "no: contain one another",
		"~/../x":                "no: ",
	} {
		got, err := socketDir(written, "agent", h)
		if no, ok := strings.CutPrefix(want, "no: "); ok {
			if err == nil || !strings.Contains(err.Error(), no) {
				t.Errorf("%q: %q, %v", written, got, err)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %q, %v", written, got, err)
		}
	}
	h.SocketDir = filepath.Join(dir, "sockets")
	for _, path := range []string{h.SocketDir, filepath.Join(h.SocketDir, "x"), dir} {
		if err := h.checkReach(lock.PathNeed{Target: "/x", Source: path}, Source{Path: path}, filepath.Join(h.DataRoot, "agent")); err == nil {
			t.Errorf("%s may be mounted", path)
		}
	}
}

// TestReachOfWriteback: what git keeps of a repository is the sandbox's to change
// with git = "writeback", also where only a linked worktree is its workspace; a
// command of the host may not lie there, nor be given a link there unmarked.
func TestReachOfWriteback(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main, ws := filepath.Join(dir, "main"), filepath.Join(dir, "ws")
	for _, args := range [][]string{
		{"init", "-q", main}, {"-C", main, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", main, "worktree", "add", "-q", ws},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	h := Host{Workspace: ws, DataRoot: filepath.Join(dir, "data")}
	if h.Git.Repo, err = probeRepo(ws, os.Getuid()); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(main, ".git/objects/x")
	os.WriteFile(program, nil, 0o755)
	os.Symlink("/etc/passwd", filepath.Join(main, ".git/refs/heads/y"))
	for mode, want := range map[string]bool{gitshadow.Writeback: true, gitshadow.Quarantine: false} {
		l := escalate.NewLookup([]string{"/usr/bin"}, h.reach(lock.Profile{Git: lock.Git{Mode: mode}}), "")
		if r := l.Resolve([]string{program}, func([]string) []escalate.Mark { return nil }); (r.Program == "") != want {
			t.Errorf("%s: a program there: %+v", mode, r)
		}
		marks := escalate.Marker{Lookup: l, Dir: ws}.Marks([]string{"cat", filepath.Join(main, ".git/refs/heads/y")})
		if (len(marks) > 0) != want {
			t.Errorf("%s: a link there: %+v", mode, marks)
		}
	}
}

// TestListenEscalate: the socket's directory is made private, or refused.
func TestListenEscalate(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"open", "group", "real"} {
		os.Mkdir(filepath.Join(dir, d), 0o700)
	}
	os.Chmod(filepath.Join(dir, "open"), 0o755)
	os.Chmod(filepath.Join(dir, "group"), 0o710)
	os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link"))
	for _, d := range []string{"open", "group", "link", "link/below"} {
		op := ListenEscalate{Path: filepath.Join(dir, d, "s"), escalation: &escalation{}}
		if _, err := op.Do(t.Context(), nil); err == nil {
			t.Errorf("%s will do", d)
		}
	}
	failed := errors.New("no certificates")
	if _, err := (ListenEscalate{Path: filepath.Join(dir, "real/s"), escalation: &escalation{failed: failed}}).Do(t.Context(), nil); !errors.Is(err, failed) {
		t.Errorf("without certificates: %v", err)
	}
}

// TestUndoSocket: a journal can have this run's socket removed and nothing else.
func TestUndoSocket(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o700)
	u := undoer{record: testRecord("/w")}
	name := u.record.socketName()
	undo := func(path string) error {
		return u.undo(t.Context(), step.Undo{Kind: undoSocket, Base: baseSocket, Name: path})
	}
	private, open := filepath.Join(dir, "p"), filepath.Join(dir, "o")
	os.Mkdir(private, 0o700)
	os.Mkdir(open, 0o755)
	os.Chmod(open, 0o755)
	os.Symlink(private, filepath.Join(dir, "l"))
	listen := func(path string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	listen(filepath.Join(private, "other.sock"))
	listen(filepath.Join(open, name))
	listen(filepath.Join(private, name))
	for _, path := range []string{
		filepath.Join(private, "other.sock"), name, dir + "/p/../p/" + name, private + "//" + name,
		filepath.Join(private, "agent-ffffffffffff.sock"), filepath.Join(open, name), filepath.Join(dir, "l", name),
	} {
		if err := undo(path); err == nil {
			t.Errorf("%s: not refused", path)
		}
	}
	if !there(filepath.Join(private, "other.sock")) || !there(filepath.Join(open, name)) || !there(filepath.Join(private, name)) {
		t.Error("something is gone")
	}
	for range 2 {
		if err := undo(filepath.Join(private, name)); err != nil || there(filepath.Join(private, name)) {
			t.Error(err, "or it is still there")
		}
	}
	// A file under that name is somebody else's.
	os.WriteFile(filepath.Join(private, name), []byte("precious"), 0o600)
	if err := undo(filepath.Join(private, name)); err != nil || !there(filepath.Join(private, name)) {
		t.Error(err, "or the file is gone")
	}
	if err := undo(filepath.Join(dir, "nowhere", name)); err != nil {
		t.Error(err)
	}
	if err := u.undo(t.Context(), step.Undo{Kind: undoSocket, Base: baseCache, Name: filepath.Join(private, name)}); err == nil {
		t.Error("another base is taken")
	}
}

func TestPeer(t *testing.T) {
	got := idRanges("         0       1000          1\n         1     100000      65536\nnonsense\n 1 x 2\n")
	if !slices.Equal(got, []idRange{{1000, 1}, {100000, 65536}}) {
		t.Errorf("%v", got)
	}
	s := &escalation{uids: got}
	for uid, want := range map[uint32]bool{1000: true, 100000: true, 165535: true, 165536: false, 0: false, 999: false, 1001: false, 99999: false} {
		if s.peer(uid) != want {
			t.Errorf("%d: %v", uid, !want)
		}
	}
}

func TestNewSockets(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	line := "0000000000000000: 00000002 00000000 00010000 0001 01 "
	text := "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		line + "    7 " + ws + "/a b\n" + line + "1234567 ./7rel\n" + line + "12345\n" + line + "12345 @abstract\n" + line + "12345 " + ws + "/again\n" +
		line + "12345 " + ws + "/old\n" + line + "12345 " + ws + "/file\n" + line + "12345 /elsewhere\n" + line + "12345 " + ws + "/gone\n"
	open := func(names ...string) {
		for _, n := range names {
			l, err := net.Listen("unix", filepath.Join(ws, n))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}
	}
	os.WriteFile(filepath.Join(ws, "file"), nil, 0o600)
	open("old", "again")
	// Whatever the clock says: these are of tomorrow, and later ones of today.
	tomorrow := unix.NsecToTimespec(time.Now().Add(24 * time.Hour).UnixNano())
	was := socketFiles(text, ws, []string{ws})
	for path, f := range was {
		f.changed = tomorrow
		was[path] = f
	}
	same := socketFiles(text, ws, []string{ws})
	for path, f := range same {
		f.changed = tomorrow
		same[path] = f
	}
	if got := newSockets(was, same); len(got) > 0 {
		t.Errorf("%q are called new", got)
	}
	os.Remove(filepath.Join(ws, "again"))
	open("a b", "7rel", "again")
	now := socketFiles(text, ws, []string{ws})
	now[ws+"/old"] = was[ws+"/old"]
	if got, want := newSockets(was, now), []string{ws + "/7rel", ws + "/a b", ws + "/again"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCertificatesRenewed: new files take the place of the old ones whole.
func TestCertificatesRenewed(t *testing.T) {
	dir := t.TempDir()
	for _, gen := range []string{"one", "two"} {
		in := step.Values{}
		for _, n := range certFiles {
			in[certValue(n)] = gen + " " + n
		}
		if _, err := (Certificates{Target: dir, Renew: true}).Do(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for _, n := range certFiles {
			b, err := os.ReadFile(filepath.Join(dir, n))
			fi, _ := os.Stat(filepath.Join(dir, n))
			if string(b) != gen+" "+n || err != nil || fi.Mode() != 0o444 {
				t.Errorf("%s: %q, %v, %v", n, b, err, fi.Mode())
			}
		}
		if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) > 0 {
			t.Errorf("left: %q", names)
		}
	}
	for _, line := range (Certificates{Target: dir}).Show() {
		if strings.Contains(line, "PRIVATE") {
			t.Error("a key is shown")
		}
	}
	if wire.KeyFile == wire.CertFile {
		t.Error("one file for two")
	}
}

// TestPlanEscalation: a profile that may ask gets the runtime's flag, the three
// mounts and the client on its PATH; one that may not gets none of them.
func TestPlanEscalation(t *testing.T) {
	on := strings.Replace(base, "enabled = false", "enabled = true\nauto_approve = [\"id\"]", 1) + `env = { PATH = "/opt/bin" }` + "\n"
	f := locked(t, on)
	h := fixedHost()
	h.SocketDir, h.CommandPath = "/run/user/1000/lazaret", []string{"/usr/bin"}
	p := mustResolve(t, f, h, options())
	text := p.Text()
	for _, want := range []string{
		"--runtime-flag host-uds=open", "dst=/run/lazaret/escalate.sock,ro=true", "dst=/run/lazaret/escalate,ro=true", "dst=/run/lazaret/certs,ro=true",
		"dst=/run/lazaret/bin,ro=true", "PATH=/opt/bin:/run/lazaret/bin", "listen on /run/user/1000/lazaret/my_agent-0123456789ab.sock",
		"undo: socket <socket>//run/user/1000/lazaret/my_agent-0123456789ab.sock", "over every socket below",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	off := mustResolve(t, locked(t, base), fixedHost(), options()).Text()
	for _, not := range []string{"host-uds", "/run/lazaret/escalate", "/run/lazaret/certs", "/run/lazaret/bin", "sockets"} {
		if strings.Contains(off, not) {
			t.Errorf("%q although it may not ask:\n%s", not, off)
		}
	}
	// A path that is too long for a socket is said, not cut off.
	h.SocketDir = "/" + strings.Repeat("x", 90)
	if _, err := Resolve(f, "my_agent", h, options()); err == nil || !strings.Contains(err.Error(), "more than the 107") {
		t.Error(err)
	}
}
