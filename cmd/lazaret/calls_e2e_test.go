package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lazaret/launch/podman"
)

// attackCalls are what somebody who has taken over a router would go on with:
// programs and keys without a file, other processes, the kernel's younger parts.
var attackCalls = map[string]uintptr{
	"memfd_create": unix.SYS_MEMFD_CREATE, "keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "ptrace": unix.SYS_PTRACE,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV, "unshare": unix.SYS_UNSHARE, "mount": unix.SYS_MOUNT, "bpf": unix.SYS_BPF,
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "inotify_init1": unix.SYS_INOTIFY_INIT1, "mknodat": unix.SYS_MKNODAT, "execveat": unix.SYS_EXECVEAT,
}

// reachable lists the calls that the kernel looks at.
func reachable() string {
	var names []string
	for name, nr := range attackCalls {
		// With nothing in it no call does anything; one that is there says why.
		if _, _, errno := unix.RawSyscall6(nr, 0, 0, 0, 0, 0, 0); errno != unix.ENOSYS {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}

// TestEndToEndRouterCalls: what runs in a router's place does not reach the
// calls that no router makes. Podman's own profile lets it.
func TestEndToEndRouterCalls(t *testing.T) {
	needE2E(t)
	n := newNetworked(t, "default_allow = [\"192.0.2.0/24\"]\ndefault_deny = []\n", "")
	p := n.launch()
	p.wants("tcp 192.0.2.1:80 = works")
	out, err := exec.Command("podman", "inspect", "--format", "{{.HostConfig.SecurityOpt}}", "lazaret-shell-"+n.run()+"-net").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "seccomp=") || !strings.Contains(string(out), "router.calls") {
		t.Errorf("the router's own profile: %s, %v", out, err)
	}
	p.end()
	calls := filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(calls, []byte(podman.RouterCalls()), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(flags ...string) string {
		args := append([]string{"run", "podman", "--runtime", ordinary(t), "run", "--rm", "--network=none", "--cap-drop=all", "--cap-add=NET_ADMIN",
			"--security-opt=no-new-privileges", "-v", n.ws + ":/p:ro", "--entrypoint="}, flags...)
		out, err := n.world.do(append(args, n.shellImage(), "sh", "-c", "echo calls | /p/lazaret-probe")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	if got := try("--security-opt=seccomp=" + calls); !strings.Contains(got, "calls: none") {
		t.Errorf("under the router's profile: %s", got)
	}
	if got := try(); !strings.Contains(got, "memfd_create") || !strings.Contains(got, "ptrace") {
		t.Errorf("under podman's profile nothing is reached either, so this shows nothing: %s", got)
	}
}
