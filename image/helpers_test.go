package image

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const pinnedToolchain = "go1.26.8"

// helper returns a binary of this build. A clone without helpers can be
// tested all the same; CI builds them first and says so, and then nothing is
// left out.
func helper(t *testing.T, name, platform string) []byte {
	t.Helper()
	b, err := Binary(name, platform)
	var missing *HelperError
	if errors.As(err, &missing) && missing.Reason == "this build has none" && os.Getenv("CI") == "" && os.Getenv("LAZARET_HELPERS") == "" {
		t.Skip(`no helpers in this clone: run "make build"`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHelpersAreReproducible(t *testing.T) {
	for _, platform := range Platforms() {
		for _, name := range []string{SidecarName, EscalateName, GuestName} {
			b := helper(t, name, platform)
			f, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range f.Sections {
				if s.Name == ".note.gnu.build-id" || strings.HasPrefix(s.Name, ".debug") || s.Name == ".symtab" {
					t.Errorf("%s for %s has a section %s", name, platform, s.Name)
				}
				if s.Name == ".note.go.buildid" {
					if note, err := s.Data(); err != nil || len(note) > 16 {
						t.Errorf("%s for %s has a build id: %q %v", name, platform, note, err)
					}
				}
			}
			info, err := buildinfo.Read(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if info.GoVersion != pinnedToolchain {
				t.Errorf("%s for %s was built by %s, not %s", name, platform, info.GoVersion, pinnedToolchain)
			}
			if info.Main.Version != "(devel)" {
				t.Errorf("%s for %s says it is version %q", name, platform, info.Main.Version)
			}
			allowed := []string{"-buildmode=exe", "-compiler=gc", "-ldflags=-s -w -buildid=", "-trimpath=true", "CGO_ENABLED=0",
				"GOARCH=" + strings.TrimPrefix(platform, "linux/"), "GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0"}
			for _, s := range info.Settings {
				if kv := s.Key + "=" + s.Value; !slices.Contains(allowed, kv) {
					t.Errorf("%s for %s was built with %s", name, platform, kv)
				}
			}
			if wd, err := os.Getwd(); err != nil || bytes.Contains(b, []byte(filepath.Dir(wd))) {
				t.Errorf("%s for %s contains the directory it was built in (%v)", name, platform, err)
			}
		}
	}
}

// Two builds by two homes with cold caches, from copies of the source in
// different directories, of which one is a git repository, and under an
// environment meant to interfere, give the bytes that are embedded.
func TestHelpersBuildTwice(t *testing.T) {
	if os.Getenv("LAZARET_LONG") == "" {
		t.Skip("slow: run by make test-long, which sets LAZARET_LONG")
	}
	modcache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	var built [2]string
	for i, env := range [][]string{
		{"GOFLAGS=-tags=netgo", "GOAMD64=v3", "GOEXPERIMENT=nodwarf5", "CGO_ENABLED=1", "TZ=Asia/Tokyo", "SOURCE_DATE_EPOCH=1"},
		{"GOFLAGS=-buildvcs=true -trimpath=false", "GOFIPS140=latest", "GOWORK=/nowhere"},
	} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", i*3)+"source")
		if exec.Command("cp", "-r", "..", dir).Run() != nil {
			if mk := os.MkdirAll(filepath.Dir(dir), 0o755); mk != nil {
				t.Fatal(mk)
			}
			if out, err := exec.Command("cp", "-r", "..", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if i == 0 {
			os.RemoveAll(filepath.Join(dir, ".git"))
		}
		out := filepath.Join(t.TempDir(), "out")
		cmd := exec.Command(filepath.Join(dir, "image", "build-helpers.sh"), out)
		cmd.Env = append(os.Environ(), append(env, "HOME="+t.TempDir(), "GOCACHE="+t.TempDir(), "GOMODCACHE="+strings.TrimSpace(string(modcache)))...)
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		built[i] = out
	}
	for _, platform := range Platforms() {
		for _, name := range []string{SidecarName, EscalateName, GuestName} {
			embedded := helper(t, name, platform)
			for _, out := range built {
				b, err := os.ReadFile(filepath.Join(out, strings.ReplaceAll(platform, "/", "-"), name))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b, embedded) {
					t.Errorf("%s for %s differs: %s here, %s embedded", name, platform, sha256Of(b), sha256Of(embedded))
				}
			}
		}
	}
}

func TestLockedHelpers(t *testing.T) {
	helper(t, SidecarName, "linux/amd64")
	sidecars, clients, err := Helpers()
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range Platforms() {
		key := strings.ReplaceAll(platform, "/", "-")
		img, err := Sidecar(platform)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		// What the build wrote down is what its own bytes give.
		if s, err := DescribeSidecar(platform); err != nil || s != sidecars[key] {
			t.Errorf("%s: noted %+v, found %+v (%v)", platform, sidecars[key], s, err)
		}
		if s := sidecars[key]; s.Config != config.String() || s.Size == 0 || !strings.HasPrefix(s.Binary, "sha256:") {
			t.Errorf("%s: sidecar %+v, want config %s", platform, s, config)
		}
		if want := sha256Of(helper(t, EscalateName, platform)).String(); clients[key].Binary != want {
			t.Errorf("%s: client %+v, want %s", platform, clients[key], want)
		}
		var files []string
		for h := range entries(t, img) {
			files = append(files, h.Name)
		}
		if !slices.Equal(files, []string{SidecarName}) {
			t.Errorf("the sidecar's layer holds %q", files)
		}
	}
}

func TestShellImage(t *testing.T) {
	helper(t, GuestName, "linux/amd64")
	got, err := NewResolver(Options{}).Resolve(t.Context(), "builtin:shell", Platforms())
	if err != nil {
		t.Fatal(err)
	}
	if got.Index != "" || len(got.Platforms) != 2 || got.Platforms["linux-amd64"].Config == got.Platforms["linux-arm64"].Config {
		t.Errorf("builtin:shell is %+v", got)
	}
	pinned := got.Platforms["linux-amd64"]
	img, closer, err := OpenLocal("builtin:shell", "", "linux/amd64", pinned)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	found := make(map[string]string)
	for h := range entries(t, img) {
		found[h.Name] = h.Linkname
	}
	for _, name := range append(strings.Fields(Applets), "../usr/bin/env") {
		if path := filepath.Join("bin", name); found[path] != "bin/lazaret-guest" {
			t.Errorf("%s is not a link to the guest but %q", path, found[path])
		}
	}
	var build *BuildError
	pinned.Config = "sha256:" + strings.Repeat("0", 64)
	if _, _, err := OpenLocal("builtin:shell", "", "linux/amd64", pinned); !errors.As(err, &build) {
		t.Errorf("another build's image was opened: %v", err)
	}
	var ref *ReferenceError
	if _, err := NewResolver(Options{}).Resolve(t.Context(), "builtin:nope", Platforms()); !errors.As(err, &ref) {
		t.Errorf("builtin:nope: %v", err)
	}
	var platform *PlatformError
	if _, err := NewResolver(Options{}).Resolve(t.Context(), "builtin:shell", []string{"linux/riscv64"}); !errors.As(err, &platform) {
		t.Errorf("riscv64: %v", err)
	}
}
