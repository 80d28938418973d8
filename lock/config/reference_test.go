package config

import (
	"os/exec"
	"strings"
	"testing"
)

func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, ok := range []string{
		"docker.io/library/debian:trixie", "docker.io/library/debian", "ghcr.io/a/b/c:v1.2_3-x", "localhost/x", "localhost:5000/x:1", "127.0.0.1:5000/x",
		"registry:5000/x", "[::1]:5000/x", "registry.example.org/a__b/c-d.e", "docker.io/library/debian@" + digest, "docker.io/library/debian:trixie@" + digest,
		"builtin:shell", "oci:image", "oci:build/out dir", "oci:/srv/a:b", "oci:.",
	} {
		if err := checkImage(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"debian", "debian@" + digest, "library/debian", "docker.io/debian", "docker.io/", "/debian", "docker.io//x", "docker.io/x/", "docker.io/library/-x", "docker.io/library/x:",
		"docker.io/library/x@", "docker.io/library/x@sha256:0A", "docker.io/library/x@sha512:" + digest[7:], "docker.io/library/x:" + strings.Repeat("a", 129),
		"docker.io/library/x y", "Docker.io/library/x", "docker.io/Library/x", "a.b/" + strings.Repeat("c", 300), "builtin:", "builtin:other", "oci:", "oci:..", "oci:a/../b", "oci:a/", "oci:{workspace_dir}/x",
		"docker-archive:/x", "https://docker.io/library/x",
	} {
		if err := checkImage(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	for _, local := range []string{"builtin:shell", "oci:x"} {
		if err := checkReference(local); err == nil {
			t.Errorf("%s is taken for a registry reference", local)
		}
	}
}

// git is the judge of what a branch may be called. What is refused here beyond
// that means something else to git than the branch of that name.
func TestBranchesAgreeWithGit(t *testing.T) {
	more := map[string]bool{"@": true, "HEAD": true, "refs/heads/x": true, "refs/x": true}
	for _, name := range []string{
		"main", "lazaret/agent-claude", "a/b/c", "ünïcode", "a.b", "a-b", "a+b", "a@b", "@a", "a@", "a{b}", "a;b", "a$b", "a'b", "-", "-a", "@", "HEAD", "head",
		"refs/heads/x", "refs/x", "", "/", "a/", "/a", "a//b", ".", "..", ".a", "a/.b", "a..b", "a.", "a/b.", "a.lock", "a.lock/b", "a/b.lock", "a.lockx", "a b", "a~b", "a^b", "a:b", "a?b", "a*b",
		"a[b", "a]b", "a\\b", "a@{b", "a@{", "a\tb", "a\x01b", "a\x7fb", "a./b", "a/@", "a/@/b", "-/a", "a/-b", "auto",
	} {
		if name == "" || name == "auto" {
			if err := checkBranch(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		byGit := exec.Command("git", "check-ref-format", "--branch", name).Run() == nil
		if got := checkBranch(name) == nil; got != (byGit && !more[name]) {
			t.Errorf("%q: taken %v, git says %v", name, got, byGit)
		}
	}
}
