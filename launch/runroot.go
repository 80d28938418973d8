package launch

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// runrootMax is the longest run root, in bytes, that podman 4 accepts on its
// command line (getRuntime in its pkg/domain/infra/runtime_libpod.go; podman 5
// has no such bound). It comes by a longer one all the same, from its defaults,
// and gives that to what its monitor starts when a container has ended: which
// then fails, and "podman run" waits 20 s for it before it looks for itself.
const runrootMax = 50

// slowEnd says what a podman's version makes of a runtime directory whose path is
// too long for it; "" where it is not.
func slowEnd(runtimeDir, version string) string {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n >= 5 {
		return ""
	}
	root := filepath.Join(runtimeDir, "containers")
	if len(root) <= runrootMax {
		return ""
	}
	return fmt.Sprintf("podman %s takes 20 s to end each sandbox: XDG_RUNTIME_DIR has %d bytes, of at most %d", version, len(runtimeDir), runrootMax-len(root)+len(runtimeDir))
}
