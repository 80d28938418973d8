package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"lazaret/image"
	"lazaret/internal/proc"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

func newVerifyCmd(d *deps) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Check that all that lazaret.lock pins can still be had",
		Long: `Verify walks every pin of lazaret.lock, index, manifests, configs and layers, and
asks the registries whether they still have them: nothing is pulled, and no tag
is asked. Images in an OCI layout are read whole. Where the lock says where its
network sidecar can be had, that and the escalation client are looked for too. It changes nothing, and exits 1
where something is gone or is not what it should be.

It is for a nightly job: a tag that moves on leaves the old digest to be cleaned
up, and then a lock that worked does not work on a new machine.`,
		Example: `  lazaret verify`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := d.openLock(o)
			if err != nil {
				return err
			}
			return runVerify(cmd.Context(), d, l, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.flags(cmd)
	return cmd
}

// pinnedImage is an image that a lock pins, and who uses it.
type pinnedImage struct {
	users []string
	image lock.Image
	// clients are the escalation clients beside a sidecar, by platform key.
	clients map[string]string
	absent  []image.Absence
	err     error
}

// pins lists what a lock pins, each image once, in the order of its users.
func pins(f *lock.File) []*pinnedImage {
	var out []*pinnedImage
	byPin := map[string]*pinnedImage{}
	add := func(user string, i lock.Image) *pinnedImage {
		key := i.Ref + " " + i.Index
		for _, p := range f.Inputs.Platforms {
			key += " " + i.Platforms[lock.PlatformKey(p)].Manifest
		}
		if byPin[key] == nil {
			byPin[key] = &pinnedImage{image: i}
			out = append(out, byPin[key])
		}
		byPin[key].users = append(byPin[key].users, user)
		return byPin[key]
	}
	for _, name := range profileNames(f) {
		add(name, f.Profiles[name].Image)
	}
	var router lock.Image
	for _, p := range f.Inputs.Platforms {
		key := lock.PlatformKey(p)
		if s := f.Sidecar[key]; s.Ref != "" {
			if router.Platforms == nil {
				router = lock.Image{Ref: s.Ref, Platforms: map[string]lock.PlatformImage{}}
			}
			router.Platforms[key] = lock.PlatformImage{Manifest: s.Manifest, Config: s.Config}
		}
	}
	if router.Ref != "" {
		p := add("sidecar", router)
		p.clients = map[string]string{}
		for key := range router.Platforms {
			p.clients[key] = f.Escalate[key].Binary
		}
	}
	return out
}

func runVerify(ctx context.Context, d *deps, l lockFile, out, talk io.Writer) error {
	bar := d.newProgress(talk)
	resolver := image.NewResolver(image.Options{Keychain: image.NewKeychain(d.environ, d.home, d.cwd), Dir: d.cwd, Progress: bar.image})
	list := pins(l.file)
	var g errgroup.Group
	var done atomic.Int64
	for _, p := range list {
		g.Go(func() error {
			p.absent, p.err = resolver.Verify(ctx, p.image)
			p.verifyClients(ctx, resolver)
			bar.show(fmt.Sprintf("verifying images: %d of %d", done.Add(1), len(list)))
			return nil
		})
	}
	g.Wait()
	bar.clear()
	if err := ctx.Err(); err != nil {
		return err
	}
	bad := 0
	for _, p := range list {
		who := strings.Join(p.users, ", ")
		switch {
		case p.err != nil:
			bad++
			fmt.Fprintf(out, "%s: %s\n", who, config.Show(p.err.Error()))
		case len(p.absent) == 0:
			fmt.Fprintf(out, "%s: %s is there\n", who, config.Show(p.image.Ref))
		}
		for _, a := range p.absent {
			bad++
			fmt.Fprintf(out, "%s: %s%s: %s%s\n", who, a.What, onPlatform(a.Platform), config.Show(a.Err.Error()), d.stillHere(ctx, p.image, a))
		}
	}
	if bad > 0 {
		return hinted{
			fmt.Errorf("%s: %s cannot be had as pinned", config.Show(l.shown), count(bad, "thing")),
			`"lazaret lock --update" pins what the registries have now; review the difference`,
		}
	}
	return nil
}

// verifyClients looks for the escalation clients beside the sidecar.
func (p *pinnedImage) verifyClients(ctx context.Context, r *image.Resolver) {
	for _, key := range slices.Sorted(maps.Keys(p.clients)) {
		if p.err != nil {
			return
		}
		err := r.VerifyClient(ctx, p.image.Ref, p.clients[key])
		var gone *image.GoneError
		switch {
		case errors.As(err, &gone):
			p.absent = append(p.absent, image.Absence{What: "escalation client", Platform: key, Digest: p.clients[key], Err: err})
		case err != nil:
			p.err = err
		}
	}
}

func onPlatform(key string) string {
	if key == "" {
		return ""
	}
	return " for " + strings.ReplaceAll(key, "-", "/")
}

// stillHere says of an image that a registry lost whether this machine has it.
func (d *deps) stillHere(ctx context.Context, i lock.Image, a image.Absence) string {
	var gone *image.GoneError
	if !errors.As(a.Err, &gone) || a.What == "escalation client" {
		return ""
	}
	keys := []string{a.Platform}
	if a.Platform == "" {
		keys = keys[:0]
		for k := range i.Platforms {
			keys = append(keys, k)
		}
	}
	if !slices.ContainsFunc(keys, func(k string) bool { return d.inStorage(ctx, i.Platforms[k].Config) }) {
		return ""
	}
	return ", still in this machine's storage"
}

// inStorage reports whether podman has an image. Without podman, it has not.
func (d *deps) inStorage(ctx context.Context, id string) bool {
	program, err := d.program("podman")
	if err != nil {
		return false
	}
	_, err = proc.Output(ctx, proc.Cmd{
		Argv: []string{program, "image", "exists", id},
		Env:  podman.Environ(d.env, "/dev/null"),
	})
	return err == nil
}
