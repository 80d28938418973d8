package podman

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

func TestMountArg(t *testing.T) {
	for _, tc := range []struct {
		m    Mount
		want []string
	}{
		{Mount{Kind: "bind", Source: "/a", Target: "/b"}, []string{"type=bind", "src=/a", "dst=/b"}},
		{Mount{Kind: "bind", Source: "/a", Target: "/b", ReadOnly: true, Relabel: "Z"}, []string{"type=bind", "src=/a", "dst=/b", "ro=true", "relabel=private"}},
		{Mount{Kind: "tmpfs", Target: "/t", Size: "16m"}, []string{"type=tmpfs", "dst=/t", "tmpfs-size=16m", "tmpfs-mode=0755"}},
		{Mount{Kind: "bind", Source: "/a,ro=false", Target: "/\"b\",type=x\ny:z"}, []string{"type=bind", "src=/a,ro=false", "dst=/\"b\",type=x\ny:z"}},
	} {
		got, err := csv.NewReader(strings.NewReader(tc.m.Arg())).Read()
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%+v: podman reads %q (%v), want %q", tc.m, got, err, tc.want)
		}
	}
}

// With a profile's or a repository's XDG_CONFIG_HOME, CONTAINERS_CONF, PATH or
// TMPDIR, podman runs or writes what those say.
func TestEnvironIsFixed(t *testing.T) {
	person := map[string]string{
		"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1", "PATH": "/ws/bin:/bin", "CONTAINERS_CONF": "/ws/evil.conf",
		"CONTAINERS_CONF_OVERRIDE": "/ws/evil.conf", "CONTAINERS_STORAGE_CONF": "/ws/s.conf", "CONTAINER_HOST": "tcp://evil",
		"LD_PRELOAD": "/ws/evil.so", "HTTPS_PROXY": "http://u:p@proxy", "TMPDIR": "/ws/tmp", "NOTIFY_SOCKET": "/ws/sock",
	}
	env := Environ(func(k string) string { return person[k] }, "/run/ours.conf")
	want := []string{
		"HOME=/home/u", "XDG_RUNTIME_DIR=/run/user/1", "PATH=" + SearchPath,
		"CONTAINERS_CONF=/run/ours.conf", "PODMAN_IGNORE_CGROUPSV1_WARNING=1", "GOGC=400",
	}
	if !slices.Equal(env, want) {
		t.Errorf("got %q, want %q", env, want)
	}
	inside := InNamespace(env, 1000, 100)
	if len(env) != len(want) || !slices.Contains(inside, "_CONTAINERS_USERNS_CONFIGURED=done") || !slices.Contains(inside, "_CONTAINERS_ROOTLESS_GID=100") {
		t.Errorf("inside: %q", inside)
	}
}

func TestRunLeavesNothingToDefaults(t *testing.T) {
	argv := Engine{Podman: "/p", Runsc: "/r", RuntimeFlags: []string{"ignore-cgroups"}}.Run(Run{
		Name: "n", Image: "sha256:x", Workdir: "/workspace", Command: []string{"-c", "--privileged"}, TTY: true, Capabilities: []string{"KILL"},
	})
	for _, flag := range []string{
		"--pull=never", "--network=none", "--no-hosts", "--http-proxy=false", "--image-volume=ignore", "--no-healthcheck",
		"--systemd=false", "--stop-signal=KILL", "--label=io.containers.autoupdate=disabled", "--user=0:0", "--entrypoint=", "--cap-drop=all", "--detach-keys=",
	} {
		if !slices.Contains(argv, flag) {
			t.Errorf("%s is missing", flag)
		}
	}
	// The agent's command cannot become podman's option.
	end := slices.Index(argv, "--")
	if end < 0 || !slices.Equal(argv[end:], []string{"--", "sha256:x", "-c", "--privileged"}) {
		t.Errorf("got %q", argv)
	}
	if want := []string{"/p", "--default-mounts-file=/dev/null", "--runtime", "/r", "--runtime-flag", "ignore-cgroups", "run"}; !slices.Equal(argv[:7], want) {
		t.Errorf("got %q", argv[:7])
	}
}
