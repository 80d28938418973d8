package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lazaret/image"
	"lazaret/lock"
)

// duel times ours and theirs in turn until the fastest of ours is at most most
// times the fastest of theirs. Only ratios are looked at, the best of several,
// against limits far above what "make bench" finds: it fails where something
// has become several times slower, and not where the machine is busy.
func duel(t *testing.T, most float64, ours, theirs func() time.Duration) {
	t.Helper()
	const tries = 8
	var a, b time.Duration
	for try := range tries {
		if x := ours(); try == 0 || x < a {
			a = x
		}
		if y := theirs(); try == 0 || y < b {
			b = y
		}
		if ratio := float64(a) / float64(b); ratio <= most {
			t.Logf("%v beside %v: %.2f, at most %.2f, after %d tries", a.Round(time.Millisecond), b.Round(time.Millisecond), ratio, most, try+1)
			return
		}
	}
	t.Errorf("%v beside %v: more than %.2f times as long, in the best of %d tries", a, b, most, tries)
}

func timed(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	return time.Since(start)
}

// TestEndToEndRatios keeps what a launch, a request and a lock cost in sight of
// what they are measured beside in docs/performance.md.
func TestEndToEndRatios(t *testing.T) {
	needE2E(t)
	s := newSandboxedWith(t, func(data string) string {
		// Everything on: where nothing can be reached, there is no sidecar.
		return strings.NewReplacer("enabled = false", "enabled = true\nauto_approve = [\"true\"]",
			"default_allow = []", `default_allow = ["198.51.100.0/24"]`).Replace(shellConfig(data))
	})
	t.Run("launch", func(t *testing.T) {
		if out, err := exec.Command("git", "init", "-q", s.ws).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(s.ws, "lazaret.lock"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := lock.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		id := f.Profiles["shell"].Image.Platforms["linux-"+runtime.GOARCH].Config
		duel(t, 4,
			func() time.Duration {
				c, _ := s.cmd(nil, "launch", "shell", "--", "true")
				c.Stdout, c.Stderr = nil, nil
				return timed(t, c)
			},
			func() time.Duration {
				return timed(t, exec.Command("podman", "--runtime", "runsc", "--runtime-flag", "ignore-cgroups", "run", "--rm", "--pull=never", id, "true"))
			})
	})
	t.Run("escalation", func(t *testing.T) {
		in, lines := s.shell(t)
		many := func(args string) func() time.Duration {
			return func() time.Duration {
				start := time.Now()
				fmt.Fprintf(in, "for i in 1 2 3 4 5; do /run/lazaret/escalate %s >/dev/null || exit 9; done; echo done\n", args)
				if !lines.Scan() || lines.Text() != "done" {
					t.Fatalf("the sandbox said %q", lines.Text())
				}
				return time.Since(start)
			}
		}
		// The client's own start is most of either. Of the two only the first waits
		// for programs of the host, each of which waits for its turn on a busy machine.
		duel(t, 25, many("true"), many("--help"))
	})
	t.Run("lock", func(t *testing.T) {
		refs := lateRegistry(t)
		config := "[storage]\ndata_root = \"~/x\"\n[network]\ndefault_allow = []\ndefault_deny = []\n[escalation]\nenabled = false\nsocket_dir = \"{runtime_dir}/x\"\n"
		for i, ref := range refs {
			config += fmt.Sprintf("[profiles.p%d]\nimage = %q\n", i, ref)
		}
		duel(t, 0.5, func() time.Duration {
			c, _ := s.cmd(nil, "lock", "--platform", "linux/amd64")
			c.Dir, c.Stdout, c.Stderr = t.TempDir(), nil, nil
			if err := os.WriteFile(filepath.Join(c.Dir, "lazaret.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			return timed(t, c)
		}, func() time.Duration {
			r := image.NewResolver(image.Options{Jobs: 1})
			start := time.Now()
			for _, ref := range refs {
				if _, err := r.Resolve(t.Context(), ref, []string{"linux/amd64"}); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(start)
		})
	})
}

// shell is a sandbox whose shell reads commands from in.
func (s *sandboxed) shell(t *testing.T) (in io.Writer, lines *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c, _ := s.cmd(nil, "launch", "shell", "--", "sh")
	c = exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	c.Dir, c.Env, c.Stderr = s.ws, s.env, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	w, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); c.Wait(); cancel() })
	return w, bufio.NewScanner(out)
}

// lateRegistry has some images and answers after 20 ms.
func lateRegistry(t *testing.T) (refs []string) {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var late atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if late.Load() {
			time.Sleep(20 * time.Millisecond)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	img, err := image.Shell("linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		ref, err := name.ParseReference(fmt.Sprintf("%s/ratio/image-%d:1", strings.TrimPrefix(server.URL, "http://"), i))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref.Name())
	}
	late.Store(true)
	return refs
}
