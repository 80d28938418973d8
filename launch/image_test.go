package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/launch/podman"
	"lazaret/lock"
)

// The person's proxy and certificates reach the pull, and nothing else that
// podman does: the address of a proxy may hold a password.
func TestOnlyThePullKnowsTheProxy(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "podman")
	// It has the image once it was pulled.
	text := "#!/bin/sh\ncase \"$*\" in\n*pull*) env >" + dir + "/pull; exit 0;;\n*inspect*) env >>" + dir + "/inspect; [ -e " + dir + "/pull ] || exit 125\n" +
		`printf '[{"Id":"aa","Architecture":"amd64","Os":"linux"}]';;` + "\nesac\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	person := map[string]string{"HTTPS_PROXY": "http://u:secret@proxy:3128", "no_proxy": "registry.test", "SSL_CERT_FILE": "/etc/ca.pem", "LD_PRELOAD": "/x"}
	o := Image{
		Engine: podman.Engine{Podman: script}, Environ: []string{"PATH=/usr/bin:/bin"},
		PullEnv: podman.PullEnviron(func(k string) string { return person[k] }),
		Profile: "box", Ref: "registry.test/x:1", Platform: "linux/amd64", Pinned: lock.PlatformImage{Config: "sha256:aa", Manifest: "sha256:bb"},
		Layout: filepath.Join(dir, "layout"),
	}
	if _, err := o.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	pulled, _ := os.ReadFile(filepath.Join(dir, "pull"))
	for _, want := range []string{"HTTPS_PROXY=http://u:secret@proxy:3128", "no_proxy=registry.test", "SSL_CERT_FILE=/etc/ca.pem", "TMPDIR=" + o.Layout} {
		if !strings.Contains(string(pulled), want) {
			t.Errorf("the pull lacks %s:\n%s", want, pulled)
		}
	}
	looked, err := os.ReadFile(filepath.Join(dir, "inspect"))
	if err != nil || strings.Contains(string(looked), "PROXY") || strings.Contains(string(pulled), "LD_PRELOAD") {
		t.Errorf("%v: inspect had\n%s\nand pull\n%s", err, looked, pulled)
	}
	if _, err := os.Lstat(o.Layout); !os.IsNotExist(err) {
		t.Errorf("what was fetched is still in the cache: %v", err)
	}
	for _, line := range o.Show() {
		if strings.Contains(line, "secret") {
			t.Errorf("a plan shows %q", line)
		}
	}
}
