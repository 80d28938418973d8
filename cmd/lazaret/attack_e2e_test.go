package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lazaret/launch"
	"lazaret/testdata/attacks"
)

// attackedConfig is a profile with everything that can be attacked.
func attackedConfig(data string) string {
	return fmt.Sprintf(`[storage]
data_root = %q
[network]
default_allow = ["203.0.113.0/24"]
default_deny = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
[escalation]
enabled = true
socket_dir = "{runtime_dir}/lazaret/sockets"
timeout = "20s"
auto_approve = ["true"]
[profiles.shell]
image = %q
env = { SECRET = "env:E2E_SECRET?" }
persistent_dirs = ["/root", "/etc"]
allow_hosts = ["api.example.com"]
volumes = [{ host = "{profile_dir}/cache", container = "/cache" }, { host = "{workspace_dir}/src", container = "/src" }]
`, data, "oci:"+os.Getenv("LAZARET_DEBIAN"))
}

// plainPasta is what plain podman does with pasta, its network since version 5,
// where the catalogue says what it does with slirp4netns: the machine's addresses
// are the sandbox's own there, and an address of the link leads to its loopback.
var plainPasta = map[string]string{
	"network-host": attacks.Holds, "network-host-udp": attacks.Holds, "network-host-mapped": attacks.Holds, "network-gateway": attacks.Succeeds,
}

// TestEndToEndAttacks tries the whole catalogue on a real sandbox, and on plain
// podman. Each attack must do as the catalogue says: be withstood here and
// succeed there, or else succeed where the protection is taken away.
func TestEndToEndAttacks(t *testing.T) {
	needE2E(t)
	s := newSandboxedIn(t, attackedConfig, func(ws string) { os.Mkdir(filepath.Join(ws, "src"), 0o755) }, "--platform", "linux/amd64")
	before := s.quiet()
	c := exec.Command(s.self, "doctor", "--attack", "--plain", "--json", "shell")
	c.Dir, c.Env = s.ws, s.env
	out, err := c.Output()
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	var lines []attackLine
	if err := json.Unmarshal(out, &lines); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]attackLine{}
	for _, l := range lines {
		got[l.ID] = l
	}
	all := loadAttacks(t)
	d, l, host := s.attacked(t)
	for _, a := range all {
		if plain, ok := plainPasta[a.ID]; ok && host.Uplink == "pasta" {
			a.Plain = plain
		}
		l, want := got[a.ID], verdictHeld
		switch {
		case !a.Runnable():
			continue
		case a.Known != "":
			want = verdictKnown
		}
		if l.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", a.ID, l.Verdict, l.Why, want)
		}
		if l.Plain != a.Plain {
			t.Errorf("%s: against plain podman it %s (%s), the catalogue says %s", a.ID, l.Plain, l.PlainIs, a.Plain)
		}
	}
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
	loosened(t, all, d, l, host)
}

// attacked is what a launch of the profile would begin with.
func (s *sandboxed) attacked(t *testing.T) (*deps, lockFile, launch.Host) {
	t.Helper()
	env := map[string]string{}
	for _, kv := range s.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	d := &deps{env: func(k string) string { return env[k] }, cwd: s.ws, home: env["HOME"]}
	l, err := d.openLock(trustOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := launch.Probe(l.file, "shell", launch.Env{Getenv: d.env, LookupEnv: os.LookupEnv, Workspace: s.ws, Lazaret: s.self})
	if err != nil {
		t.Fatal(err)
	}
	return d, l, host
}

// loosened tries what plain podman withstands too on a podman that is told not
// to: no attack is there that cannot succeed.
func loosened(t *testing.T, all []attacks.Attack, d *deps, l lockFile, host launch.Host) {
	kinds := map[string][]attacks.Attack{}
	for _, a := range all {
		if flags, ok := a.Loose(); ok && a.Runnable() {
			kinds[flags] = append(kinds[flags], a)
		}
	}
	if len(kinds) < 4 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	for flags, list := range kinds {
		if strings.Contains(flags, "slirp4netns") {
			host.Uplink = "slirp4netns" // which of podman's networks the attack is against
		}
		a, err := newArena(d, l.file, "shell", host)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlainEngine(t.Context(), a, host, l.file.Profiles["shell"], strings.Fields(strings.ReplaceAll(flags, "{ARENA}", a.dir))...)
		if err != nil {
			t.Fatal(err)
		}
		f := &fight{arena: a, engine: p, bar: (&deps{env: os.Getenv}).newProgress(os.Stderr), trials: map[string]trial{}}
		if err := f.run(context.WithoutCancel(t.Context()), slices.Clone(list)); err != nil {
			t.Fatalf("podman run %s: %v", flags, err)
		}
		for _, k := range list {
			if verdict, why := f.trials[k.ID].judge(k); verdict != verdictLost {
				t.Errorf("%s: with podman run %s it does not succeed: %s: %s", k.ID, flags, verdict, why)
			}
		}
		if err := a.remove(); err != nil {
			t.Error(err)
		}
	}
}

// TestEndToEndAttackClear: what other users of a sandbox left is removed too,
// and no link in it is followed.
func TestEndToEndAttackClear(t *testing.T) {
	needE2E(t)
	dir, person := filepath.Join(t.TempDir(), "left"), t.TempDir()
	if err := writeBelow(person, "file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	script := `mkdir -p "$1/theirs/deep" && ln -s "$2" "$1/theirs/link" && touch "$1/theirs/deep/file" && chown -R -h 1000:1000 "$1/theirs" && chmod 0 "$1/theirs/deep"`
	if out, err := exec.Command("podman", "unshare", "sh", "-c", script, "sh", dir, person).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := clearTree(t.Context(), dir, "", os.Getenv); err == nil {
		t.Error("it needs no namespace: this shows nothing")
	}
	if err := clearTree(t.Context(), dir, "podman", os.Getenv); err != nil || exists(dir) {
		t.Errorf("it is left: %v", err)
	}
	if !exists(filepath.Join(person, "file")) {
		t.Error("a link was followed")
	}
}
