package launch

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"lazaret/internal/proc"
)

// fixedMachine is a machine of files.
func fixedMachine(files map[string]string) machine {
	m := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/sys/kernel/osrelease":         "6.1.0-18-amd64\n",
		"proc/sys/user/max_user_namespaces": "31000\n",
		"proc/filesystems":                  "nodev\toverlay\n",
		"etc/subuid":                        "other:1:65536\nu:100000:65536\n",
		"etc/subgid":                        "1000:100000:65536\n",
	} {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	env := map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": "/nowhere", "TERM": "xterm-kitty"}
	return machine{
		files: m, uid: 1000, user: "u", ws: "/ws", getenv: func(k string) string { return env[k] },
		output:  func(context.Context, ...string) (string, error) { return "", nil },
		version: func(context.Context) (string, error) { return "git version 2.39.5", nil },
		free:    func(string) (uint64, error) { return 100 << 30, nil },
	}
}

// TestExamineSays: what each kind of machine is told.
func TestExamineSays(t *testing.T) {
	refused := func(m *machine) {
		m.output = func(context.Context, ...string) (string, error) { return "", errors.New("Operation not permitted") }
	}
	for _, tc := range []struct {
		name    string
		files   map[string]string
		change  func(*machine)
		check   func(machine) []Finding
		verdict string
		found   string
		fix     string
	}{
		{"kernel", nil, nil, func(m machine) []Finding { return m.kernel(t.Context()) }, Good, "6.1.0", ""},
		{"old kernel", map[string]string{"proc/sys/kernel/osrelease": "5.4.0-generic"}, nil, func(m machine) []Finding { return m.kernel(t.Context()) }, Failing, "5.4.0", "newer kernel"},
		{"no user namespaces", map[string]string{"proc/sys/user/max_user_namespaces": "0"}, nil, func(m machine) []Finding { return m.namespaces(t.Context()) }, Failing, "none", "sysctl -w user.max"},
		{"Debian's switch", map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0"}, nil, func(m machine) []Finding { return m.namespaces(t.Context()) }, Failing, "only root", "unprivileged_userns_clone=1"},
		{"Ubuntu's AppArmor", map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, refused, func(m machine) []Finding { return m.namespaces(t.Context()) }, Failing, "Operation not permitted", "apparmor_restrict_unprivileged_userns=0"},
		{"AppArmor with a profile", map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, nil, func(m machine) []Finding { return m.namespaces(t.Context()) }, Lacking, "AppArmor", "apparmor"},
		{"no namespaces for another reason", nil, refused, func(m machine) []Finding { return m.namespaces(t.Context()) }, Failing, "not permitted", "switched off"},
		{"subordinate ids", nil, nil, func(m machine) []Finding { return m.subordinate(t.Context())[:1] }, Good, "65536", ""},
		{"of no use", map[string]string{"etc/subuid": "u:100000:1000\n"}, nil, func(m machine) []Finding { return m.subordinate(t.Context())[:1] }, Lacking, "1000", "usermod --add-subuids"},
		{"somebody else's", map[string]string{"etc/subuid": "uu:100000:65536\n"}, nil, func(m machine) []Finding { return m.subordinate(t.Context())[:1] }, Failing, "none for u", "usermod --add-subuids"},
		{"by number", nil, nil, func(m machine) []Finding { return m.subordinate(t.Context())[1:2] }, Good, "65536", ""},
		{"no runtime directory", nil, nil, func(m machine) []Finding { return m.runtimeDir(t.Context()) }, Failing, "XDG_RUNTIME_DIR", "0700"},
		{"crun and a mixture of cgroups", map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n"}, nil,
			func(m machine) []Finding { return m.ordinary(Tool{Path: "/usr/bin/crun"}, nil) }, Failing, "/usr/bin/crun, which starts nothing", "install runc"},
		{"runc and a mixture of cgroups", map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n"}, nil,
			func(m machine) []Finding { return m.ordinary(Tool{Path: "/usr/sbin/runc"}, nil) }, Good, "/usr/sbin/runc", ""},
		{"crun where version 2 has no controllers", map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "\n"}, nil,
			func(m machine) []Finding { return m.ordinary(Tool{Path: "/usr/bin/crun"}, nil) }, Good, "/usr/bin/crun", ""},
		{"cgroup v1", nil, nil, func(m machine) []Finding { return m.cgroups(t.Context()) }, Lacking, "v1 or hybrid", "cgroup v2"},
		{"cgroup v2", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory", "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers": "memory pids"}, nil,
			func(m machine) []Finding { return m.cgroups(t.Context()) }, Lacking, "memory, pids", ""},
		{"SELinux", map[string]string{"sys/fs/selinux/enforce": "1"}, nil, func(m machine) []Finding { return m.selinux(t.Context()) }, Good, "enforcing", ""},
		{"terminal", map[string]string{"usr/share/terminfo/x/xterm-kitty": ""}, nil, func(m machine) []Finding { return m.terminal(t.Context()) }, Good, "/usr/share/terminfo", ""},
		{"terminal in the other layout", map[string]string{"home/u/.terminfo/78/xterm-kitty": ""}, nil, func(m machine) []Finding { return m.terminal(t.Context()) }, Good, "/home/u", ""},
		{"unknown terminal", nil, nil, func(m machine) []Finding { return m.terminal(t.Context()) }, Lacking, "xterm-kitty", "ncurses-term"},
		{"full disk", nil, func(m *machine) { m.free = func(string) (uint64, error) { return 5 << 20, nil } }, func(m machine) []Finding { return m.disk(t.Context())[:1] }, Lacking, "5 MiB", "podman image prune"},
		{"room for a launch", nil, func(m *machine) { m.free = func(string) (uint64, error) { return runRoom, nil } }, func(m machine) []Finding { return m.disk(t.Context())[1:] }, Lacking, "KiB", "du -xh"},
		{"no room for a launch", nil, func(m *machine) { m.free = func(string) (uint64, error) { return runRoom - 1, nil } }, func(m machine) []Finding { return m.disk(t.Context())[1:] }, Failing, "below " + bytesText(runRoom), "du -xh"},
		{"linger", map[string]string{"run/systemd/system/x": "", "var/lib/systemd/linger/u": ""}, nil, func(m machine) []Finding { return m.linger(t.Context()) }, Good, "on", ""},
		{"no linger", map[string]string{"run/systemd/system/x": ""}, nil, func(m machine) []Finding { return m.linger(t.Context()) }, Lacking, "off", "enable-linger u"},
	} {
		m := fixedMachine(tc.files)
		if tc.change != nil {
			tc.change(&m)
		}
		if strings.Contains(tc.name, "AppArmor") || strings.Contains(tc.name, "another reason") {
			if _, err := exec.LookPath("nsenter"); err != nil {
				t.Fatal(err)
			}
		}
		got := tc.check(m)
		if len(got) != 1 || got[0].Verdict != tc.verdict || !strings.Contains(got[0].Found, tc.found) || !strings.Contains(got[0].Fix, tc.fix) {
			t.Errorf("%s: got %+v", tc.name, got)
		}
		if tc.verdict == Failing && len(got) > 0 && got[0].Fix == "" {
			t.Errorf("%s: it does not say what to do", tc.name)
		}
	}
	root := fixedMachine(nil)
	root.uid = 0
	if got := root.examine(t.Context()); len(got) != 1 || got[0].ID != "account" || got[0].Verdict != Failing {
		t.Errorf("root is told %+v", got)
	}
}

