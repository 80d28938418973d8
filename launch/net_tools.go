package launch

import (
	"debug/elf"
	"strconv"
	"strings"

	"lazaret/launch/podman"
)

// podman's rootless networks.
const (
	slirp = "slirp4netns"
	pasta = "pasta"
)

// routerRuntime finds the runtime of the router, which needs the kernel's own
// network: runc, or crun where there is none.
func routerRuntime(workspace string) (Tool, error) {
	file, err := lookPath("runc", podman.SearchPath, workspace)
	if err != nil {
		file, err = lookPath("crun", podman.SearchPath, workspace)
	}
	if err != nil {
		return Tool{}, lacks("runc", `install one: "apt-get install runc" or your distribution's package`, "neither runc nor crun is installed, and the network sidecar runs under one of them")
	}
	return Tool{Path: file}, nil
}

// uplinkKind chooses the network that podman itself prefers: slirp4netns up to
// version 4, pasta from 5 on.
func uplinkKind(pod Tool, workspace string) (string, error) {
	order := []string{slirp}
	major, _, _ := strings.Cut(pod.Version, ".")
	if n, _ := strconv.Atoi(major); n >= 5 {
		order = []string{pasta, slirp}
	}
	for _, kind := range order {
		if _, err := lookPath(kind, podman.SearchPath, workspace); err == nil {
			return kind, nil
		}
	}
	return "", lacks("uplink", `install it: "apt-get install `+order[0]+`" or your distribution's package`, "%s is not installed, and podman %s needs it for a network", order[0], pod.Version)
}

// runsAnywhere tells whether a program needs nothing but a kernel, so that it
// runs whatever the image holds.
func runsAnywhere(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
