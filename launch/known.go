package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/step"
	"lazaret/overlay"
)

// Asking podman about an image takes as long as starting podman does, and a
// launch has two to ask about. What it said is kept for as long as the file in
// which podman keeps its images, and all that says which file that is, stay the
// same: they change with every pull, tag and removal.

// KnownImage is an image that was verified, and where podman keeps it.
type KnownImage struct {
	Key    string   // of everything that must not have changed; see storeKey
	Images string   // podman's file of images
	Layers []string // directories of the image's layers, uppermost first; none where they are not to be read directly
}

// unlessKnown is what a plan says of looking for an image. It says the same
// whatever is remembered: a lock means the same on every machine.
const unlessKnown = "unless it was verified and podman's images are the same since:"

const knownFile = "images.json"

// knownKey is what an image is remembered by.
func knownKey(config, platform string) string { return platform + " " + config }

// containers is the directory in which the storage driver keeps its containers,
// beside that of its images, as in podman's own layout: overlay-images,
// overlay-containers.
func (k KnownImage) containers() string {
	if k.Images == "" {
		return ""
	}
	dir := filepath.Dir(k.Images)
	return filepath.Join(filepath.Dir(dir), strings.TrimSuffix(filepath.Base(dir), "-images")+"-containers")
}

// storeKey identifies the state of podman's images: its file of them, and the
// environment and configuration that lead to that.
func storeKey(images string, environ []string) (string, error) {
	key, err := fileKey(images)
	if err != nil {
		return "", err
	}
	parts := append([]string{key}, environ...)
	for _, path := range storageConfs(environ) {
		k, err := fileKey(path)
		if err != nil {
			k = "none"
		}
		parts = append(parts, k)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:]), nil
}

// storageConfs are the files in which podman's storage is configured.
func storageConfs(environ []string) []string {
	conf, home := "", ""
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "HOME":
			home = v
		case "XDG_CONFIG_HOME":
			conf = v
		}
	}
	if conf == "" {
		conf = filepath.Join(home, ".config")
	}
	return []string{filepath.Join(conf, "containers/storage.conf"), "/etc/containers/storage.conf", "/usr/share/containers/storage.conf"}
}

// moreStores is a list of additional image stores that is not empty.
var moreStores = regexp.MustCompile(`additionalimagestores\W*=\s*\[\s*[^\s\]]`)

// comments of a storage.conf.
var comments = regexp.MustCompile(`#.*`)

// ownStore tells whether an image is in the one store in which podman looks for
// images and keeps its containers. Of an image in an additional one, another
// could come before it, without a change there.
func ownStore(k KnownImage, environ []string) bool {
	if unix.Access(filepath.Dir(k.Images), unix.W_OK) != nil || !exists(filepath.Join(k.containers(), containersLock)) {
		return false
	}
	for _, path := range storageConfs(environ) {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) || moreStores.Match(comments.ReplaceAll(b, nil)) {
			return false
		}
	}
	return true
}

// knownImages gives the images that are as they were when they were verified,
// by their ids.
func knownImages(cacheDir, platform string, environ []string) map[string]KnownImage {
	out := map[string]KnownImage{}
	for name, k := range readKnown(cacheDir) {
		config, ok := strings.CutPrefix(name, platform+" ")
		if !ok {
			continue
		}
		if key, err := storeKey(k.Images, environ); err == nil && key == k.Key {
			out[config] = k
		}
	}
	return out
}

func readKnown(dir string) map[string]KnownImage {
	known := map[string]KnownImage{}
	b, err := os.ReadFile(filepath.Join(dir, knownFile))
	if err != nil || json.Unmarshal(b, &known) != nil {
		return map[string]KnownImage{}
	}
	return known
}

// Memory is where what was verified is kept.
type Memory struct {
	Dir     string   // the cache directory; "": it is not kept
	Environ []string // podman's, outside its namespace
	Run     string   // the run's directory, for what is only tried
}

