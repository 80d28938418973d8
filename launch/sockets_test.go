package launch

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// inNamespace names a directory where this test program runs with mounts of its
// own, which would keep it from removing what it covered.
const inNamespace = "LAZARET_TEST_MOUNTS"

// A sandbox makes the workspace too large to look through, for its next launch:
// what programs of this machine listen on is covered nevertheless.
func TestHideSocketsInLargeTree(t *testing.T) {
	dir := os.Getenv(inNamespace)
	if dir == "" {
		real, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestHideSocketsInLargeTree$", "-test.v")
		cmd.Env = append(os.Environ(), inNamespace+"="+real)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	socketLook = 50
	ws := filepath.Join(dir, "ws")
	for _, deep := range []string{"a/b/c", "z/y/x"} {
		if err := os.MkdirAll(filepath.Join(ws, deep), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(ws, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nothing := filepath.Join(dir, "nothing")
	if err := os.WriteFile(nothing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(ws)
	sockets := []string{"a/b/c/agent.sock", "z/y/x/docker.sock", "rel.sock"}
	for i, s := range sockets {
		path := filepath.Join(ws, s)
		if i == 2 {
			path = s
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	out, err := HideSockets{Dir: ws, Source: ws, Nothing: nothing, Target: "/workspace"}.Do(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sockets {
		if c, err := net.Dial("unix", filepath.Join(ws, s)); err == nil {
			c.Close()
			t.Errorf("%s can be connected to", s)
		}
		if told := out[toldValue+"hidden"]; !strings.Contains(told, "/workspace/"+s) {
			t.Errorf("told %q", told)
		}
	}
	if out[toldValue+"size"] == "" {
		t.Error("nothing is said of the size")
	}
}

func TestBoundSockets(t *testing.T) {
	const head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	const line = "0000000000000000: 00000002 00000000 00010000 0001 01 12345 "
	text := head + line + "/ws/a.sock\n" + line + "@/ws/abstract\n" + line + "b.sock\n" + line + "../c.sock\n" +
		line + "/ws/../etc/d.sock\n" + line + "/wsx/e.sock\n" + line + "/ws\n" + line + "/ws/kept\n" + line + "/ws/a.sock\n" + line + "/ws/f g\n"
	o := HideSockets{Source: "/ws", Keep: []string{"kept"}}
	if got, want := o.bound(text), []string{"a.sock", "b.sock", "f g"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
