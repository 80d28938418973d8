package podman

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestRouterArgv: what holds the router, and nothing that an image or a
// configuration could change.
func TestRouterArgv(t *testing.T) {
	r := Router{Name: "n", Image: "sha256:x", Uplink: "slirp4netns", Sysctls: map[string]string{"ipv4/ip_forward": "1"}, Dir: "/run/a,b", Calls: "/run/calls"}
	argv := Engine{Podman: "/p", Runsc: "/runc"}.Router(r)
	text := strings.Join(argv, " ")
	for _, want := range []string{
		"--cap-drop=all --cap-add=NET_ADMIN", "--read-only --read-only-tmpfs=false", "--security-opt=no-new-privileges", "--security-opt=seccomp=/run/calls", "--pull=never",
		"--sysctl net.ipv4.ip_forward=1", "allow_host_loopback=false", "--image-volume=ignore", "--user=0:0", `"src=/run/a,b",dst=/run/lazaret,ro=true`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if argv[len(argv)-1] != r.Image || argv[len(argv)-2] != "--" {
		t.Errorf("something follows the image: %q", argv)
	}
	if slices.Contains(argv, "--security-opt=label=disable") {
		t.Error("SELinux is switched off where it is not enforced")
	}
	r.SELinux = true
	if !slices.Contains(Engine{}.Router(r), "--security-opt=label=disable") {
		t.Error("under SELinux the router cannot call")
	}
}

// TestRouterCalls: a call that is not listed is not made, whichever it is.
func TestRouterCalls(t *testing.T) {
	var p struct {
		DefaultAction   string
		DefaultErrnoRet int
		ArchMap         []struct{ Architecture string }
		Syscalls        []struct {
			Names  []string
			Action string
		}
	}
	if err := json.Unmarshal([]byte(RouterCalls()), &p); err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != "SCMP_ACT_ERRNO" || p.DefaultErrnoRet == 0 || len(p.Syscalls) != 1 || len(p.ArchMap) != 2 {
		t.Errorf("the profile is %+v", p)
	}
	for _, bad := range []string{"ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "add_key", "io_uring_setup", "memfd_create", "execveat", "perf_event_open", "clone3"} {
		if slices.Contains(p.Syscalls[0].Names, bad) {
			t.Errorf("a router may call %s", bad)
		}
	}
}
