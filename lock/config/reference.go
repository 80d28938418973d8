package config

import (
	"path"
	"regexp"
	"strings"
)

// Where an image comes from, other than a registry.
const (
	OCI     = "oci:"     // followed by the directory of an OCI image layout
	Builtin = "builtin:" // followed by the name of an image that lazaret makes
	Shell   = "builtin:shell"
)

var (
	refDomain = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9-]+(\.[a-z0-9-]+)*:[0-9]+|\[[0-9a-f:]+\])(:[0-9]+)?$`)
	refPath   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	refTag    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	refDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// checkImage takes what a profile's image may be: a fully qualified reference,
// oci:DIR or builtin:shell.
func checkImage(s string) error {
	switch {
	case strings.HasPrefix(s, OCI):
		return checkLayout(strings.TrimPrefix(s, OCI))
	case s == Shell:
		return nil
	case strings.HasPrefix(s, Builtin):
		return errorf("write "+Shell, "%s: there is no such builtin image", quote(s))
	}
	return checkReference(s)
}

// checkLayout takes the directory of an OCI layout: absolute, or below the
// workspace. No tokens: the image is the same for everybody who has the lock.
func checkLayout(dir string) error {
	clean := path.Clean(dir)
	switch {
	case dir == "":
		return errorf("write oci:DIR", "names no directory")
	case hasDotDot(dir):
		return errorf("", "%s has a .. segment", quote(dir))
	case strings.HasPrefix(dir, "~") || strings.ContainsAny(dir, "{}"):
		return errorf("write an absolute path, or one in the workspace", "%s: an image takes no ~ and no tokens", quote(dir))
	case dir != clean:
		return errorf("write "+OCI+Show(clean), "%s is not in its shortest form", quote(dir))
	}
	return nil
}

// checkReference takes registry/name[:tag][@digest]. A name without registry
// means another image on every machine that is configured otherwise.
func checkReference(s string) error {
	const want = "write REGISTRY/NAME:TAG, such as docker.io/library/debian:trixie"
	if s == "" {
		return errorf(want, "is empty")
	}
	if _, rest, ok := strings.Cut(s, "://"); ok {
		return errorf("write "+quote(rest), "%s: a reference has no scheme", quote(s))
	}
	name, digest, hasDigest := strings.Cut(s, "@")
	if hasDigest && !refDigest.MatchString(digest) {
		return errorf("write @sha256: and 64 hexadecimal digits", "%s: the digest is malformed", quote(s))
	}
	repo, tag := name, ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		repo, tag = name[:i], name[i+1:]
		if !refTag.MatchString(tag) {
			return errorf(want, "%s: the tag is malformed", quote(s))
		}
	}
	domain, rest, ok := strings.Cut(repo, "/")
	switch {
	case !ok && refPath.MatchString(repo):
		return errorf("write "+quote("docker.io/library/"+s), "%s is a short name", quote(s))
	case ok && !strings.ContainsAny(domain, ".:") && domain != "localhost" && refPath.MatchString(repo):
		return errorf("write "+quote("docker.io/"+s), "%s is a short name", quote(s))
	case ok && domain == "docker.io" && refPath.MatchString(rest) && !strings.Contains(rest, "/"):
		return errorf("write "+quote("docker.io/library/"+strings.TrimPrefix(s, "docker.io/")), "%s is a short name", quote(s))
	case strings.ToLower(repo) != repo && (!ok || refPath.MatchString(strings.ToLower(rest))):
		return errorf("write it in lower case", "%s: names of images are lower case", quote(s))
	case !ok || !refDomain.MatchString(domain) || !refPath.MatchString(rest) || len(repo) > 255:
		return errorf(want, "%s is not an image reference", quote(s))
	}
	return nil
}
