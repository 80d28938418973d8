package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// storage is podman's, as far as an image is known by it.
type storage struct {
	t    *testing.T
	home string
}

func (s storage) path(name string) string {
	return filepath.Join(s.home, ".local/share/containers/storage", name)
}

func (s storage) write(name, text string) {
	s.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = s.path(name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s storage) inspected(layers ...string) inspected {
	var dirs []string
	for _, l := range layers {
		dir := s.path("overlay/" + l + "/diff")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return inspected{GraphDriver: graphDriver{"overlay", map[string]string{"UpperDir": dirs[0], "LowerDir": strings.Join(dirs[1:], ":")}}}
}

// TestKnownImage: what was verified is known until anything changes from which
// podman would take another image, or another answer about it.
func TestKnownImage(t *testing.T) {
	const id, platform = "sha256:aa", "linux/amd64"
	s := storage{t, t.TempDir()}
	cache, env := filepath.Join(s.home, "cache"), []string{"HOME=" + s.home}
	img := s.inspected("top")
	s.write("overlay-images/images.json", "[]")
	s.write("overlay-containers/containers.lock", "")
	keep := func() {
		t.Helper()
		Memory{Dir: cache, Environ: env}.keep(id, platform, img, time.Now().Add(time.Second))
		if _, ok := knownImages(cache, platform, env)[id]; !ok {
			t.Fatal("it is not known")
		}
	}
	keep()
	k := knownImages(cache, platform, env)[id]
	if !slices.Equal(k.Layers, []string{s.path("overlay/top/diff")}) || k.containers() != s.path("overlay-containers") {
		t.Errorf("%+v, containers in %s", k, k.containers())
	}
	for name, change := range map[string]func(){
		"another image":       func() { s.write("overlay-images/images.json", "[{}]") },
		"a configuration":     func() { s.write(filepath.Join(s.home, ".config/containers/storage.conf"), "x") },
		"another one":         func() { s.write(filepath.Join(s.home, ".config/containers/storage.conf"), "xy") },
		"no images":           func() { os.Remove(s.path("overlay-images/images.json")) },
		"a cache of nonsense": func() { s.write(filepath.Join(cache, knownFile), "{") },
		"another's key": func() {
			s.write(filepath.Join(cache, knownFile), `{"linux/amd64 sha256:aa":{"Key":"","Images":"/none"}}`)
		},
		"an empty environment": func() { env = []string{"HOME=/nowhere"} },
	} {
		s.write("overlay-images/images.json", "[]")
		env = []string{"HOME=" + s.home}
		keep()
		if change(); knownImages(cache, platform, env)[id].Key != "" {
			t.Errorf("%s: it is still known", name)
		}
	}
	env = []string{"HOME=" + s.home}
	s.write("overlay-images/images.json", "[]")
	keep()
	if _, ok := knownImages(cache, "linux/arm64", env)[id]; ok {
		t.Error("it is known for another platform")
	}
	// Podman's answer can be older than the file.
	os.Remove(filepath.Join(cache, knownFile))
	Memory{Dir: cache, Environ: env}.keep(id, platform, img, time.Now().Add(-time.Hour))
	if _, ok := knownImages(cache, platform, env)[id]; ok {
		t.Error("what changed after podman was asked is taken for what it said")
	}
}

// TestKnownStore: nothing is remembered of an image that may be in another store
// than podman's own.
func TestKnownStore(t *testing.T) {
	for name, tc := range map[string]struct {
		conf string
		lock bool
		want bool
	}{
		"its own":             {"", true, true},
		"none besides":        {"[storage.options]\nadditionalimagestores = [\n  # \"/usr/lib/x\",\n]\n", true, true},
		"one is a comment":    {"#additionalimagestores = [\"/usr/lib/x\"]\n", true, true},
		"one besides":         {"[storage.options]\nadditionalimagestores = [\"/usr/lib/x\"]\n", true, false},
		"one on a line":       {"[storage.options]\n\"additionalimagestores\" = [ # more\n  '/usr/lib/x',\n]\n", true, false},
		"no containers by it": {"", false, false},
	} {
		s := storage{t, t.TempDir()}
		cache, env := filepath.Join(s.home, "cache"), []string{"HOME=" + s.home}
		img := s.inspected("top")
		s.write("overlay-images/images.json", "[]")
		s.write(filepath.Join(s.home, ".config/containers/storage.conf"), tc.conf)
		if tc.lock {
			s.write("overlay-containers/containers.lock", "")
		}
		Memory{Dir: cache, Environ: env}.keep("sha256:aa", "linux/amd64", img, time.Now().Add(time.Second))
		if _, ok := knownImages(cache, "linux/amd64", env)["sha256:aa"]; ok != tc.want {
			t.Errorf("%s: known: %v", name, ok)
		}
	}
}

// TestKnownLayers: layers are read directly only where they are plain
// directories with the kernel's own marks.
func TestKnownLayers(t *testing.T) {
	s := storage{t, t.TempDir()}
	if k := s.inspected("a", "b").known(); len(k.Layers) != 2 {
		t.Errorf("%+v", k)
	}
	for name, img := range map[string]inspected{
		"another driver": {GraphDriver: graphDriver{"vfs", map[string]string{"UpperDir": s.path("overlay/a/diff")}}},
		"no path":        {GraphDriver: graphDriver{"overlay", map[string]string{"UpperDir": "diff"}}},
		"no layer":       {GraphDriver: graphDriver{"overlay", nil}},
		"elsewhere":      {GraphDriver: graphDriver{"overlay", map[string]string{"UpperDir": "/a/b/c"}}},
	} {
		if k := img.known(); k.Images != "" || len(k.Layers) != 0 {
			t.Errorf("%s: %+v", name, k)
		}
	}
	for name, spoil := range map[string]func() inspected{
		"a mount program": func() inspected {
			s.write("overlay/.has-mount-program", "true")
			return s.inspected("a")
		},
		"a layer that is not there": func() inspected {
			img := s.inspected("a", "c")
			os.RemoveAll(s.path("overlay/c"))
			return img
		},
		"a layer of another kind": func() inspected {
			s.write("overlay/d/composefs-data/x", "")
			return s.inspected("a", "d")
		},
	} {
		if k := spoil().known(); k.Images == "" || len(k.Layers) != 0 {
			t.Errorf("%s: %+v", name, k)
		}
		os.Remove(s.path("overlay/.has-mount-program"))
	}
	s.write("overlay/.has-mount-program", "false\n")
	if k := s.inspected("a").known(); len(k.Layers) != 1 {
		t.Errorf("without a mount program: %+v", k)
	}
}

// TestCacheIsSwept: what a lazaret left that was killed while it wrote goes with
// a later one, and what another one is writing stays.
func TestCacheIsSwept(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, knownFile+".1"), filepath.Join(dir, knownFile+".2")
	for _, path := range []string{old, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	writeCache(dir, knownFile, map[string]KnownImage{})
	if exists(old) || !exists(fresh) || !exists(filepath.Join(dir, knownFile)) {
		t.Errorf("an old one is there: %v, a new one: %v", exists(old), exists(fresh))
	}
}
