package launch

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lazaret/gitshadow"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

// ugly is a directory name with everything that separates something somewhere.
const ugly = "wörk dir \"q\" 'a' :,=\\ $x"

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// fixedResolver pins every reference to the same image.
type fixedResolver struct{}

func (fixedResolver) Resolve(_ context.Context, ref string, _ []string) (lock.Image, error) {
	p := lock.PlatformImage{Manifest: digest, Config: digest, Size: 1, Entrypoint: []string{"/entry"}, Command: []string{"run"}}
	return lock.Image{Ref: ref, Platforms: map[string]lock.PlatformImage{"linux-amd64": p}}, nil
}

// locked is the lock of a config with one platform.
func locked(t *testing.T, text string) *lock.File {
	t.Helper()
	c, err := config.Load([]config.Layer{{Kind: config.Workspace, Name: "lazaret.toml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := lock.Build(t.Context(), lock.Request{
		Config: c, Inputs: lock.Inputs{Platforms: []string{"linux/amd64"}, Workspace: &lock.Input{Path: lock.WorkspacePath, SHA256: strings.Repeat("a", 64)}}, Helpers: ownHelpers(), Resolver: fixedResolver{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ownHelpers() lock.Helpers {
	return lock.Helpers{
		Sidecar:  map[string]lock.Sidecar{"linux-amd64": {Binary: digest, Layer: digest, Config: digest, Manifest: digest, Size: 1}},
		Escalate: map[string]lock.Binary{"linux-amd64": {Binary: digest}},
	}
}

const base = `
[storage]
data_root = "~/state"
[network]
default_allow = []
default_deny = []
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.my_agent]
image = "registry.example/team/image:1"
`

// fixedHost is a host without a clock, a uid or a path of this machine.
func fixedHost() Host {
	ws := "/home/u/" + ugly
	return Host{
		UID: 1000, GID: 1000, Home: "/home/u", RuntimeDir: "/run/user/1000", CacheDir: "/home/u/.cache/lazaret",
		Workspace: ws, DataRoot: "/home/u/state", ProfileDir: "/home/u/state/my_agent", Platform: "linux/amd64", Lazaret: "/usr/bin/lazaret",
		Podman: Tool{"/usr/bin/podman", "4.3.1"}, Runsc: Tool{"/usr/bin/runsc", "release-20260905.0"},
		TermEnv: map[string]string{"TERM": "xterm"},
		Environ: []string{"HOME=/home/u"},
		Secrets: map[string]string{"HOST_KEY": "s3cret"},
		Sources: map[string]Source{
			"/workspace":              {Path: ws, Exists: true, Dir: true},
			"/workspace/lazaret.lock": {Path: ws + "/lazaret.lock", Exists: true},
			"/workspace/lazaret.toml": {Path: ws + "/lazaret.toml", Exists: true},
			"/data, \"x\":y":          {Path: "/home/u/a:b,c", Exists: true, Dir: true},
			"/cache":                  {Path: "/home/u/state/my_agent/cache", Dir: true},
		},
		Masked: map[string]fs.FileMode{"/workspace/.git": fs.ModeDir},
		Git: GitHost{
			Program: "/usr/bin/git",
			Person:  gitshadow.Person{Name: "U \"u\"", Email: "u@example.org"},
			Repo: gitshadow.Repo{
				Workspace: ws, Kind: gitshadow.Dir, GitDir: ws + "/.git", CommonDir: ws + "/.git", ObjectFormat: "sha1", RefFormat: "files",
				Head: "refs/heads/main", HeadID: strings.Repeat("1", 40), HooksPath: ".husky/_",
				Nested: []gitshadow.Repo{{
					Workspace: ws + "/vendor/lib", Path: "vendor/lib", Kind: gitshadow.Submodule, GitFile: true, Name: "lib",
					GitDir: ws + "/.git/modules/lib", CommonDir: ws + "/.git/modules/lib", ObjectFormat: "sha1", RefFormat: "files",
					Detached: true, HeadID: strings.Repeat("2", 40),
				}, {Workspace: ws + "/odd", Path: "odd", GitFile: true}},
			},
		},
	}
}

func options() Options {
	return Options{ID: "0123456789ab", Started: time.Unix(0, 0), Helpers: ownHelpers()}
}

func TestPlanText(t *testing.T) {
	f := locked(t, base+`
env = { KEY = "env:HOST_KEY", GONE = "env:UNSET?", LITERAL = "a 'b' \"c\"\nd" }
volumes = [
  { host = "/home/u/a:b,c", container = "/data, \"x\":y" },
  { host = "{profile_dir}/cache", container = "/cache" },
]
command = ["agent", "--flag", "a b"]
memory = "4g"
`)
	h := fixedHost()
	h.SELinux = true
	plan, err := Resolve(f, "my_agent", h, options())
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Text()
	if strings.Contains(got, "s3cret") {
		t.Error("the plan shows a secret")
	}
	golden := "testdata/plan.golden"
	if os.Getenv("LAZARET_UPDATE") == "1" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the plan differs from %s; LAZARET_UPDATE=1 rewrites it:\n%s", golden, got)
	}
}

func TestCommandIsAlwaysWhole(t *testing.T) {
	for _, tc := range []struct {
		config string
		args   []string
		want   string
	}{
		{"", nil, "/entry run"},
		{`command = ["agent"]`, nil, "agent"},
		{`command = ["agent"]`, []string{"sh", "-c", "x"}, "sh -c x"},
	} {
		o := options()
		o.Command = tc.args
		plan, err := Resolve(locked(t, base+tc.config), "my_agent", fixedHost(), o)
		if err != nil {
			t.Fatal(err)
		}
		sb := plan.Steps[len(plan.Steps)-1].Op.(Sandbox)
		if got := strings.Join(sb.Run.Command, " "); got != tc.want {
			t.Errorf("%q %v: runs %q, want %q", tc.config, tc.args, got, tc.want)
		}
	}
}

func TestSandboxComesLastAndNeedsEverything(t *testing.T) {
	plan, err := Resolve(locked(t, base), "my_agent", fixedHost(), options())
	if err != nil {
		t.Fatal(err)
	}
	last := plan.Steps[len(plan.Steps)-1]
	if last.Name != "sandbox" || len(last.Needs) != len(plan.Steps)-1 {
		t.Errorf("last step %s needs %d of %d", last.Name, len(last.Needs), len(plan.Steps)-1)
	}
}

func TestResolveRefuses(t *testing.T) {
	other := fixedHost()
	other.Platform = "linux/arm64"
	deep := fixedHost()
	deep.RuntimeDir = "/run/" + strings.Repeat("d", 100)
	foreign := options()
	foreign.Helpers.Sidecar = map[string]lock.Sidecar{"linux-amd64": {Binary: "sha256:" + strings.Repeat("b", 64), Layer: digest, Config: digest, Manifest: digest, Size: 1}}
	for _, tc := range []struct {
		name, config, want string
		host               Host
		opts               Options
	}{
		{"another platform", "", "this machine is linux/arm64", other, options()},
		{"memory that persists", `persistent_dirs = ["/run"]`, "/run is memory in every sandbox", fixedHost(), options()},
		{"a set-up for nothing", `setup = ["true"]`, "nothing of what it does would be kept", fixedHost(), options()},
		{"a socket path too long", "", "more than the 107", deep, options()},
		{"other helpers", `allow_hosts = ["x.example"]`, "sha256:b", fixedHost(), foreign},
	} {
		if _, err := Resolve(locked(t, base+tc.config), "my_agent", tc.host, tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want …%s…", tc.name, err, tc.want)
		}
	}
}

// A lock that says what no config can say is not a lock lazaret made.
func TestResolveRefusesATamperedLock(t *testing.T) {
	for name, tamper := range map[string]func(*lock.Profile){
		"runtime":      func(p *lock.Profile) { p.Runtime = []string{"crun"} },
		"runtime flag": func(p *lock.Profile) { p.Runtime = []string{"runsc", "network=host"} },
		"debug log":    func(p *lock.Profile) { p.Runtime = []string{"runsc", "debug-log=/home/u/.bashrc"} },
		"capability":   func(p *lock.Profile) { p.Capabilities = append(p.Capabilities, "SYS_ADMIN") },
		"git mask":     func(p *lock.Profile) { delete(p.Mounts, "/workspace/.git") },
		"lock bind":    func(p *lock.Profile) { delete(p.Mounts, "/workspace/lazaret.lock") },
		"toml bind": func(p *lock.Profile) {
			p.Mounts["/workspace/lazaret.toml"] = lock.Mount{Kind: "bind", From: "{workspace_dir}/lazaret.toml", Mode: "rw"}
		},
		"mask":         func(p *lock.Profile) { delete(p.Mounts, "/workspace/.vscode") },
		"denied range": func(p *lock.Profile) { p.Network.AlwaysDeny = p.Network.AlwaysDeny[1:] },
		"home": func(p *lock.Profile) {
			p.Mounts["/x"] = lock.Mount{Kind: "bind", From: "~/.config/lazaret", Mode: "rw"}
		},
	} {
		f := locked(t, base)
		p := f.Profiles["my_agent"]
		tamper(&p)
		f.Profiles["my_agent"] = p
		if _, err := Resolve(f, "my_agent", fixedHost(), options()); err == nil || !strings.Contains(err.Error(), "checking the lock") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPullIsByDigest(t *testing.T) {
	for ref, want := range map[string]string{
		"docker.io/library/debian:13":                     "pull --quiet docker://docker.io/library/debian@" + digest,
		"registry.example:5000/team/x:1@" + digest:        "pull --quiet docker://registry.example:5000/team/x@" + digest,
		"127.0.0.1:5000/x":                                "pull --quiet --tls-verify=false docker://127.0.0.1:5000/x@" + digest,
		"localhost:5000/x:y":                              "pull --quiet --tls-verify=false docker://localhost:5000/x@" + digest,
		"[::1]:5000/x":                                    "pull --quiet --tls-verify=false docker://[::1]:5000/x@" + digest,
		"10.0.0.1:5000/x":                                 "pull --quiet docker://10.0.0.1:5000/x@" + digest,
		"127.0.0.1.evil.example/x":                        "pull --quiet docker://127.0.0.1.evil.example/x@" + digest,
		"localhost.evil.example:5000/x@sha256:0123456789": "pull --quiet docker://localhost.evil.example:5000/x@" + digest,
	} {
		o := Image{Engine: podman.Engine{Podman: "podman", Runsc: "runsc"}, Ref: ref, Pinned: lock.PlatformImage{Manifest: digest, Config: digest}}
		if got := strings.Join(o.pullArgv()[4:], " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", ref, got, want)
		}
	}
}

func TestVerifyImage(t *testing.T) {
	o := Image{Profile: "p", Platform: "linux/amd64", Pinned: lock.PlatformImage{Config: digest}}
	good := inspected{ID: strings.TrimPrefix(digest, "sha256:"), Os: "linux", Architecture: "amd64"}
	if err := o.verify(good); err != nil {
		t.Fatal(err)
	}
	id, arch, notes := good, good, good
	id.ID = strings.Repeat("b", 64)
	arch.Architecture = "arm64"
	notes.Annotations = map[string]string{"dev.gvisor.flag.host-uds": "open"}
	for want, img := range map[string]inspected{"IMAGE ID MISMATCH": id, "linux/arm64": arch, "settings for the runtime": notes} {
		if err := o.verify(img); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

func TestShownIsReadBackByAShell(t *testing.T) {
	for _, arg := range []string{"", "plain", "a b", `q"'\`, "new\nline", "\x1b]0;title\a", "bidi\u202etxt", "\xff\xfe", "zero\u200bwidth", "no\u3164shape\ufe0f", "$x `y`", "é"} {
		text := shown(arg)
		if config.Show(text) != text {
			t.Errorf("%q is shown as %q", arg, text)
		}
		out, err := exec.Command("bash", "-c", "printf %s "+text).Output()
		if err != nil || string(out) != arg {
			t.Errorf("%q is shown as %s, which bash reads as %q (%v)", arg, text, out, err)
		}
	}
}

func TestPlanTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	h := fixedHost()
	h.RuntimeDir, h.CacheDir, h.Workspace, h.DataRoot = dir, dir, dir, dir
	if _, err := Resolve(locked(t, base), "my_agent", h, options()); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("made %v", left)
	}
}
