package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"lazaret/image"
)

// needE2E passes over a test that starts real sandboxes, unless it was asked
// for, as "make test" does. Then nothing is passed over.
func needE2E(t *testing.T) {
	t.Helper()
	if os.Getenv("LAZARET_E2E") != "1" {
		t.Skip(`starts real sandboxes: run "make test"`)
	}
	if os.Getuid() == 0 {
		t.Fatal("end-to-end tests run as an ordinary user, like lazaret")
	}
}

// alone is the script that kills lazarets: what they leave is for whoever launches
// next, and in another script nobody expects it.
const alone = "e2e_killed.txtar"

// TestEndToEnd runs the scripts that start real sandboxes: rootless podman,
// gVisor, and this account's own storage.
func TestEndToEnd(t *testing.T) {
	runE2E(t, func(name string) bool { return strings.HasPrefix(name, "e2e_") && name != alone })
}

// TestEndToEndAlone runs the script that no other may run beside.
func TestEndToEndAlone(t *testing.T) {
	runE2E(t, func(name string) bool { return name == alone })
}

func runE2E(t *testing.T, wanted func(name string) bool) {
	needE2E(t)
	p := scriptParams(t, wanted)
	p.Setup = setupE2E
	p.Cmds["push-layout"] = cmdPushLayout
	p.Cmds["push-shell"] = cmdPushShell
	p.Cmds["push-newer"] = cmdPushNewer
	p.Cmds["push-linked"] = cmdPushLinked
	p.Cmds["evil-archive"] = cmdEvilArchive
	p.Cmds["owner"] = cmdOwner
	p.Cmds["waitfor"] = cmdWaitfor
	testscript.Run(t, p)
}

// setupE2E gives a script the account's real home and runtime directory:
// podman's storage is there, and two storages cannot share one pause process.
func setupE2E(env *testscript.Env) error {
	if err := setupScript(env); err != nil {
		return err
	}
	for _, k := range []string{"HOME", "XDG_RUNTIME_DIR", "LAZARET_DEBIAN"} {
		env.Setenv(k, os.Getenv(k))
	}
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	// What persists belongs to subordinate ids, which only podman's namespace
	// may remove.
	env.Defer(func() { exec.Command("podman", "unshare", "rm", "-rf", filepath.Join(env.WorkDir, "data")).Run() })
	return nil
}

// cmdPushLayout pushes the only image of an OCI layout.
//
//	push-layout REF DIR
func cmdPushLayout(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "push-layout")
	if len(args) != 2 {
		ts.Fatalf("usage: push-layout REF DIR")
	}
	index, err := layout.ImageIndexFromPath(args[1])
	ts.Check(err)
	m, err := index.IndexManifest()
	ts.Check(err)
	img, err := index.Image(m.Manifests[0].Digest)
	ts.Check(err)
	ref, err := name.ParseReference(args[0])
	ts.Check(err)
	ts.Check(remote.Write(ref, img))
}

// cmdPushNewer pushes the only image of an OCI layout with a layer more: with
// "new", one file in it is changed and one is new; "old" is the build before.
// Both are a script's own, which no other is using when it removes them.
//
//	push-newer REF DIR old|new
func cmdPushNewer(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "push-newer")
	index, err := layout.ImageIndexFromPath(args[1])
	ts.Check(err)
	m, err := index.IndexManifest()
	ts.Check(err)
	img, err := index.Image(m.Manifests[0].Digest)
	ts.Check(err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	type file struct{ name, text string }
	files := []file{{"usr/share/newer", "newer\n"}, {"usr/share/common-licenses/GPL-1", "a better licence\n"}}
	if args[2] == "old" {
		files = []file{{"usr/share/older", "older\n"}}
	}
	for _, f := range files {
		ts.Check(w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}))
		_, err := w.Write([]byte(f.text))
		ts.Check(err)
	}
	ts.Check(w.Close())
	img, err = mutate.AppendLayers(img, static.NewLayer(b.Bytes(), types.OCIUncompressedLayer))
	ts.Check(err)
	ref, err := name.ParseReference(args[0])
	ts.Check(err)
	ts.Check(remote.Write(ref, img))
}

// cmdPushShell pushes lazaret's own shell image with a config that asks for
// trouble, and puts its digest in $DIGEST.
//
//	push-shell REF [-hostile] [-annotate K=V]
func cmdPushShell(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "push-shell")
	fs := newFlags(ts, "push-shell")
	hostile := fs.Bool("hostile", false, "a config that would act on the host")
	annotate := fs.String("annotate", "", "a manifest annotation")
	label := fs.String("label", "", "another label is another image id")
	ref, err := name.ParseReference(parse(ts, fs, args, 1)[0])
	ts.Check(err)
	img, err := image.Shell("linux/amd64")
	ts.Check(err)
	cf, err := img.ConfigFile()
	ts.Check(err)
	cf = cf.DeepCopy()
	cf.Config.Labels = map[string]string{"test": *label}
	if *hostile {
		cf.Config.Volumes = map[string]struct{}{"/workspace/volume": {}, "/workspace/.hg/hooks": {}}
		cf.Config.WorkingDir = "/workspace/workdir"
		cf.Config.User = "1000"
		cf.Config.StopSignal = "SIGCONT"
		cf.Config.OnBuild = []string{"RUN touch /workspace/onbuild"}
		cf.Config.Entrypoint = []string{"/bin/false"}
		cf.Config.Healthcheck = &v1.HealthConfig{Test: []string{"CMD-SHELL", "touch /workspace/health"}, Interval: 1}
	}
	img, err = mutate.ConfigFile(img, cf)
	ts.Check(err)
	if k, v, ok := strings.Cut(*annotate, "="); ok {
		img = mutate.Annotations(img, map[string]string{k: v}).(v1.Image)
	}
	ts.Check(remote.Write(ref, img))
	digest, err := img.Digest()
	ts.Check(err)
	ts.Setenv("DIGEST", digest.String())
	id, err := img.ConfigName()
	ts.Check(err)
	ts.Setenv("IMAGEID", id.String())
}

// cmdOwner succeeds when the files belong to whoever runs the test.
//
//	owner PATH...
func cmdOwner(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "owner")
	for _, a := range args {
		fi, err := os.Lstat(ts.MkAbs(a))
		ts.Check(err)
		if got := ownerOf(fi); got != os.Getuid() {
			ts.Fatalf("%s belongs to %d, not to %d", a, got, os.Getuid())
		}
	}
}

// shellConfig is a workspace's config for the end-to-end tests in Go.
func shellConfig(data string) string {
	return fmt.Sprintf(`[storage]
data_root = %q
[network]
default_allow = []
default_deny = []
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.shell]
image = "builtin:shell"
env = { SECRET = "env:E2E_SECRET?" }
persistent_dirs = ["/root", "/etc"]
volumes = [{ host = "{profile_dir}/cache", container = "/cache" }]
`, data)
}