// still tells whether an image that was found to be known is so at this moment:
// the person may have been asked something meanwhile.
func (m Memory) still(k KnownImage) bool {
	if k.Key == "" {
		return false
	}
	key, err := storeKey(k.Images, m.Environ)
	return err == nil && key == k.Key
}

// keep remembers an image that was verified: podman was asked at a time after
// which its file of images did not change. It never fails: the next launch asks.
func (m Memory) keep(config, platform string, img inspected, asked time.Time) {
	k := img.known()
	if m.Dir == "" || k.Images == "" || !ownStore(k, m.Environ) {
		return
	}
	fi, err := os.Stat(k.Images)
	if err != nil || !fi.ModTime().Before(asked) {
		return
	}
	if k.Key, err = storeKey(k.Images, m.Environ); err != nil {
		return
	}
	if len(k.Layers) > 1 && !m.stacks(k.Layers) {
		k.Layers = nil
	}
	known := readKnown(m.Dir)
	for name, old := range known {
		if old.Images == k.Images && old.Key != k.Key {
			delete(known, name)
		}
	}
	known[knownKey(config, platform)] = k
	writeCache(m.Dir, knownFile, known)
}

// stacks tells whether layers can be put together by the kernel here.
func (m Memory) stacks(layers []string) bool {
	dir, err := os.MkdirTemp(m.Run, "stack-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if overlay.Stack(layers, dir) != nil {
		return false
	}
	return unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil
}

// graphDriver is where podman says that an image's layers are.
type graphDriver struct {
	Name string
	Data map[string]string
}

// known gives where podman keeps an image, as far as that can be relied upon.
func (i inspected) known() KnownImage {
	upper := i.GraphDriver.Data["UpperDir"]
	store := filepath.Dir(filepath.Dir(upper)) // …/overlay
	if i.GraphDriver.Name != "overlay" || !filepath.IsAbs(upper) || filepath.Base(upper) != "diff" || filepath.Base(store) != "overlay" {
		return KnownImage{}
	}
	k := KnownImage{Images: filepath.Join(filepath.Dir(store), "overlay-images", "images.json"), Layers: []string{upper}}
	if lower := i.GraphDriver.Data["LowerDir"]; lower != "" {
		k.Layers = append(k.Layers, strings.Split(lower, ":")...)
	}
	// A program of its own mounts them, which marks what is deleted in its own
	// way, or they are not plain directories.
	if b, err := os.ReadFile(filepath.Join(store, ".has-mount-program")); err == nil && strings.TrimSpace(string(b)) != "false" {
		k.Layers = nil
	}
	for _, dir := range k.Layers {
		if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || filepath.Base(dir) != "diff" || exists(filepath.Join(filepath.Dir(dir), "composefs-data")) {
			k.Layers = nil
			break
		}
	}
	return k
}

// ImageLayers shows an image to the helper, from the directories of its layers.
// They stay as long as the sandbox's container does, which uses them too.
type ImageLayers struct {
	Image  string
	Layers []string // uppermost first
	At     string   // where they are put together, if there are several
	Value  string   // the Value that gets the root directory
}

// Do gives the directory.
func (o ImageLayers) Do(context.Context, step.Values) (step.Values, error) {
	if len(o.Layers) == 1 {
		return step.Values{o.Value: o.Layers[0]}, nil
	}
	if err := os.Mkdir(o.At, 0o700); err != nil {
		return nil, err
	}
	if err := overlay.Stack(o.Layers, o.At); err != nil {
		return nil, err
	}
	return step.Values{o.Value: o.At}, nil
}

// Show gives the command that would do the same.
func (o ImageLayers) Show() []string {
	if len(o.Layers) == 1 {
		return []string{"read image " + o.Image + " at " + shown(o.Layers[0])}
	}
	return []string{"mount -t overlay -o ro,userxattr,lowerdir=" + shown(strings.Join(o.Layers, ":"), o.At)}
}
