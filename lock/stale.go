package lock

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Difference is one respect in which a lock is not what it should be.
type Difference struct {
	Key string // dotted
	Why string // in plain words
}

func (d Difference) String() string { return d.Key + ": " + d.Why }

// Check reports how old differs from the lock that req asks for, without a
// network: pins are taken from old, and a reference that has none there is a
// difference by itself. Only references to this machine are resolved.
func Check(ctx context.Context, req Request, old *File) ([]Difference, []Warning, error) {
	req.Previous, req.UpdateAll, req.Update = old, false, nil
	b := &builder{Request: req, offline: true}
	fresh, err := b.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	return Stale(old, fresh), b.warnings, nil
}

// Stale lists how old differs from fresh, in the order of the file.
func Stale(old, fresh *File) []Difference {
	d := &differ{}
	d.inputs(old.Inputs, fresh.Inputs)
	d.storage(old.Storage, fresh.Storage)
	d.helpers(old, fresh)
	names := slices.Concat(slices.Collect(maps.Keys(old.Profiles)), slices.Collect(maps.Keys(fresh.Profiles)))
	for _, name := range sorted(names, strings.Compare) {
		path := []string{"profiles", name}
		a, inOld := old.Profiles[name]
		b, inFresh := fresh.Profiles[name]
		switch {
		case !inOld:
			d.add(path, "is not in the lock")
		case !inFresh:
			d.add(path, "is in the lock, but no longer in the config")
		default:
			d.profile(path, a, b)
		}
	}
	return d.list
}

func (d *differ) inputs(old, fresh Inputs) {
	d.values([]string{"inputs"}, reflect.ValueOf(Inputs{Platforms: old.Platforms}), reflect.ValueOf(Inputs{Platforms: fresh.Platforms}))
	for _, in := range []struct {
		key        string
		old, fresh *Input
	}{
		{"user", old.User, fresh.User},
		{"workspace", old.Workspace, fresh.Workspace},
		{"override", old.Override, fresh.Override},
	} {
		path := []string{"inputs", in.key}
		switch {
		case in.old == nil && in.fresh == nil:
		case in.old == nil:
			d.add(path, "%s takes part, and did not when the lock was made", in.fresh.Path)
		case in.fresh == nil:
			d.add(path, "%s took part when the lock was made, and does not now", in.old.Path)
		case in.old.Path != in.fresh.Path:
			d.add(path, "the lock says %s, it should be %s", in.old.Path, in.fresh.Path)
		case in.old.SHA256 != in.fresh.SHA256:
			d.add(path, "%s has changed since the lock was made", in.fresh.Path)
		}
	}
}

func (d *differ) storage(old, fresh Storage) {
	d.values([]string{"storage"}, reflect.ValueOf(old), reflect.ValueOf(fresh))
}

func (d *differ) profile(path []string, old, fresh Profile) {
	d.image(append(slices.Clip(path), "image"), old.Image, fresh.Image)
	d.mounts(append(slices.Clip(path), "mounts"), old.Mounts, fresh.Mounts)
	old.Image, old.Mounts, fresh.Image, fresh.Mounts = Image{}, nil, Image{}, nil
	d.values(path, reflect.ValueOf(old), reflect.ValueOf(fresh))
}

// helpers compares the helper programs, one line each: all their digests
// change together.
func (d *differ) helpers(old, fresh *File) {
	for _, p := range fresh.Inputs.Platforms {
		k := PlatformKey(p)
		a, inOld := old.Sidecar[k]
		b := fresh.Sidecar[k]
		if inOld && a.Ref != b.Ref {
			d.add([]string{"sidecar", k, "ref"}, "the lock says %s, it should be %s", quote(a.Ref), quote(b.Ref))
			a.Ref = b.Ref
		}
		if inOld && a != b {
			d.add([]string{"sidecar", k}, "the lock was made by a lazaret with another sidecar (%s, this one has %s)", a.Config, b.Config)
		}
		if e, ok := old.Escalate[k]; ok && e != fresh.Escalate[k] {
			d.add([]string{"escalate", k}, "the lock was made by a lazaret with another escalation client (%s, this one has %s)",
				e.Binary, fresh.Escalate[k].Binary)
		}
	}
}

// image compares pins. A reference that changed says all there is to say.
func (d *differ) image(path []string, old, fresh Image) {
	if old.Ref != fresh.Ref {
		d.add(append(path, "ref"), "the lock says %s, it should be %s", quote(old.Ref), quote(fresh.Ref))
		return
	}
	for _, k := range slices.Sorted(maps.Keys(fresh.Platforms)) {
		a, ok := old.Platforms[k]
		switch b := fresh.Platforms[k]; {
		case !ok:
			d.add(path, "%s is not pinned for %s", quote(fresh.Ref), k)
		case a.Config != b.Config:
			d.add(path, "%s is another image on %s now (locked %s, now %s)", quote(fresh.Ref), k, a.Config, b.Config)
		default:
			d.values(append(slices.Clip(path), "platforms", k), reflect.ValueOf(a), reflect.ValueOf(b))
		}
	}
	switch {
	case len(fresh.Platforms) == 0: // what Check does not ask a registry about
		d.add(path, "%s is not pinned for every platform", quote(fresh.Ref))
	case old.Index != fresh.Index:
		d.add(append(path, "index"), "the lock says %s, it should be %s", orNone(old.Index), orNone(fresh.Index))
	}
}
