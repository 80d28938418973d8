package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lazaret/image"
	"lazaret/internal/proc"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
)

// HostNetwork looks at the network that the router's uplink will use.
type HostNetwork struct{}

// Do gives the host's addresses, and whether it has IPv6.
func (HostNetwork) Do(context.Context, step.Values) (step.Values, error) {
	addrs, err := HostAddresses()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, a := range addrs {
		list = append(list, a.String())
	}
	out := step.Values{addrsValue: strings.Join(list, " ")}
	if HostIPv6() {
		out[sixValue] = "yes"
	}
	return out, nil
}

// Show says what is looked at.
func (HostNetwork) Show() []string {
	return []string{"look at this machine's addresses and IPv6 route"}
}

// SidecarImage makes the router's image present in podman's storage.
type SidecarImage struct {
	Engine   podman.Engine
	Environ  []string
	Platform string
	Pinned   lock.Sidecar
	Stash    string // where what was pulled of another lazaret's is kept
	Layout   string // where it is laid out for podman to pull
	Memory   Memory
	Known    KnownImage // what was verified before
}

func sidecarLayoutName(id string) string { return "layout-net-" + id }

// Do loads the image that is pinned, where podman does not have it: this
// build's own, else another lazaret's from where the lock says. It refuses
// any other.
func (o SidecarImage) Do(ctx context.Context, in step.Values) (step.Values, error) {
	if o.Memory.still(o.Known) {
		return nil, nil
	}
	asked := time.Now()
	img, err := o.inspect(ctx)
	if err != nil {
		if in[fetchErrValue] != "" {
			return nil, fmt.Errorf("loading the network sidecar: %w", notFetched(in))
		}
		if err := o.load(ctx); err != nil {
			return nil, fmt.Errorf("loading the network sidecar: %w", err)
		}
		asked = time.Now()
		if img, err = o.inspect(ctx); err != nil {
			return nil, err
		}
	}
	if got := "sha256:" + strings.TrimPrefix(img.ID, "sha256:"); got != o.Pinned.Config {
		return nil, refuse(`run "lazaret lock" and review the difference`, "IMAGE ID MISMATCH of the network sidecar: the lock pins %s, podman has %s", o.Pinned.Config, got)
	}
	if obeyed := image.ObeyedAnnotations(img.Annotations); len(obeyed) > 0 {
		return nil, refuse("remove it with \"podman image rm "+o.Pinned.Config+"\"", "the network sidecar's image carries settings for the runtime")
	}
	o.Memory.keep(o.Pinned.Config, o.Platform, img, asked)
	return nil, nil
}

func (o SidecarImage) inspectArgv() []string {
	return o.Engine.Argv("image", "inspect", "--format=json", o.Pinned.Config)
}

func (o SidecarImage) pullArgv() []string {
	return o.Engine.Argv("pull", "--quiet", "oci:"+sidecarLocalName)
}

const sidecarLocalName = "lazaret/sidecar"

func (o SidecarImage) inspect(ctx context.Context) (inspected, error) {
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

func (o SidecarImage) load(ctx context.Context) error {
	img, err := image.NewResolver(image.Options{}).FetchSidecar(ctx, "", o.Platform, o.Pinned, image.Stash{Dir: o.Stash})
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Layout, sidecarLocalName)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	defer removeTree(filepath.Split(o.Layout))
	if err := image.WriteLayout(dir, img, ""); err != nil {
		return err
	}
	_, err = proc.Output(ctx, proc.Cmd{Argv: o.pullArgv(), Env: o.Environ, Dir: o.Layout})
	return err
}

// Show gives the commands.
func (o SidecarImage) Show() []string {
	return []string{
		unlessKnown,
		shown(o.inspectArgv()...),
		"if it is not there: lay the sidecar out at " + shown(filepath.Join(o.Layout, sidecarLocalName)),
		"if it is not there: " + shown(o.pullArgv()...),
	}
}

// Router starts the router's container.
type Router struct {
	Engine  podman.Engine
	Environ []string
	Run     podman.Router
	Store   string // where podman keeps its containers; "" where that is not known

	// started keeps in mind the container's id and its monitor.
	started func(name, id string, conmon *os.File)
}

// Do starts it and does not wait for more.
func (o Router) Do(ctx context.Context, _ step.Values) (step.Values, error) {
	out, err := proc.Output(ctx, proc.Cmd{Argv: o.Engine.Router(o.Run), Env: o.Environ})
	if err != nil || o.started == nil || o.Run.PIDFile == "" {
		return nil, err
	}
	if conmon, err := openProcess(o.Run.PIDFile); err == nil {
		o.started(o.Run.Name, strings.TrimSpace(string(out)), conmon)
	}
	return nil, nil
}

// Show gives the command.
func (o Router) Show() []string { return []string{shown(o.Engine.Router(o.Run)...)} }

func (o Router) container() container {
	return container{name: o.Run.Name, engine: o.Engine, env: o.Environ, store: o.Store}
}
