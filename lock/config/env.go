package config

import (
	"regexp"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the names a profile's env may not set. The sandbox's environment
// reaches the container by file, so this is the second lock on the same door:
// were one of these ever to reach the environment of podman itself, it would
// make podman read the repository's configuration or load its library, on the
// host. Those of git and lazaret are set by lazaret inside the sandbox.
// A trailing * stands for any rest.
var reserved = []struct{ name, why string }{
	{"LD_*", "the loader obeys it"},
	{"XDG_*", "podman finds its configuration by it"},
	{"CONTAINERS_*", "podman finds its configuration by it"},
	{"_CONTAINERS_*", "podman finds its namespaces by it"},
	{"CONTAINER_*", "podman finds its service by it"},
	{"STORAGE_*", "podman finds its storage by it"},
	{"PODMAN_*", "podman obeys it"},
	{"BUILDAH_*", "podman obeys it"},
	{"NETAVARK_*", "podman's network obeys it"},
	{"REGISTRY_AUTH_FILE", "podman finds credentials by it"},
	{"DBUS_*", "it leads to the host's services"},
	{"NOTIFY_SOCKET", "it leads to the host's service manager"},
	{"LISTEN_*", "it leads to the host's service manager"},
	{"GIT_CONFIG*", "lazaret configures git in the sandbox by it"},
	{"LAZARET_*", "lazaret obeys it"},
}

// literalOnly are names a profile may set to a text, which only programs in
// the sandbox see, but not to a value of the host: the host's own say where
// things lie on the host, which is of no use inside.
var literalOnly = []string{"HOME", "PATH", "TMPDIR"}

func checkEnvName(name string) error {
	if !envName.MatchString(name) {
		return errorf("use letters, digits and _, not starting with a digit", "is not a variable's name")
	}
	for _, r := range reserved {
		prefix, ok := strings.CutSuffix(r.name, "*")
		if name == r.name || ok && strings.HasPrefix(name, prefix) {
			return errorf("remove it", "is reserved (%s): %s", r.name, r.why)
		}
	}
	return nil
}

// checkEnvValue takes a literal, env:NAME or env:NAME?. It never quotes the
// value, which may be a secret that should not have been there.
func checkEnvValue(name, value string) error {
	source, ok := strings.CutPrefix(value, "env:")
	if !ok {
		return nil
	}
	source = strings.TrimSuffix(source, "?")
	if !envName.MatchString(source) {
		return errorf("write env:NAME, or env:NAME? where it may be unset", "env: is not followed by a variable's name")
	}
	for _, only := range literalOnly {
		if name == only {
			return errorf("write the value for the sandbox", "cannot come from the host")
		}
	}
	return nil
}
