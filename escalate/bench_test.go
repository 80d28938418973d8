package escalate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lazaret/escalate/wire"
	"net"
)

// BenchmarkTrue is the round trip of a command that runs unasked, less the
// sandbox; BenchmarkExec is what running it takes by itself.
func BenchmarkTrue(b *testing.B) {
	dir := b.TempDir()
	self, _ := os.Executable()
	c := Config{
		Profile: "agent", Run: "0123456789ab", Policy: Policy{AutoApprove: [][]string{{"true"}}, Banned: banned},
		Dir: dir, Empty: dir, Lookup: NewLookup([]string{"/usr/bin"}, nil, self), Env: []string{"PATH=/usr/bin"},
		Timeout: time.Minute, CommandTime: time.Minute, MaxOutput: 1 << 20, Peer: func(uint32) bool { return true },
		Runners: &Runners{Lazaret: self}, Log: func(Entry) error { return nil }, Now: time.Now, Limits: DefaultLimits, Door: DefaultDoor,
	}
	c.Door.Rate, c.Door.Burst = 1e6, 1e6
	d, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		b.Fatal(err)
	}
	d.Serve(l)
	defer d.Close()
	files, _ := d.Credentials()
	for name, text := range files {
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
	}
	ch := wire.Channel{Socket: path, Certs: dir}
	for b.Loop() {
		b.StopTimer()
		time.Sleep(30 * time.Millisecond) // as if somebody thought
		b.StartTimer()
		r, err := ch.Ask(context.Background(), wire.Request{RequestID: "r", Command: "true"})
		if err != nil || !r.Approved {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/usr/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
