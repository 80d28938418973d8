package launch

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"lazaret/launch/podman"
)

func (m machine) account(context.Context) []Finding {
	const what = "an ordinary user"
	if m.uid == 0 {
		return failing("account", what, "run lazaret as an ordinary user with entries in /etc/subuid and /etc/subgid", "root")
	}
	return ok("account", what, "%s, uid %d", m.user, m.uid)
}

// Kernels: openat2 and pidfds came with 5.6, which is the least; overlays in a
// user namespace with 5.11.
const (
	leastKernel   = 5_06
	overlayKernel = 5_11
)

func (m machine) kernel(context.Context) []Finding {
	const what = "Linux 5.6 or newer"
	release := m.read("/proc/sys/kernel/osrelease")
	n, known := kernelNumber(release)
	switch {
	case !known:
		return lacking("kernel", what, "", "%q, which says no version", release)
	case n < leastKernel:
		return failing("kernel", what, "use a newer kernel", "%s", release)
	}
	return ok("kernel", what, "%s", release)
}

// kernelNumber gives 511 for 5.11.3-anything.
func kernelNumber(release string) (int, bool) {
	major, rest, _ := strings.Cut(release, ".")
	minor := leadingDigits(rest)
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return a*100 + b, err1 == nil && err2 == nil
}

// namespaces: whether this user may make one is best asked by making one.
func (m machine) namespaces(ctx context.Context) []Finding {
	const id, what = "userns", "unprivileged user namespaces"
	if m.read("/proc/sys/user/max_user_namespaces") == "0" {
		return failing(id, what, "sysctl -w user.max_user_namespaces=28633, and keep it in /etc/sysctl.d", "none may be made")
	}
	if m.read("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return failing(id, what, "sysctl -w kernel.unprivileged_userns_clone=1, and keep it in /etc/sysctl.d", "only root may make them")
	}
	restricted := m.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"
	unshare, found := m.look("unshare", podman.SearchPath)
	_, found2 := m.look("nsenter", podman.SearchPath)
	if !found || !found2 {
		return failing(id, what, `install it: "apt-get install util-linux"`, "unshare or nsenter is not installed")
	}
	if _, err := m.output(ctx, unshare, "--user", "--map-root-user", "--mount", "true"); err != nil {
		fix := "see whether user namespaces are switched off on this machine, or in this container"
		if restricted {
			fix = "AppArmor keeps programs without a profile from using them: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give podman, unshare and runsc a profile with \"userns,\""
		}
		return failing(id, what, fix, "making one fails: %v", err)
	}
	if restricted {
		return lacking(id, what, "if podman fails: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", "can be made, but AppArmor restricts programs without a profile")
	}
	return ok(id, what, "can be made")
}

// subordinateLeast is how many subordinate ids an image with users needs.
const subordinateLeast = 65536

func (m machine) subordinate(context.Context) []Finding {
	const what = "subordinate ids"
	var out []Finding
	for _, kind := range []string{"subuid", "subgid"} {
		n := m.idsOf("/etc/" + kind)
		switch {
		case n == 0:
			out = append(out, failing(kind, what, fmt.Sprintf("usermod --add-%ss 100000-165535 %s", kind, m.user), "/etc/%s has none for %s", kind, m.user)...)
		case n < subordinateLeast:
			out = append(out, lacking(kind, what, fmt.Sprintf("usermod --add-%ss 100000-165535 %s", kind, m.user), "%d: some images need %d", n, subordinateLeast)...)
		default:
			out = append(out, ok(kind, what, "%d", n)...)
		}
	}
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, found := m.look(tool, podman.SearchPath); !found {
			out = append(out, failing(tool, "what maps subordinate ids", `install it: "apt-get install uidmap" (shadow-utils elsewhere)`, "not installed")...)
		}
	}
	return out
}

// idsOf adds up the ranges of this user in /etc/subuid or /etc/subgid.
func (m machine) idsOf(file string) (n uint64) {
	for line := range strings.Lines(m.read(file)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 3 && (f[0] == m.user || f[0] == strconv.Itoa(m.uid)) {
			count, err := strconv.ParseUint(f[2], 10, 32)
			if err == nil {
				n += count
			}
		}
	}
	return n
}

func (m machine) devices(context.Context) []Finding {
	var out []Finding
	for _, d := range []struct{ path, what, fix string }{
		{"/dev/net/tun", "/dev/net/tun, for a network", "modprobe tun; chmod 0666 /dev/net/tun"},
	} {
		switch err := usable(d.path); {
		case !m.exists(d.path):
			out = append(out, failing("tun", d.what, d.fix, "not there")...)
		case err != nil:
			out = append(out, failing("tun", d.what, d.fix, "%v", err)...)
		default:
			out = append(out, ok("tun", d.what, "can be opened")...)
		}
	}
	return out
}

// overlay asks for one, as launch would make it.
func (m machine) overlay(ctx context.Context) []Finding {
	const id, what = "overlay", "overlays, for persistent directories"
	n, _ := kernelNumber(m.read("/proc/sys/kernel/osrelease"))
	native := n >= overlayKernel && strings.Contains(m.read("/proc/filesystems"), "\toverlay")
	if native {
		unshare, found := m.look("unshare", podman.SearchPath)
		_, err := m.output(ctx, unshare, "--user", "--map-root-user", "--mount", "sh", "-c",
			"mount -t tmpfs none /tmp && cd /tmp && mkdir l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w,userxattr none m")
		native = found && err == nil
	}
	_, fuse := m.look("fuse-overlayfs", podman.SearchPath)
	device := usable("/dev/fuse") == nil
	switch {
	case native:
		return ok(id, what, "the kernel's own")
	case fuse && device:
		return lacking(id, what, "a kernel from 5.11 on does it two to three times faster", "fuse-overlayfs only")
	case fuse:
		return failing(id, what, "modprobe fuse; chmod 0666 /dev/fuse", "neither the kernel's own nor /dev/fuse can be used")
	}
	return failing(id, what, `"apt-get install fuse-overlayfs", or a kernel from 5.11 on`, "neither the kernel's own nor fuse-overlayfs can be used")
}

// cgroups: what limits can be held to.
func (m machine) cgroups(context.Context) []Finding {
	const id, what = "cgroups", "limits of memory, cpus and pids"
	if !m.exists("/sys/fs/cgroup/cgroup.controllers") {
		return lacking(id, what, "pids are bounded all the same; for the others, boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)", "cgroup v1 or hybrid, which no rootless container can use")
	}
	slice := fmt.Sprintf("/sys/fs/cgroup/user.slice/user-%d.slice/user@%d.service/cgroup.controllers", m.uid, m.uid)
	controllers := strings.Fields(m.read(slice))
	if len(controllers) == 0 {
		return lacking(id, what, "log in through systemd; pids are bounded all the same", "cgroup v2, but none is this user's own")
	}
	return lacking(id, what, "pids are bounded all the same", "cgroup v2 with %s, which gVisor without root leaves alone", strings.Join(controllers, ", "))
}

func (m machine) selinux(context.Context) []Finding {
	const id, what = "selinux", "SELinux"
	if m.read("/sys/fs/selinux/enforce") == "1" {
		return ok(id, what, "enforcing: mounts are relabelled where they say z or Z")
	}
	return ok(id, what, "not enforcing")
}

func leadingDigits(s string) string {
	for i, c := range s {
		if c < '0' || c > '9' {
			return s[:i]
		}
	}
	return s
}
