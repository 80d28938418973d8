package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/creack/pty"
)

const poured = 200_000_000

func preparePty(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	w, err := b.newWorkspace(ctx, "pty", profile{})
	if err != nil {
		return nil, err
	}
	pouring := []string{"/bench/benchtable", insideCommand, "pour", strconv.Itoa(poured)}
	return []side{
		{"pty lazaret", func() (float64, error) { return readTerminal(w.launch(ctx, pouring...)) }},
		{"pty podman", func() (float64, error) {
			cmd, err := w.podman(ctx, []string{"-i", "-t", "-v", b.tools() + ":/bench:ro"}, pouring...)
			if err != nil {
				return 0, err
			}
			return readTerminal(cmd)
		}},
	}, nil
}

// readTerminal is the person's terminal: it gives the rate from the first byte
// on, in MiB/s.
func readTerminal(cmd *exec.Cmd) (float64, error) {
	t, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 120})
	if err != nil {
		return 0, err
	}
	defer t.Close()
	var start, last time.Time
	var total int
	var end tail
	buf := make([]byte, 64<<10)
	for {
		n, err := t.Read(buf)
		if n > 0 {
			if last = time.Now(); total == 0 {
				start = last
			}
			total += n
			end.Write(buf[max(0, n-512):n])
		}
		if err != nil { // EIO: nobody has the other end any more
			break
		}
		if total > poured { // what comes after the last page is short
			last = time.Now()
		}
	}
	if err := cmd.Wait(); err != nil || total < poured {
		return 0, fmt.Errorf("%d bytes came: %v\n%q", total, err, end)
	}
	return perSecond(float64(total)/(1<<20), last.Sub(start)), nil
}

func prepareEscalate(ctx context.Context, b *bench, wanted func(string) bool, _ map[string]string) ([]side, error) {
	w, err := b.newWorkspace(ctx, "escalate", everything)
	if err != nil {
		return nil, err
	}
	a, err := b.agent(w.launch(ctx, insideAgent...))
	if err != nil {
		return nil, err
	}
	client := "/run/lazaret/escalate"
	gently := func(words ...string) func() (float64, error) {
		return func() (float64, error) {
			time.Sleep(30 * time.Millisecond) // below the rate at which the daemon has one wait
			return a.ask(words...)
		}
	}
	return among([]side{
		{"ask", gently("ask", "true")},
		{"client", gently("run", client, "true")},
		{"client help", func() (float64, error) { return a.ask("run", client, "--help") }},
		{"true beside ask", hostTrue(ctx)},
	}, wanted), nil
}

// prepareGit compares two clones: a git that refreshes its index would do it
// for the other side too.
func prepareGit(ctx context.Context, b *bench, _ func(string) bool, missing map[string]string) ([]side, error) {
	if b.debian == "" {
		missing["status lazaret"], missing["status podman"] = "no image with git", "no image with git"
		return nil, nil
	}
	ours, err := b.newWorkspace(ctx, "git", profile{image: "oci:" + b.debian})
	if err != nil {
		return nil, err
	}
	for d := range 500 {
		dir := filepath.Join(ours.dir, fmt.Sprintf("d%03d", d))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		for f := range 100 {
			text := fmt.Sprintf("file %d of directory %d\n", f, d)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.txt", f)), []byte(text), 0o644); err != nil {
				return nil, err
			}
		}
	}
	theirs := filepath.Join(b.work, "git-copy")
	for _, argv := range [][]string{
		{"git", "add", "."},
		{"git", "-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0", "commit", "-qm", "50,000 files"},
		{"git", "gc", "-q"}, // else it would begin by itself, at any time
		{"cp", "-a", ours.dir, theirs},
	} {
		if err := said(ours.run(ctx, argv...)); err != nil {
			return nil, err
		}
	}
	routed, err := b.agent(ours.launch(ctx, insideAgent...))
	if err != nil {
		return nil, err
	}
	plain, err := ours.plain(ctx, "-v", theirs+":/workspace", "-w", "/workspace", "-e", "GIT_CONFIG_COUNT=1", "-e", "GIT_CONFIG_KEY_0=safe.directory", "-e", "GIT_CONFIG_VALUE_0=*")
	if err != nil {
		return nil, err
	}
	status := func(a *agent) func() (float64, error) {
		return func() (float64, error) { return a.ask("run", "git", "-C", "/workspace", "status", "--short") }
	}
	return []side{{"status lazaret", status(routed)}, {"status podman", status(plain)}}, nil
}

