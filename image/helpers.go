package image

import (
	"bytes"
	"debug/elf"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lazaret/lock"
)

// Names of the helper binaries, as they are built and as they are embedded.
const (
	SidecarName  = "lazaret-sidecar"
	EscalateName = "lazaret-escalate"
	GuestName    = "lazaret-guest"
)

// Platforms lists what helpers are built for.
func Platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// embeddedHelpers holds helpers/linux-amd64/… and so on, which build-helpers.sh
// makes. A fresh clone has only the README there, and still builds.
//
//go:embed helpers
var embeddedHelpers embed.FS

// sumsFile lists a directory's binaries with their digests. The build writes
// it last, so that an interrupted one is noticed.
const sumsFile = "SHA256SUMS"

// Binary returns a helper binary for a platform ("linux/amd64"). The error is
// a *HelperError when this build has none, or not all of its bytes.
func Binary(name, platform string) ([]byte, error) {
	return binary(embeddedHelpers, name, platform)
}

func binary(from fs.FS, name, platform string) ([]byte, error) {
	b, _, err := digested(from, name, platform)
	return b, err
}

// digested is binary with the digest that it checked: hashing megabytes twice
// shows in every launch.
func digested(from fs.FS, name, platform string) ([]byte, v1.Hash, error) {
	fail := func(reason string) ([]byte, v1.Hash, error) {
		return nil, v1.Hash{}, &HelperError{Name: name, Platform: platform, Reason: reason}
	}
	p, err := parsePlatform(platform)
	if err != nil {
		return fail(err.Error())
	}
	dir := path.Join("helpers", p.key())
	b, err := fs.ReadFile(from, path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fail("this build has none")
	} else if err != nil {
		return fail(err.Error())
	}
	sums, err := fs.ReadFile(from, path.Join(dir, sumsFile))
	if err != nil {
		return fail("the build that made it did not finish")
	}
	digest := sha256Of(b)
	if !strings.Contains("\n"+string(sums), "\n"+digest.Hex+"  "+name+"\n") {
		return fail("it is not the one that was built, but " + digest.Hex)
	}
	if err := checkELF(b, p); err != nil {
		return fail(err.Error())
	}
	return b, digest, nil
}

// checkELF makes sure that a binary is a static one for its platform: a
// sandbox without a dynamic linker could not start another.
func checkELF(b []byte, p platform) error {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return errors.New("it is not an ELF file")
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[p.Arch]
	if f.Machine != machine {
		return fmt.Errorf("it is made for %s", f.Machine)
	}
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP || prog.Type == elf.PT_DYNAMIC {
			return errors.New("it is not static")
		}
	}
	return nil
}

// Sidecar assembles the network sidecar's image: one static file, nothing else.
func Sidecar(platform string) (v1.Image, error) {
	b, err := Binary(SidecarName, platform)
	if err != nil {
		return nil, err
	}
	return Assemble(sidecarSpec(platform, b))
}

func sidecarSpec(platform string, binary []byte) Spec {
	return Spec{
		Platform:   platform,
		Files:      []File{{Path: "/" + SidecarName, Mode: 0o555, Data: binary}},
		Entrypoint: []string{"/" + SidecarName},
		User:       "0:0",
		WorkingDir: "/",
		Labels:     map[string]string{"lazaret.image": "sidecar"},
	}
}

// SidecarFile is what the build writes a platform's lock.Sidecar to: assembling
// the image and hashing it takes as long as starting three programs.
const SidecarFile = "sidecar.json"

// Helpers returns what a lock says of the helpers of this build, by platform
// key ("linux-amd64"): the sidecar's image and the escalation client. It is
// what the build wrote down; Binary checks the bytes themselves.
func Helpers() (map[string]lock.Sidecar, map[string]lock.Binary, error) {
	sidecars := make(map[string]lock.Sidecar)
	clients := make(map[string]lock.Binary)
	for _, s := range Platforms() {
		key, sidecar, client, err := helpersFor(embeddedHelpers, s)
		if err != nil {
			return nil, nil, err
		}
		sidecars[key], clients[key] = sidecar, client
	}
	return sidecars, clients, nil
}

// helpersFor describes the helpers of one platform.
func helpersFor(from fs.FS, s string) (key string, sidecar lock.Sidecar, client lock.Binary, err error) {
	p, err := parsePlatform(s)
	if err != nil {
		return "", sidecar, client, err
	}
	own, err := sumOf(from, EscalateName, s)
	if err != nil {
		return "", sidecar, client, err
	}
	sum, err := sumOf(from, SidecarName, s)
	if err != nil {
		return "", sidecar, client, err
	}
	b, err := fs.ReadFile(from, path.Join("helpers", p.key(), SidecarFile))
	if err != nil || json.Unmarshal(b, &sidecar) != nil || sidecar.Binary != sum {
		sidecar, err = describeSidecar(from, s)
	}
	return p.key(), sidecar, lock.Binary{Binary: own}, err
}

// sumOf is the digest that the build noted of a helper binary.
func sumOf(from fs.FS, name, platform string) (string, error) {
	p, err := parsePlatform(platform)
	if err == nil {
		var sums []byte
		sums, err = fs.ReadFile(from, path.Join("helpers", p.key(), sumsFile))
		for line := range strings.Lines(string(sums)) {
			if hex, ok := strings.CutSuffix(line, "  "+name+"\n"); ok {
				return "sha256:" + hex, nil
			}
		}
	}
	if _, err := binary(from, name, platform); err != nil {
		return "", err // says what is missing
	}
	return "", &HelperError{Name: name, Platform: platform, Reason: fmt.Sprintf("the build did not note its digest: %v", err)}
}

// DescribeSidecar assembles the sidecar's image of this build and gives what a
// lock says of it.
func DescribeSidecar(platform string) (lock.Sidecar, error) {
	return describeSidecar(embeddedHelpers, platform)
}

func describeSidecar(from fs.FS, platform string) (lock.Sidecar, error) {
	b, digest, err := digested(from, SidecarName, platform)
	if err != nil {
		return lock.Sidecar{}, err
	}
	img, err := Assemble(sidecarSpec(platform, b))
	if err != nil {
		return lock.Sidecar{}, err
	}
	manifest, config, layer, size, err := digestsOf(img)
	if err != nil {
		return lock.Sidecar{}, err
	}
	return lock.Sidecar{
		Binary:   digest.String(),
		Layer:    layer.String(),
		Config:   config.String(),
		Manifest: manifest.String(),
		Size:     size,
	}, nil
}
