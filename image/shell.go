package image

import (
	"fmt"
	"io/fs"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lazaret/lock"
)

// ShellPath is the PATH inside builtin:shell.
const ShellPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Shell assembles builtin:shell for a platform: a POSIX shell and the core
// utilities, which are all one static binary under many names, so that every
// one of them is also a file.
func Shell(platform string) (v1.Image, error) {
	b, err := Binary(GuestName, platform)
	if err != nil {
		return nil, err
	}
	return Assemble(shellSpec(platform, b))
}

func shellSpec(platform string, guest []byte) Spec {
	text := func(path, data string) File { return File{Path: path, Mode: 0o644, Data: []byte(data)} }
	dir := func(path string, mode fs.FileMode) File { return File{Path: path, Mode: fs.ModeDir | mode} }
	files := []File{
		dir("/dev", 0o755), dir("/proc", 0o755), dir("/run", 0o755), dir("/sys", 0o755),
		dir("/root", 0o700), dir("/tmp", 0o777|fs.ModeSticky), dir("/var/tmp", 0o777|fs.ModeSticky),
		dir("/usr/local/bin", 0o755),
		text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		text("/etc/group", "root:x:0:\nnobody:x:65534:\n"),
		text("/etc/os-release", "ID=lazaret-shell\nNAME=\"lazaret shell\"\nPRETTY_NAME=\"lazaret's builtin shell\"\n"),
		{Path: "/bin/" + GuestName, Mode: 0o755, Data: guest},
		{Path: "/usr/bin/env", Link: "/bin/" + GuestName}, // where scripts look for it
	}
	for _, name := range strings.Fields(Applets) {
		files = append(files, File{Path: "/bin/" + name, Link: "/bin/" + GuestName})
	}
	return Spec{
		Platform:   platform,
		Files:      files,
		Command:    []string{"/bin/sh"},
		Env:        []string{"PATH=" + ShellPath, "HOME=/root"},
		WorkingDir: "/root",
		Labels:     map[string]string{"lazaret.image": "shell"},
	}
}

// builtin assembles a builtin image and says what a lock says of it.
func builtin(ref string, p platform) (v1.Image, lock.PlatformImage, error) {
	if ref != shellRef {
		return nil, lock.PlatformImage{}, &ReferenceError{Ref: ref, Reason: "there is no such builtin image", Suggest: "write " + shellRef}
	}
	built := false
	for _, have := range Platforms() {
		built = built || have == p.String()
	}
	if !built {
		return nil, lock.PlatformImage{}, &PlatformError{Ref: ref, Want: p.String(), Have: Platforms()}
	}
	img, err := Shell(p.String())
	if err != nil {
		return nil, lock.PlatformImage{}, err
	}
	manifest, config, _, size, err := digestsOf(img)
	if err != nil {
		return nil, lock.PlatformImage{}, err
	}
	spec := shellSpec(p.String(), nil)
	return img, lock.PlatformImage{
		Manifest:   manifest.String(),
		Config:     config.String(),
		Size:       size,
		Command:    spec.Command,
		Env:        spec.Env,
		WorkingDir: spec.WorkingDir,
	}, nil
}

func resolveBuiltin(ref string, wants []platform) (lock.Image, error) {
	out := lock.Image{Ref: ref, Platforms: make(map[string]lock.PlatformImage)}
	for _, want := range wants {
		_, pinned, err := builtin(ref, want)
		if err != nil {
			return lock.Image{}, err
		}
		out.Platforms[want.key()] = pinned
	}
	return out, nil
}

// openBuiltin assembles a builtin image and holds it against the lock.
func openBuiltin(ref, platform string, pinned lock.PlatformImage) (v1.Image, error) {
	p, err := parsePlatform(platform)
	if err != nil {
		return nil, &ReferenceError{Ref: ref, Reason: err.Error()}
	}
	img, have, err := builtin(ref, p)
	if err != nil {
		return nil, err
	}
	if have.Config != pinned.Config || have.Manifest != pinned.Manifest {
		return nil, &BuildError{Ref: ref, Want: pinned.Config, Have: have.Config}
	}
	return img, nil
}

// BuildError says that a lock pins a builtin image of another build of lazaret.
type BuildError struct {
	Ref, Want, Have string
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("image %q: the lock pins %s, this build of lazaret has %s", e.Ref, e.Want, e.Have)
}

func (e *BuildError) Hint() string {
	return "run \"lazaret lock --update\", or use the build of lazaret that made the lock"
}
