package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (m machine) runtimeDir(context.Context) []Finding {
	const id, what = "runtime-dir", "XDG_RUNTIME_DIR"
	dir, err := runtimeDir(m.getenv("XDG_RUNTIME_DIR"), m.uid)
	if err != nil {
		return failing(id, what, fixOf(err), "%v", err)
	}
	// A socket there has a run's id and a name in its path.
	if n := len(filepath.Join(dir, "lazaret", "0123456789ab", controlSocket)); n > socketPathMax {
		return failing(id, what, "set it to a shorter path", "%s: sockets below it would have %d bytes in their path, of at most %d", dir, n, socketPathMax)
	}
	return ok(id, what, "%s", dir)
}

// fixOf is the way out that an error knows.
func fixOf(err error) string {
	var r *RefusedError
	if errors.As(err, &r) {
		return r.Do
	}
	return ""
}

func (m machine) podman(ctx context.Context) []Finding {
	const id = "podman"
	what := fmt.Sprintf("podman %d.%d or newer", minPodmanMajor, minPodmanMinor)
	t, err := findTool("podman", m.path, m.ws, map[string]string{}, checkPodman)
	if err != nil {
		return failing(id, what, fixOf(err), "%v", err)
	}
	out := ok(id, what, "%s at %s", t.Version, t.Path)
	if s := slowEnd(m.getenv("XDG_RUNTIME_DIR"), t.Version); s != "" {
		out = lacking(id, what, "set it to a shorter path, or install podman 5", "%s", s)
	}
	info, err := m.output(ctx, t.Path, "info", "--format", "{{.Store.GraphDriverName}} {{.Store.GraphRoot}}")
	driver, root, _ := strings.Cut(strings.TrimSpace(info), " ")
	switch {
	case err != nil:
		return append(out, failing("storage", "podman's storage", `see what "podman info" says; "podman system migrate" after a change of subordinate ids`, "%v", err)...)
	case driver != "overlay":
		return append(out, lacking("storage", "podman's storage", "it was chosen at podman's first run; \"podman system reset\" removes all images and chooses anew",
			"driver %s in %s: images take long to start from and much space", driver, root)...)
	}
	return append(out, ok("storage", "podman's storage", "driver %s in %s", driver, root)...)
}

func (m machine) runsc(context.Context) []Finding {
	const id = "runsc"
	what := fmt.Sprintf("gVisor's runsc, release %d or newer", minRunsc)
	t, err := findTool("runsc", m.path, m.ws, map[string]string{}, checkRunsc)
	if err != nil {
		return failing(id, what, fixOf(err), "%v", err)
	}
	return ok(id, what, "%s at %s", t.Version, t.Path)
}

func (m machine) router(context.Context) []Finding {
	out := m.ordinary(routerRuntime(m.ws))
	pod, err := findTool("podman", m.path, m.ws, map[string]string{}, checkPodman)
	if err != nil {
		return out // said already
	}
	const uplinkWhat = "podman's rootless network"
	kind, err := uplinkKind(pod, m.ws)
	if err != nil {
		return append(out, failing("uplink", uplinkWhat, fixOf(err), "%v", err)...)
	}
	return append(out, ok("uplink", uplinkWhat, "%s", kind)...)
}

// ordinary judges the runtime of the router.
func (m machine) ordinary(t Tool, err error) []Finding {
	const id, what = "runc", "runc or crun, for the network sidecar"
	switch {
	case err != nil:
		return failing(id, what, fixOf(err), "not installed")
	case filepath.Base(t.Path) == "crun" && m.read("/sys/fs/cgroup/unified/cgroup.controllers") != "":
		return failing(id, what, `install runc, or boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)`,
			"%s, which starts nothing where version 1 and version 2 of cgroups both have controllers", t.Path)
	}
	return ok(id, what, "%s", t.Path)
}

// usable opens a device, which is the only way to know.
func usable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

var gitVersion = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

// gitLeast is the oldest git that knows what lazaret asks of it.
const gitLeast = 2_36

