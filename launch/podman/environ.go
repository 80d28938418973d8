package podman

import "strconv"

// SearchPath is where podman finds conmon, runc and its other programs. The
// person's own PATH may name directories that a sandbox can write to.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// passedOn are the variables that say where the person's podman keeps its
// images and credentials. Everything else stays out: with an XDG_CONFIG_HOME
// or CONTAINERS_CONF of a profile's choosing, podman runs the repository's
// program as its runtime, on the host.
var passedOn = []string{"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG"}

// Environ is podman's whole environment, from the person's own and the
// containers.conf lazaret wrote.
func Environ(getenv func(string) string, conf string) []string {
	var env []string
	for _, k := range passedOn {
		if v := getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return append(env,
		"PATH="+SearchPath,
		"CONTAINERS_CONF="+conf,
		"PODMAN_IGNORE_CGROUPSV1_WARNING=1",
		// It ends before it has used much memory, but for collecting some of it
		// it takes a tenth of its time.
		"GOGC=400",
	)
}

// toRegistries are the variables that say how registries are reached: by which
// proxy, and by whose certificates. A proxy's address may hold a password, so
// only a pull, which is over before the sandbox starts, gets them.
var toRegistries = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// PullEnviron is what is added to podman's environment for a pull.
func PullEnviron(getenv func(string) string) (env []string) {
	for _, k := range toRegistries {
		if v := getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// InNamespace adds what podman needs to hear when it is started inside its
// own user namespace already, so that it does not look for its pause process
// and enter that one's mount namespace.
func InNamespace(env []string, uid, gid int) []string {
	return append(append([]string(nil), env...),
		"_CONTAINERS_USERNS_CONFIGURED=done",
		"_CONTAINERS_ROOTLESS_UID="+strconv.Itoa(uid),
		"_CONTAINERS_ROOTLESS_GID="+strconv.Itoa(gid),
	)
}

// Conf is the containers.conf podman runs with, in place of the machine's and
// the person's: no environment, volumes, devices, hooks or runtimes join in.
const Conf = `# Written by lazaret for one run.
[containers]
default_sysctls = []
devices = []
env = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
env_host = false
http_proxy = false
volumes = []

[engine]
events_logger = "none"
hooks_dir = []
`
