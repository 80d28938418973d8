package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lazaret/image"
	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

// Image makes an image present in podman's storage and verifies it.
type Image struct {
	Engine   podman.Engine
	Environ  []string
	PullEnv  []string // how registries are reached, for the pull alone
	Profile  string
	Ref      string // as written in the lock
	Platform string
	Pinned   lock.PlatformImage
	Dir      string // the workspace, base of oci:DIR
	Layout   string // where a local image is laid out for podman to pull, or podman puts what it fetches
	Memory   Memory
	Known    KnownImage // what was verified before
	Covers   []string   // where lazaret mounts something; see look
}

func layoutName(id string) string { return "layout-" + id }

// inspected is what is needed of "podman image inspect".
type inspected struct {
	ID           string `json:"Id"`
	Architecture string
	Os           string
	Annotations  map[string]string
	GraphDriver  graphDriver
}

// Do looks for the image, gets it if it is not there, and refuses one that is
// not the image the lock pins.
func (o Image) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	if o.Memory.still(o.Known) {
		return nil, o.look(ctx, o.Known.Layers, true)
	}
	asked := time.Now()
	img, err := o.inspect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() // laying an image out would not notice
		}
		if err := o.get(ctx); err != nil {
			return nil, err
		}
		asked = time.Now()
		if img, err = o.inspect(ctx); err != nil {
			return nil, refuse(fmt.Sprintf("run \"lazaret lock --update %s\" and review the difference", o.Profile),
				"profiles.%s.image: %s came without the image the lock pins, %s", o.Profile, config.Show(o.Ref), o.Pinned.Config)
		}
	}
	if err := o.verify(img); err != nil {
		return nil, err
	}
	if img.GraphDriver.Name != "" {
		if err := o.look(ctx, img.known().Layers, false); err != nil {
			return nil, err
		}
	}
	o.Memory.keep(o.Pinned.Config, o.Platform, img, asked)
	return nil, nil
}

func (o Image) inspect(ctx context.Context) (inspected, error) {
	out, err := proc.Output(ctx, proc.Cmd{Argv: o.inspectArgv(), Env: o.Environ})
	if err != nil {
		return inspected{}, err
	}
	var list []inspected
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
		return inspected{}, fmt.Errorf("reading podman's answer about image %s: %v", o.Pinned.Config, err)
	}
	return list[0], nil
}

func (o Image) verify(img inspected) error {
	const hint = `run "lazaret lock --check", and "podman image rm" it if the lock is right`
	if got := "sha256:" + strings.TrimPrefix(img.ID, "sha256:"); got != o.Pinned.Config {
		return refuse(hint, "profiles.%s.image: IMAGE ID MISMATCH: the lock pins %s, podman has %s", o.Profile, o.Pinned.Config, got)
	}
	if got := img.Os + "/" + img.Architecture; got != o.Platform {
		return refuse(hint, "profiles.%s.image: it is for %s, this machine is %s", o.Profile, got, o.Platform)
	}
	// The image id does not cover the manifest, whose annotations podman copies
	// into the container's: dev.gvisor.flag.host-uds=open there opens every
	// host socket that is mounted.
	if obeyed := image.ObeyedAnnotations(img.Annotations); len(obeyed) > 0 {
		return refuse("remove it with \"podman image rm "+o.Pinned.Config+"\" and use an image without them",
			"profiles.%s.image: its manifest carries settings for the runtime: %s", o.Profile, config.Show(strings.Join(obeyed, ", ")))
	}
	return nil
}

// get pulls the image by digest, or lays a local one out and pulls that.
func (o Image) get(ctx context.Context) error {
	if !image.IsLocal(o.Ref) {
		if err := os.MkdirAll(o.Layout, 0o700); err != nil {
			return err
		}
		defer removeTree(filepath.Split(o.Layout))
		_, err := proc.Output(ctx, proc.Cmd{Argv: o.pullArgv(), Env: slices.Concat(o.Environ, o.PullEnv, []string{"TMPDIR=" + o.Layout})})
		if err != nil {
			return refuse(fmt.Sprintf("check with \"lazaret lock --check\"; \"lazaret lock --update %s\" moves to what the registry has now", o.Profile),
				"profiles.%s.image: pulling %s: %v", o.Profile, config.Show(o.Ref), err)
		}
		return nil
	}
	img, closer, err := image.OpenLocal(o.Ref, o.Dir, o.Platform, o.Pinned)
	if err != nil {
		return err
	}
	defer closer.Close()
	dir := filepath.Join(o.Layout, o.localName())
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	defer removeTree(filepath.Split(o.Layout))
	if err := image.WriteLayout(dir, img, ""); err != nil {
		return fmt.Errorf("laying out image %s: %w", config.Show(o.Ref), err)
	}
	_, err = proc.Output(ctx, proc.Cmd{Argv: o.pullArgv(), Env: o.Environ, Dir: o.Layout})
	return err
}

// grows says where what is fetched or laid out can be seen to arrive.
func (o Image) grows() (dir string, total int64) { return o.Layout, o.Pinned.Size }

// localName is the directory below Layout that podman pulls from. Podman makes
// the image's name of it, localhost/lazaret/…, and refuses a path that could
// not be a name: hence relative to Layout.
func (o Image) localName() string {
	return "lazaret/" + strings.TrimPrefix(o.Pinned.Config, "sha256:")[:12]
}

func (o Image) inspectArgv() []string {
	return o.Engine.Argv("image", "inspect", "--format=json", o.Pinned.Config)
}

func (o Image) pullArgv() []string {
	if image.IsLocal(o.Ref) {
		return o.Engine.Argv("pull", "--quiet", "oci:"+o.localName())
	}
	name, host := repository(o.Ref)
	a := []string{"pull", "--quiet"}
	if loopback(host) {
		// As when locking: nobody is between us and this machine. What is
		// pulled is checked by digest anyway.
		a = append(a, "--tls-verify=false")
	}
	return o.Engine.Argv(append(a, "docker://"+name+"@"+o.Pinned.Manifest)...)
}

// repository takes tag and digest off a reference, and gives its registry.
func repository(ref string) (name, host string) {
	name, _, _ = strings.Cut(ref, "@")
	host, path, _ := strings.Cut(name, "/")
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		path = path[:i]
	}
	return host + "/" + path, host
}

func loopback(host string) bool {
	if h, _, ok := strings.Cut(host, ":"); ok && !strings.HasPrefix(host, "[") {
		host = h
	}
	if host == "localhost" {
		return true
	}
	if a, err := netip.ParseAddrPort(host); err == nil {
		return a.Addr().IsLoopback()
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

// Show gives the commands.
func (o Image) Show() []string {
	lines := []string{unlessKnown, shown(o.inspectArgv()...)}
	if image.IsLocal(o.Ref) {
		lines = append(lines, "if it is not there: lay out "+config.Show(o.Ref)+" at "+shown(filepath.Join(o.Layout, o.localName())))
	}
	return append(lines, "if it is not there: "+shown(o.pullArgv()...))
}