func (m machine) git(ctx context.Context) []Finding {
	const id, what = "git", "git 2.36 or newer, where the workspace is a repository"
	text, err := m.version(ctx)
	if err != nil {
		return lacking(id, what, `install it: "apt-get install git"`, "%v", err)
	}
	v := gitVersion.FindStringSubmatch(text)
	if v == nil {
		return lacking(id, what, "", "git does not say its version")
	}
	a, _ := strconv.Atoi(v[1])
	b, _ := strconv.Atoi(v[2])
	if a*100+b < gitLeast {
		return lacking(id, what, "install a newer git", "%s", text)
	}
	return ok(id, what, "%s", strings.TrimPrefix(text, "git version "))
}

func (m machine) terminal(context.Context) []Finding {
	const id, what = "terminfo", "a description of your terminal"
	t := m.getenv("TERM")
	if t == "" {
		return ok(id, what, "TERM is not set, so none is needed")
	}
	if strings.ContainsAny(t, "/\x00") {
		return lacking(id, what, "set TERM to the name of your terminal", "TERM is no name of a terminal")
	}
	dirs := []string{m.getenv("TERMINFO"), filepath.Join(m.getenv("HOME"), ".terminfo")}
	dirs = append(dirs, strings.Split(m.getenv("TERMINFO_DIRS"), ":")...)
	for _, dir := range append(dirs, "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo") {
		for _, sub := range []string{t[:1], fmt.Sprintf("%x", t[0])} {
			if path := filepath.Join(dir, sub, t); filepath.IsAbs(path) && m.exists(path) {
				return ok(id, what, "%s in %s", t, dir)
			}
		}
	}
	return lacking(id, what, `"apt-get install ncurses-term", or your terminal's own package`, "none for %s: the sandbox may draw wrongly", t)
}

// Space below which things begin to fail, in bytes.
const (
	diskLeast    = 2 << 30
	runtimeLeast = 16 << 20
)

func (m machine) disk(context.Context) []Finding {
	var out []Finding
	home := m.getenv("HOME")
	for _, d := range []struct {
		id, what, dir, fix string
		least, refused     uint64 // below them things begin to fail, and launch refuses
	}{
		{"disk", "space for images and state", filepath.Join(filepath.Dir(xdgDir(m.getenv("XDG_DATA_HOME"), home, ".local/share")), "containers"), `"podman image prune" and "podman system df" help`, diskLeast, 0},
		{"runtime-space", "space for sockets and records", m.getenv("XDG_RUNTIME_DIR"), "see what fills it: \"du -xh\" there", runtimeLeast, runRoom},
	} {
		if !filepath.IsAbs(d.dir) {
			continue // said already
		}
		free, err := m.free(dirOf(d.dir))
		switch {
		case err != nil:
			out = append(out, lacking(d.id, d.what, "", "%v", err)...)
		case free < d.refused:
			out = append(out, failing(d.id, d.what, d.fix, "%s free in %s, and launch refuses below %s", bytesText(free), dirOf(d.dir), bytesText(d.refused))...)
		case free < d.least:
			out = append(out, lacking(d.id, d.what, d.fix, "%s free in %s", bytesText(free), dirOf(d.dir))...)
		default:
			out = append(out, ok(d.id, d.what, "%s free", bytesText(free))...)
		}
	}
	return out
}

func bytesText(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func freeBytes(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// EndsAtLogout tells whether systemd ends what of this person is running when
// they log out, and if so the command that changes that.
func EndsAtLogout(user string) (fix string) {
	m := machine{files: os.DirFS("/"), user: user}
	return m.linger(context.Background())[0].Fix
}

func (m machine) linger(context.Context) []Finding {
	const id, what = "linger", "sandboxes that outlive a login"
	switch {
	case !m.exists("/run/systemd/system"):
		return ok(id, what, "there is no systemd that would end them")
	case m.exists("/var/lib/systemd/linger/" + m.user):
		return ok(id, what, "lingering is on")
	}
	return lacking(id, what, "loginctl enable-linger "+m.user, "lingering is off: systemd ends them when you log out")
}
