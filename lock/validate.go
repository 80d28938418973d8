package lock

import (
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"lazaret/lock/config"
)

// validate checks every value of f for being one that lazaret could have
// written, as far as that shows without the config. It returns the first
// *KeyError in canonical order of the tables.
func (f *File) validate() error {
	if err := f.validateText(); err != nil {
		return err
	}
	if f.Version != Version {
		return wrong("version", "is %d, not %d", f.Version, Version)
	}
	if err := f.Inputs.validate(); err != nil {
		return err
	}
	if err := checkHostPath("storage.data_root", f.Storage.DataRoot, false); err != nil {
		return err
	}
	if err := oneOf("storage.overlay", f.Storage.Overlay, "auto", "native", "fuse-overlayfs"); err != nil {
		return err
	}
	if err := f.validateHelpers(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Profiles)) {
		key := keyPath([]string{"profiles", name})
		if config.CheckProfileName(name) != nil {
			return wrong(key, "is not a profile name")
		}
		p := f.Profiles[name]
		if err := p.validate(key, f.Inputs.Platforms); err != nil {
			return err
		}
	}
	return nil
}

// validateText checks every string, keys too, whatever it means.
func (f *File) validateText() error {
	var first error
	walk(nil, reflect.ValueOf(f).Elem(), func(l leaf) {
		if first != nil {
			return
		}
		for _, k := range l.path {
			if err := checkText(k, ""); err != nil {
				first = wrong(keyPath(l.path), "is a key that %v", err)
				return
			}
		}
		if err := checkStrings(l.value, l.field.text); err != nil {
			first = wrong(keyPath(l.path), "%v", err)
		}
	})
	return first
}

// checkStrings applies checkText to the strings in v.
func checkStrings(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		return checkText(v.String(), text)
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkStrings(v.Index(i), text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in Inputs) validate() error {
	const key = "inputs.platforms"
	if len(in.Platforms) == 0 {
		return wrong(key, "is empty")
	}
	if !strictlySorted(in.Platforms, strings.Compare) {
		return wrong(key, "is not sorted")
	}
	for _, p := range in.Platforms {
		if !knownPlatform(p) {
			return wrong(key, "names a platform that lazaret does not know")
		}
	}
	if in.User == nil && in.Workspace == nil && in.Override == nil {
		return wrong("inputs", "names no config")
	}
	for _, i := range []struct {
		key   string
		input *Input
	}{{"user", in.User}, {"workspace", in.Workspace}, {"override", in.Override}} {
		if i.input != nil && !sha256Hex.MatchString(i.input.SHA256) {
			return wrong("inputs."+i.key+".sha256", "is not a SHA-256 in hex")
		}
	}
	if in.User != nil && in.User.Path != UserPath {
		return wrong("inputs.user.path", "is not %s", UserPath)
	}
	if in.Workspace != nil && in.Workspace.Path != WorkspacePath {
		return wrong("inputs.workspace.path", "is not %s", WorkspacePath)
	}
	if in.Override != nil && !cleanPath(strings.TrimPrefix(in.Override.Path, "~/")) {
		return wrong("inputs.override.path", "is not a plain path")
	}
	if in.Override != nil && KeptBack(in.Override.Path) {
		return wrong("inputs.override.path", "is one of what no sandbox sees")
	}
	return nil
}

// KeptBack reports whether a path, relative to a workspace, is masked, git's or
// a file that lazaret mounts there itself: to mount the --config FILE there
// would show the sandbox what is kept from it.
func KeptBack(rel string) bool {
	parts := strings.Split(rel, "/")
	return slices.Contains(parts, ".git") || slices.Contains([]string{".idea", ".vscode", "lazaret.lock", WorkspacePath}, parts[0])
}

func (f *File) validateHelpers() error {
	if err := platformKeys("sidecar", f.Sidecar, f.Inputs.Platforms); err != nil {
		return err
	}
	if err := platformKeys("escalate", f.Escalate, f.Inputs.Platforms); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(f.Sidecar)) {
		s := f.Sidecar[k]
		if err := digests("sidecar."+k, "binary", s.Binary, "layer", s.Layer, "config", s.Config, "manifest", s.Manifest); err != nil {
			return err
		}
		if s.Size < 0 {
			return wrong("sidecar."+k+".size", "is negative")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f.Escalate)) {
		if err := digests("escalate."+k, "binary", f.Escalate[k].Binary); err != nil {
			return err
		}
	}
	return nil
}

// platformKeys demands an entry for each platform and no other.
func platformKeys[V any](key string, m map[string]V, platforms []string) error {
	for _, p := range platforms {
		if _, ok := m[PlatformKey(p)]; !ok {
			return wrong(key, "has no entry for %s", p)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(platforms, func(p string) bool { return PlatformKey(p) == k }) {
			return wrong(key+"."+quoteKey(k), "is not one of inputs.platforms")
		}
	}
	return nil
}

var (
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)
	sizeText  = regexp.MustCompile(`^[1-9][0-9]{0,18}[bkmg]?$`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// digests checks pairs of key and digest below prefix.
func digests(prefix string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		hex, ok := strings.CutPrefix(pairs[i+1], "sha256:")
		if !ok || !sha256Hex.MatchString(hex) {
			return wrong(prefix+"."+pairs[i], "is not a digest: sha256: and 64 hex digits")
		}
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return wrong(key, "is none of %s", strings.Join(allowed, ", "))
	}
	return nil
}

func strictlySorted[T any](s []T, compare func(a, b T) int) bool {
	for i := 1; i < len(s); i++ {
		if compare(s[i-1], s[i]) >= 0 {
			return false
		}
	}
	return true
}

// cleanPath reports whether p is a path that means what it says: not empty,
// without empty, "." and ".." elements.
func cleanPath(p string) bool {
	return p != "" && p != "." && p == path.Clean(p) && p != ".." && !strings.HasPrefix(p, "../")
}

// durationText is how a duration stands in a lock: 5m, 1h30m, 45s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