// TestSlowEnd: podman 4 does not take its own run root back where that has more
// than 50 bytes.
func TestSlowEnd(t *testing.T) {
	for _, tc := range []struct {
		length  int
		version string
		slow    bool
	}{{39, "4.3.1", false}, {40, "4.3.1", true}, {40, "4.9.4-dev", true}, {40, "5.4.2", false}} {
		dir := "/" + strings.Repeat("r", tc.length-1)
		said := slowEnd(dir, tc.version)
		if (said != "") != tc.slow || tc.slow && !strings.HasSuffix(said, "has 40 bytes, of at most 39") {
			t.Errorf("podman %s, %d bytes: %q", tc.version, tc.length, said)
		}
	}
}

// TestMuteTool: a podman that takes too long is not one to be replaced.
func TestMuteTool(t *testing.T) {
	var lack *LackError
	if err := mute("podman", "/usr/bin/podman", &exec.ExitError{}); !errors.As(err, &lack) || !strings.Contains(lack.Hint(), "install a podman") {
		t.Errorf("got %v", err)
	}
	if err := mute("podman", "/usr/bin/podman", &proc.LateError{Program: "podman", Err: &exec.ExitError{}}); errors.As(err, &lack) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}

// TestLackPoints: a refusal for what the machine lacks names the check that
// says more.
func TestLackPoints(t *testing.T) {
	_, err := lookPath("podman", "/nowhere", "/ws")
	var lack *LackError
	var refused *RefusedError
	if !errors.As(err, &lack) || lack.Check != "podman" || !errors.As(err, &refused) || !strings.Contains(lack.Hint(), `(podman in what "lazaret doctor" prints)`) {
		t.Errorf("got %v", err)
	}
	ids := map[string]bool{}
	for _, f := range fixedMachine(nil).examine(t.Context()) {
		ids[f.ID] = true
	}
	for _, check := range []string{"account", "runtime-dir", "podman", "runsc", "runc", "userns", "uplink", "git"} {
		if !ids[check] && check != "uplink" { // without podman nobody knows which
			t.Errorf("doctor has no check %q", check)
		}
	}
}
