package main

import (
	"archive/tar"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// hostileImage is an image that wants something of this machine, and what
// becomes of it. {VICTIM} stands for a directory of the person's that others may
// write to.
type hostileImage struct {
	name        string
	config      func(*v1.Config)
	annotations map[string]string
	layer       []tar.Header // a layer more
	text        string       // of each regular file in it
	persist     string       // a persistent directory of the profile

	lock   string // what "lazaret lock" refuses it with; "": it locks
	pins   string // what of it the lock shows
	launch string // what a launch is refused with; "": it starts; "podman": podman or the runtime says so
	script string // run in it by its shell; "": knock at each link of the layer
	says   string // what that prints

	plain string // what the same prints, or makes in the workspace, with plain podman; "": no more than here
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
}
func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func planted(name string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}
}

// marked is an entry with an extended attribute.
func marked(h tar.Header, name, value string) tar.Header {
	h.PAXRecords = map[string]string{"SCHILY.xattr." + name: value}
	return h
}

// covered is what lazaret covers in the workspace. Podman mounted where a link in
// the image led, so that the thing itself was open.
var covered = []string{"workspace/.git", "workspace/.vscode", "workspace/.idea", "workspace/lazaret.lock", "workspace/lazaret.toml"}

func hostileImages() []hostileImage {
	list := []hostileImage{
		{
			name: "config",
			config: func(c *v1.Config) {
				c.Entrypoint, c.Cmd = []string{"/bin/echo", "entrypoint"}, []string{"\x1b[2Jcmd"}
				c.User = "1000:1000"
				c.Volumes = map[string]struct{}{"/workspace/volume": {}, "/workspace/.hg/hooks": {}, "/run": {}, "/workspace/../etc": {}}
				c.WorkingDir = "/workspace/workdir"
				c.StopSignal = "SIGCONT"
				c.OnBuild = []string{"RUN touch /workspace/onbuild"}
				c.Healthcheck = &v1.HealthConfig{Test: []string{"CMD-SHELL", "touch /workspace/health"}, Interval: 1e6}
				c.ExposedPorts = map[string]struct{}{"22/tcp": {}, "1-65535/udp": {}}
				c.Shell = []string{"/bin/false"}
			},
			pins:   `entrypoint = \["/bin/echo", "entrypoint"\]`,
			script: "id -u; pwd; test -e /workspace/volume -o -e /workspace/.hg -o -e /workspace/workdir || echo clean",
			says:   `^0\n/workspace\nclean\n$`,
			plain:  `entrypoint sh -c|workspace/\.hg`,
		},
		{name: "user", config: func(c *v1.Config) { c.User = "evil\n\x1b]0;:root" }, script: "id -u", says: `^0\n$`, plain: "unable to find user"},
		{
			name: "environment",
			config: func(c *v1.Config) {
				c.Env = []string{"PATH=/workspace/bin:/evil:/bin", "LD_PRELOAD=/evil.so", "TERM=../../evil", "TERMINFO=/evil", "http_proxy=http://192.0.2.1", "GIT_DIR=/evil",
					"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=touch {VICTIM}/written", "container=evil", "LAZARET_PROFILE=evil",
					"CONTAINERS_CONF={VICTIM}", "XDG_RUNTIME_DIR={VICTIM}", "HOME={VICTIM}", "SECRET=evil", "NOTIFY_SOCKET={VICTIM}/s", "LISTEN_FDS=9", "_OCI_STARTPIPE=7",
					"STORAGE_OPTS=evil", "TMPDIR={VICTIM}", "GOTRACEBACK=crash"}
			},
			pins: `"LD_PRELOAD=/evil.so"`, script: "echo $SECRET", says: `^s3cret\n$`, plain: `(?m)^evil$`,
		},
		{name: "no environment", config: func(c *v1.Config) { c.Env = []string{"NOEQUALS", "=x", "A=\x1b[2J\nB=c"} }, script: "/bin/echo runs", launch: "podman", plain: "failed to parse"},
		{name: "annotations of gVisor", annotations: map[string]string{"dev.gvisor.flag.host-uds": "open"}, lock: `settings for the runtime.*dev\.gvisor\.flag\.host-uds|dev\.gvisor\.flag\.host-uds`, plain: "-"},
		{name: "annotations of crun", annotations: map[string]string{"run.oci.hooks.stdout": "{VICTIM}/written"}, lock: `run\.oci\.hooks\.stdout`, plain: "-"},
		{name: "annotations of podman", annotations: map[string]string{"io.podman.annotations.privileged": "TRUE"}, lock: `io\.podman\.annotations\.privileged`, plain: "-"},
		{name: "annotations of kubernetes", annotations: map[string]string{"io.kubernetes.cri.container-type": "container"}, lock: `io\.kubernetes\.cri\.container-type`, plain: "-"},
		{name: "annotations in capitals", annotations: map[string]string{" Dev.Gvisor.Spec.Mount.a.source": "{VICTIM}"}, lock: `Dev\.Gvisor`, plain: "-"},
		{
			name: "labels",
			config: func(c *v1.Config) {
				c.Labels = map[string]string{"io.containers.autoupdate": "registry", "PODMAN_SYSTEMD_UNIT": "default.target", "io.containers.capabilities": "CAP_SYS_ADMIN",
					"io.podman.annotations.privileged": "TRUE", "dev.gvisor.flag.host-uds": "open", "run": "podman run --privileged IMAGE", "lazaret": "run", "\x1b[2J": "\x1b]0;x"}
			},
			script: "grep CapEff /proc/self/status; echo runs", says: `runs\n$`,
		},
		{
			name: "devices", layer: []tar.Header{
				{Typeflag: tar.TypeBlock, Name: "disk", Mode: 0o666, Devmajor: 8}, {Typeflag: tar.TypeChar, Name: "mem", Mode: 0o666, Devmajor: 1, Devminor: 1},
				{Typeflag: tar.TypeChar, Name: "gone", Mode: 0o666}, {Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o666},
			},
			script: "for f in /disk /mem; do if test -e $f; then dd if=$f bs=1 count=1 >/dev/null 2>&1 && echo read $f; fi; done; echo done", says: `^done\n$`,
		},
		{
			name: "setuid and capabilities", text: "#!/bin/sh\n", layer: []tar.Header{
				planted("bin/su", 0o4755), planted("bin/sg", 0o2755),
				marked(planted("bin/cap", 0o755), "security.capability", "\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"),
				marked(planted("bin/ima", 0o755), "security.ima", "x"), marked(planted("bin/sel", 0o755), "security.selinux", "x"),
			},
			script: "echo runs", says: `^runs\n$`,
		},
		{
			name: "overlay's marks", persist: "/var", layer: []tar.Header{
				marked(folder("var/a/"), "trusted.overlay.opaque", "y"), marked(folder("var/b/"), "user.overlay.opaque", "y"),
				marked(folder("var/c/"), "trusted.overlay.redirect", "{VICTIM}"), marked(folder("var/d/"), "user.overlay.redirect", "/../../../..{VICTIM}"),
				marked(planted("var/e", 0o644), "user.overlay.metacopy", "x"), {Typeflag: tar.TypeChar, Name: "var/f", Mode: 0o666},
				planted("var/.wh.tmp", 0o644), planted("var/.wh..wh..opq", 0o644),
			},
			script: "ls -a /var/*; cat /var/*/canary 2>/dev/null; touch /var/d/canary; echo tried", says: `tried\n$`,
		},
		{name: "whiteouts of everything", layer: []tar.Header{planted(".wh..wh..opq", 0o644)}, script: "/bin/echo runs", says: `^runs\n$`},
		{name: "whiteouts that climb", layer: []tar.Header{planted("../.wh.victim", 0o644), planted("a/../../.wh.victim", 0o644), planted(".wh...", 0o644)}, script: "echo runs", launch: "image: .*pull", plain: "Error"},
		{name: "names that climb", layer: []tar.Header{planted("../../../..{VICTIM}/written", 0o644), planted("{VICTIM}/written", 0o644)}, script: "echo runs", says: `^runs\n$`},
		{name: "hard links out", layer: []tar.Header{{Typeflag: tar.TypeLink, Name: "stolen", Linkname: "../../../..{VICTIM}/canary"}}, script: "cat /stolen", launch: "image: .*pull", plain: "Error"},
		{name: "links, then files beneath them", text: "evil\n", layer: []tar.Header{link("to", "{VICTIM}"), planted("to/written", 0o644), link("up", "../../../../../../../../../../..{VICTIM}"), planted("up/written", 0o644)}, script: "echo runs", launch: "image: .*pull", plain: "Error"},
		{
			name: "users", text: "root:x:0:0:\x1b[2J:{VICTIM}:/bin/false\n:::::::\nroot\n" + strings.Repeat("x", 1<<20) + "\nevil:x:99999999999999999999:-1::/:\n0:x:1000:1000:::\n",
			layer: []tar.Header{planted("etc/passwd", 0o644), planted("etc/group", 0o644), planted("etc/shadow", 0o644), planted("etc/subuid", 0o644)}, script: "id -u", launch: "podman", plain: "unable to find user",
		},
		{name: "users by a pipe", layer: []tar.Header{{Typeflag: tar.TypeFifo, Name: "etc/passwd", Mode: 0o666}, {Typeflag: tar.TypeFifo, Name: "etc/group", Mode: 0o666}}, script: "echo runs", launch: "/etc/passwd, /etc/group", plain: "-"}, // it waits
		{name: "users by a directory", layer: []tar.Header{planted("etc/.wh.passwd", 0o644), folder("etc/passwd/"), folder("etc/hostname/")}, script: "echo runs", launch: "/etc/passwd", plain: "is a directory"},
		{name: "a terminal's description", text: strings.Repeat("\x1a\x01\xff\xff", 1000), layer: []tar.Header{planted("usr/share/terminfo/x/xterm", 0o644), planted("etc/terminfo/x/xterm", 0o644)}, script: "echo runs", says: `^runs\n$`},
		{name: "a deep tree", layer: deepTree(900), persist: "/deep", script: "echo runs", says: `^runs\n$`},
		{name: "programs", text: liar, layer: liars(), script: "echo runs", says: "trust me"},
	}
	for _, t := range append(covered, "workspace", "run", "run/.containerenv", "etc/hostname", "etc") {
		list = append(list, hostileImage{name: "a link at /" + t, layer: []tar.Header{link(t, "/elsewhere")},
			script: "(echo evil >>/" + t + "; rm -rf /" + t + "; mkdir -p /" + t + "/hooks) 2>/dev/null; echo tried", launch: "/" + t, plain: "-"})
	}
	var pipes, gone, out []tar.Header
	for _, t := range []string{"dev", "proc", "sys", "tmp"} {
		pipes = append(pipes, tar.Header{Typeflag: tar.TypeFifo, Name: t, Mode: 0o666})
		gone = append(gone, link(t, "../../../../../../../../..{VICTIM}"))
	}
	for _, t := range []string{"root", "cache", "etc/resolv.conf", "etc/hosts", "etc/mtab", "dev/null", "dev/console", "dev/pts", "run/lazaret"} {
		out = append(out, link(t, "{VICTIM}"))
	}
	return append(list,
		hostileImage{name: "pipes where the runtime mounts", layer: pipes, launch: "/dev, /proc, /sys, /tmp", plain: "-"},
		hostileImage{name: "links where the runtime mounts", layer: gone, launch: "/dev", plain: "-"},
		hostileImage{name: "links to the host elsewhere", layer: out, says: "tried", plain: "-"})
}

func deepTree(n int) (out []tar.Header) {
	for i := 1; i <= n; i++ {
		out = append(out, folder("deep/"+strings.Repeat("d/", i)))
	}
	return out
}

// liar is a shell, and every other program, that says what a harness would like
// to hear: to what lazaret's reads line by line, too.
const liar = `#!/bin/lazaret-guest sh
echo "$2 ready"
echo "held: trust me"
while IFS= read -r name; do printf 'held: trust me\n%s end 0\n' "$2"; done
`

func liars() (out []tar.Header) {
	for _, name := range strings.Fields("sh bash git tar grep cat ls id mount timeout readlink stat test od sed env dd cmp") {
		out = append(out, planted("bin/"+name, 0o755), planted("usr/bin/"+name, 0o755))
	}
	return out
}
