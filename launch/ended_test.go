package launch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lazaret/internal/step"
	"lazaret/launch/podman"
)

// TestRemoved: podman is only taken to have removed a container where it can be
// seen that it has.
func TestRemoved(t *testing.T) {
	store, id := t.TempDir(), strings.Repeat("0123456789abcdef", 4)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.WriteFile(filepath.Join(store, "containers.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := container{whole: true, seen: true, store: store, idFile: file("id", id)}
	if !good.removed(endTime) {
		t.Error("one that is gone is not seen to be")
	}
	for name, c := range map[string]container{
		"cut short":        {seen: true, store: store, id: id},
		"never seen":       {whole: true, store: store, id: id},
		"no storage":       {whole: true, seen: true, id: id},
		"another storage":  {whole: true, seen: true, store: t.TempDir(), id: id},
		"no id":            {whole: true, seen: true, store: store},
		"no file":          {whole: true, seen: true, store: store, idFile: "/nowhere"},
		"what is no id":    {whole: true, seen: true, store: store, idFile: file("id", "../x")},
		"an empty id file": {whole: true, seen: true, store: store, idFile: file("id", "")},
	} {
		if c.removed(endTime) {
			t.Errorf("%s: taken to be removed", name)
		}
	}
	if err := os.Mkdir(filepath.Join(store, id), 0o700); err != nil {
		t.Fatal(err)
	}
	if good.removed(endTime) {
		t.Error("one that is still there is taken to be removed")
	}
}

// TestSeen: a container is taken to be kept in a directory only where it was seen
// there.
func TestSeen(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for name, here := range map[string]bool{"here": true, "elsewhere": false} {
		store, idFile := t.TempDir(), filepath.Join(t.TempDir(), "id")
		if here {
			if err := os.Mkdir(filepath.Join(store, id), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := &server{containers: []container{{name: "box", store: store, idFile: idFile}, {name: "router", store: store}}}
		stop := s.watch("box")
		if err := os.WriteFile(idFile, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
		s.started("router", id, nil)
		for deadline := time.Now().Add(time.Minute); here && time.Now().Before(deadline); time.Sleep(watchTime) {
			if c, _ := s.container("box"); c.seen {
				break
			}
		}
		stop()
		for _, n := range []string{"box", "router"} {
			if c, _ := s.container(n); c.seen != here {
				t.Errorf("%s, %s: seen: %v", name, n, c.seen)
			}
		}
	}
}

// TestWhole: a podman that a signal ended leaves what has to be looked for, which
// one that repeats the status of a killed program does not.
func TestWhole(t *testing.T) {
	podmanThat := func(text string) podman.Engine {
		path := filepath.Join(t.TempDir(), "podman")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return podman.Engine{Podman: path}
	}
	for text, want := range map[string]bool{"exit 0": true, "exit 137": true, "kill -KILL $$": false, "kill -TERM $$": false} {
		for _, op := range []step.Op{
			Sandbox{Engine: podmanThat(text), Run: podman.Run{Name: "x"}, Tasks: tasksUsual},
			Setup{Sandbox: Sandbox{Engine: podmanThat(text), Run: podman.Run{Name: "x"}, Tasks: tasksUsual}},
			Router{Engine: podmanThat(text), Run: podman.Router{Name: "x"}},
		} {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			s := &server{stdio: [3]*os.File{null, null, null}}
			kind, err := opKind(op)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(op)
			if err != nil {
				t.Fatal(err)
			}
			s.perform(t.Context(), request{Kind: kind, Op: b})
			if c, ok := s.container("x"); !ok || c.whole != want {
				t.Errorf("%s, %q: whole is %v", kind, text, c.whole)
			}
		}
	}
}

// TestRemovedWaits: what removes a container at its end may be under way.
func TestRemovedWaits(t *testing.T) {
	store, id := t.TempDir(), strings.Repeat("0123456789abcdef", 4)
	if err := os.WriteFile(filepath.Join(store, "containers.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(store, id), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `read x; rmdir "$1"`, "sh", filepath.Join(store, id))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	conmon, err := openProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	// Not over when it is looked for: without the wait it would be seen.
	time.AfterFunc(100*time.Millisecond, func() { in.Close() })
	if !(container{whole: true, seen: true, store: store, id: id, conmon: conmon}).removed(30 * time.Second) {
		t.Error("it was not waited for")
	}
	cmd.Wait()
	for _, text := range []string{"", "x", "0", "1", "-7"} {
		os.WriteFile(pid, []byte(text), 0o600)
		if _, err := openProcess(pid); err == nil {
			t.Errorf("%q is a process", text)
		}
	}
}

// TestWhenEnded: a sandbox is over when its process is and not before, and not
// once podman has said so itself.
func TestWhenEnded(t *testing.T) {
	for name, stopped := range map[string]bool{"by itself": false, "podman was quicker": true} {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid, over := filepath.Join(t.TempDir(), "pid"), make(chan struct{}, 1)
		stop := whenEnded(pid, func() { over <- struct{}{} })
		// Podman writes it only later.
		if err := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		select {
		case <-over:
			t.Errorf("%s: over while it runs", name)
		case <-time.After(5 * watchTime):
		}
		if stopped {
			stop()
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if stopped {
			select {
			case <-over:
				t.Errorf("%s: told all the same", name)
			case <-time.After(5 * watchTime):
			}
			continue
		}
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Fatalf("%s: its end is not noticed", name)
		}
		stop()
	}
}
