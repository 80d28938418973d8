package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/internal/step"
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

// TestKnownMeanwhile: what was verified before the person was asked something is
// verified once more where podman's images changed meanwhile.
func TestKnownMeanwhile(t *testing.T) {
	s := storage{t, t.TempDir()}
	env := []string{"HOME=" + s.home}
	images := s.path("overlay-images/images.json")
	script := filepath.Join(s.home, "podman")
	s.write(script, "#!/bin/sh\necho \"$*\" >>"+s.home+"/asked\nprintf '[{\"Id\":\"bb\",\"Architecture\":\"amd64\",\"Os\":\"linux\"}]'\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("overlay-images/images.json", "[]")
	key, err := storeKey(images, env)
	if err != nil {
		t.Fatal(err)
	}
	engine, memory, known := podman.Engine{Podman: script}, Memory{Environ: env}, KnownImage{Key: key, Images: images}
	ops := map[string]step.Op{
		"image":   Image{Engine: engine, Profile: "box", Platform: "linux/amd64", Pinned: lock.PlatformImage{Config: "sha256:aa"}, Memory: memory, Known: known},
		"sidecar": SidecarImage{Engine: engine, Platform: "linux/amd64", Pinned: lock.Sidecar{Config: "sha256:aa"}, Memory: memory, Known: known},
	}
	for name, op := range ops {
		if _, err := op.Do(t.Context(), nil); err != nil || exists(filepath.Join(s.home, "asked")) {
			t.Errorf("%s: podman is asked though nothing changed, or %v", name, err)
		}
	}
	s.write("overlay-images/images.json", "[{}]")
	for name, op := range ops {
		if _, err := op.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "IMAGE ID MISMATCH") {
			t.Errorf("%s: after a change: %v", name, err)
		}
	}
}
