package config

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A repository's lazaret.toml may be anything. None of it may be read, waited
// for or quoted.
func TestReadFileHostile(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("hunter2 = ?"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, target := range map[string]string{"environ": "/proc/self/environ", "zero": "/dev/zero", "link": "secret", "dangling": "nowhere", "loop": "loop"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.WriteFile(at("large"), make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		at("environ"):  "is a symbolic link",
		at("zero"):     "is a symbolic link",
		at("link"):     "is a symbolic link",
		at("dangling"): "is a symbolic link",
		at("loop"):     "is a symbolic link",
		at("fifo"):     "is not a regular file",
		at("socket"):   "is not a regular file",
		dir:            "is not a regular file",
		"/dev/zero":    "is not a regular file",
		"/dev/null":    "is not a regular file",
		at("large"):    "is larger than 4 MiB",
	} {
		done := make(chan error, 1)
		go func() {
			data, err := ReadFile(name)
			if data != nil {
				err = errors.New("data was read")
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || err.Error() != name+": "+want {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: still reading", name)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "lazaret.toml")
	if _, err := ReadFile(name); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("a missing file gives %v", err)
	}
	full := make([]byte, MaxFile)
	if err := os.WriteFile(name, full, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(name); err != nil || len(data) != MaxFile {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(name); err != nil || len(data) != 0 {
		t.Errorf("an empty file gives %q, %v", data, err)
	}
}

// Were a file that is no config read after all, its text must not come out in
// the error, which ends up in a public CI log.
func TestSyntaxErrorsQuoteNothing(t *testing.T) {
	for _, text := range []string{
		"hunter2", "A = hunter2", "A = \"hunter2", "A = [hunter2]", "hunter2 = \"\\hunter2\"", "[hunter2", "[[hunter2]", "A = 1hunter2", "A = 0xhunter2", "A = 1979-hunter2",
		"A = '''hunter2", "A = {hunter2}", "A = { B = 1 hunter2", "PATH=/bin\x00TOKEN=hunter2", "A = tru hunter2", "hunter2 = 1\nhunter2 = 2", "[hunter2]\n[hunter2]", "A = \"\\uhunter2\"",
		"A = 1_hunter2", "A = +hunter2", "hunter2.A = 1\nhunter2 = 1", "A = 1 hunter2", "A = 0b2hunter2", "A = 1.hunter2", "A = inhunter2", "\xffhunter2", "A = [[hunter2",
	} {
		_, err := load(text)
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if strings.Contains(err.Error()+hintOf(err), "hunter2") {
			t.Errorf("%q is quoted: %v", text, err)
		}
		if !strings.HasPrefix(err.Error(), "lazaret.toml:") {
			t.Errorf("%q: no place: %v", text, err)
		}
	}
}

// A message that a newer TOML library brings is not passed on either.
func TestExplainUnknown(t *testing.T) {
	if got := explain("surprising 'hunter2'"); got != "syntax error" {
		t.Errorf("got %q", got)
	}
}

// Values of the env table may be secrets.
func TestEnvValuesAreNotQuoted(t *testing.T) {
	for _, value := range []string{`"hunter2\u202e"`, `"env:hunter-2"`, `"env:=hunter2"`, `["hunter2"]`, `{ hunter = "hunter2" }`} {
		_, err := load("[profiles.p1]\nimage = 'builtin:shell'\n[profiles.p1.env]\nA = " + value)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hunter-2") {
			t.Errorf("%s gives %v", value, err)
		}
	}
}

// TestReadBeneath: a file is read where it is in the directory by names alone, and
// not where a link is on the way, at its end, or comes to be there meanwhile.
func TestReadBeneath(t *testing.T) {
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	for _, d := range []string{"ws/d", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"ws/d/x": "mine", "out/x": "SECRET"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"ws/away": "../out", "ws/end": "../out/x", "ws/here": "d", "ws/abs": dir} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(ws, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d/x", "d/../d/x", "./d//x"} {
		if b, err := ReadBeneath(ws, name); string(b) != "mine" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"away/x", "end", "here/x", "abs/out/x", "../out/x", "d/../../out/x", "/etc/passwd"} {
		if b, err := ReadBeneath(ws, name); !errors.Is(err, ErrLeads) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := ReadBeneath(ws, "none/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, name := range []string{"fifo", "d"} {
		if _, err := ReadBeneath(ws, name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, ws+"/d", unix.AT_FDCWD, ws+"/away", unix.RENAME_EXCHANGE)
			}
		}
	})
	for range 2000 {
		if b, err := ReadBeneath(ws, "d/x"); err == nil && string(b) != "mine" {
			t.Errorf("read %q", b)
			break
		}
	}
	close(stop)
	swapping.Wait()
}