func prepareWrite(ctx context.Context, b *bench, wanted func(string) bool, missing map[string]string) ([]side, error) {
	const volume = "lazaret-bench-volume"
	agents := map[string]*agent{}
	var plain *workspace
	for kind, driver := range map[string]string{"native": "native", "fuse": "fuse-overlayfs"} {
		p := profile{storage: fmt.Sprintf("overlay = %q", driver), lines: `persistent_dirs = ["/root"]`}
		w, err := b.newWorkspace(ctx, "write-"+kind, p)
		if err != nil {
			missing["write "+kind], missing["files "+kind] = firstLine(err), firstLine(err)
			continue
		}
		if agents[kind], err = b.agent(w.launch(ctx, insideAgent...)); err != nil {
			return nil, err
		}
		plain = w
	}
	if plain == nil {
		return nil, nil
	}
	// The volume is beside the overlays: where a file system puts a directory
	// decides how long it looks for room for the next file, up to three times.
	beside := filepath.Join(b.work, "write-volume")
	if err := os.Mkdir(beside, 0o755); err != nil {
		return nil, err
	}
	if err := said(exec.Command("podman", "volume", "create", "--opt", "type=none", "--opt", "o=bind", "--opt", "device="+beside, volume)); err != nil {
		return nil, err
	}
	b.later(func() error { return said(exec.Command("podman", "volume", "rm", "--force", volume)) })
	var err error
	if agents["volume"], err = plain.plain(ctx, "-v", volume+":/root"); err != nil {
		return nil, err
	}
	var sides []side
	for _, kind := range []string{"native", "fuse", "volume"} {
		a, ok := agents[kind]
		if !ok {
			continue
		}
		sides = append(sides,
			side{"write " + kind, func() (float64, error) { return a.ask("write", "/root", "134217728") }},
			side{"files " + kind, func() (float64, error) { return a.ask("files", "/root", "1000") }})
	}
	return among(sides, wanted), nil
}

func prepareSizes(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	w, err := b.newWorkspace(ctx, "sizes", profile{})
	if err != nil {
		return nil, err
	}
	f, platform, err := w.pins()
	if err != nil {
		return nil, err
	}
	client, err := os.Stat(b.helper("lazaret-escalate"))
	if err != nil {
		return nil, err
	}
	return []side{
		{"size sidecar", func() (float64, error) { return float64(f.Sidecar[platform].Size) / (1 << 20), nil }},
		{"size client", func() (float64, error) { return float64(client.Size()) / (1 << 20), nil }},
	}, nil
}

func prepareBuildCold(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	return []side{{"build cold", func() (float64, error) {
		tree := filepath.Join(b.work, "tree")
		if err := os.MkdirAll(tree, 0o700); err != nil {
			return 0, err
		}
		copying := "tar --exclude=./.git --exclude=./bin --exclude='./image/helpers/linux-*' -cf - . | tar -C \"$1\" -xf -"
		if err := said(command(ctx, "sh", "-c", copying, "sh", tree)); err != nil {
			return 0, err
		}
		cmd := command(ctx, filepath.Join(tree, ".ci", "build"))
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(b.work, "cache"))
		return taking(func() error { return said(cmd) })
	}}}, nil
}

func prepareBuildWarm(ctx context.Context, _ *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	return []side{{"build warm", func() (float64, error) {
		return taking(func() error { return said(command(ctx, "make", "-s", "build")) })
	}}}, nil
}
