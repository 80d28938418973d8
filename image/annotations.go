package image

import (
	"slices"
	"strings"
)

// obeyed lists what container runtimes and engines read from annotations as
// their own settings. Podman copies the annotations of an image's manifest
// into the container it makes, so an image that carries one of these would
// configure its own jail: dev.gvisor.flag.host-uds=open was seen to open the
// host's sockets to a sandbox started without that flag.
var obeyed = []struct{ prefix, by string }{
	{"dev.gvisor.", "runsc: flags, mounts, root file system, checkpoints"},
	{"io.kubernetes.", "runsc, crun and podman: join another container's sandbox"},
	{"io.podman.", "podman: user namespace, seccomp, labels, privileges"},
	{"io.containers.", "podman and its hooks: auto-update, syscall tracing"},
	{"io.container.", "podman: which engine owns the container"},
	{"io.containerd.", "runsc's shim: runtime options"},
	{"run.oci.", "crun: handler, hooks' output, cgroups, groups, seccomp"},
	{"io.crun.", "crun"},
	{"module.wasm.", "crun: run the entrypoint in another engine"},
	{"krun.", "crun: virtual machine settings"},
	{"org.systemd.property.", "runc and crun: any property of the systemd unit"},
	{"org.criu.", "runc and crun: a configuration file for checkpoints"},
	{"org.opencontainers.runc.", "runc"},
	{"org.opencontainers.runtime.", "runtimes, by the name's claim"},
	{"io.katacontainers.", "kata: hypervisor and kernel paths"},
	{"com.github.containers.virtcontainers.", "kata, older"},
	{"cdi.k8s.io/", "device injection"},
	{"nri.io/", "resource plugins"},
}

// harmless annotations are on nearly every image and tell people something;
// nothing acts on them, so the lock stays free of them.
var harmless = []string{"org.opencontainers.image.", "com.docker.official-images."}

// ObeyedAnnotations returns the sorted keys of annotations that a container
// runtime or engine would take for its own settings. Launch refuses an image
// with any, as locking does.
func ObeyedAnnotations(annotations map[string]string) []string {
	var keys []string
	for k := range annotations {
		if isObeyed(k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func isObeyed(key string) bool {
	key = strings.ToLower(strings.TrimSpace(key))
	for _, o := range obeyed {
		if strings.HasPrefix(key, o.prefix) || key == strings.TrimRight(o.prefix, "./") {
			return true
		}
	}
	// seccomp.security.alpha.kubernetes.io/pod and its like.
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"))
}

// shownAnnotations returns the ones a lock should show.
func shownAnnotations(annotations map[string]string) map[string]string {
	var out map[string]string
next:
	for k, v := range annotations {
		for _, p := range harmless {
			if strings.HasPrefix(k, p) {
				continue next
			}
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[k] = v
	}
	return out
}
